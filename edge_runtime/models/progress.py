"""What a pull reports while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Phase(StrEnum):
    """What is being done to a file."""

    WAIT = "wait"  # another process pulls the same model
    DOWNLOAD = "download"
    UNPACK = "unpack"
    CHECK = "check"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class PullProgress:
    """`done_bytes` of `total_bytes` (None when unknown) of one phase of one file."""

    model: str
    file: str
    phase: Phase
    done_bytes: int = 0
    total_bytes: int | None = None


ProgressCallback: TypeAlias = Callable[[PullProgress], None]
PhaseCallback: TypeAlias = Callable[[Phase, int, int | None], None]
