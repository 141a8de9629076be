"""What a running pipeline yields. The command line, a server and tests all read these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from edge_runtime.values import FieldValue, Line, PageInfo, RunResult


@dataclass(frozen=True, slots=True)
class PageFound:
    """A page was opened; its text is not known yet."""

    page: PageInfo


@dataclass(frozen=True, slots=True)
class LineRead:
    """A line became certain. Lines arrive in reading order within a page."""

    line: Line


@dataclass(frozen=True, slots=True)
class FieldDecided:
    """A field has its final value."""

    field: FieldValue


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of generated text."""

    text: str
    token_id: int


@dataclass(frozen=True, slots=True)
class Degraded:
    """Something was done less well than asked, and the run goes on."""

    reason: str
    stage: str


@dataclass(frozen=True, slots=True)
class StageDone:
    """A stage finished for this input."""

    stage: str
    wall_ms: float


@dataclass(frozen=True, slots=True)
class Result:
    """The last event of every run."""

    result: RunResult


Event: TypeAlias = PageFound | LineRead | FieldDecided | Token | Degraded | StageDone | Result
