"""What was pulled into a model's folder: written after each file has been checked."""

from __future__ import annotations

import logging
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from edge_runtime.models.atomic_files import write_atomically

_log = logging.getLogger(__name__)
NAME = "receipt.json"


class ReceiptFile(BaseModel):
    """A file as it was when it came in."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    size_bytes: int
    sha256: str
    source: str
    revision: str | None = None


class Receipt(BaseModel):
    """All files of a model, by key, and whether its licence was accepted in so many words."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    version: int = 1
    licence: str | None = None
    has_accepted: bool = False
    files: dict[str, ReceiptFile] = {}


def read_receipt(folder: Path) -> Receipt:
    """The receipt of a folder; an empty one if there is none or it is damaged, which only means
    that the files have to be checked again."""
    path = folder / NAME
    try:
        return Receipt.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Receipt()
    except (OSError, ValidationError) as err:
        _log.warning("%s is damaged and is ignored: %s", path, err)
        return Receipt()


def write_receipt(folder: Path, receipt: Receipt) -> None:
    """Replace the receipt of a folder."""
    write_atomically(folder / NAME, receipt.model_dump_json(indent=2).encode() + b"\n")
