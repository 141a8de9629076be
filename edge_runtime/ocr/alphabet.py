"""Which character each class of a recogniser stands for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from edge_runtime.errors import ModelFileError


def load_characters(
    model_path: Path, metadata: Mapping[str, str], keys: Path | None
) -> tuple[str, ...]:
    """The listed characters of a recogniser: from its metadata, else from a keys file.

    Raises:
        ModelFileError: neither lists any characters, or the keys file cannot be read.
    """
    listed = metadata.get("character")
    if listed is None and keys is not None:
        try:
            listed = keys.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as err:
            raise ModelFileError(f"The character list {keys} cannot be read: {err}") from err
    if not listed:
        raise ModelFileError(
            f"{model_path.name} has no character list.",
            hint="give a keys file with one character a line",
        )
    # Not splitlines(): some listed characters (U+2028, U+0085) count as line ends there.
    return tuple(line.rstrip("\r") for line in listed.rstrip("\n").split("\n"))


def load_alphabet(
    model_path: Path, metadata: Mapping[str, str], keys: Path | None
) -> tuple[str, ...]:
    """Text of every class: the blank, the listed characters, the space.

    Raises:
        ModelFileError: as `load_characters`.
    """
    return ("", *load_characters(model_path, metadata, keys), " ")
