"""One document through a pipeline: always a result, never a surprise."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from edge_runtime.cli.error_report import describe
from edge_runtime.cli.ocr_inputs import OcrInput
from edge_runtime.errors import (
    Cancelled,
    ConfigError,
    ModelError,
    ModelNotFound,
    SchemaError,
    StageError,
)
from edge_runtime.events import Event, LineRead, PageFound, Result
from edge_runtime.trace import Recorder
from edge_runtime.values import Document, Line, Page, PageInfo, ResultStatus, RunResult, Timing

CONCERNS_EVERY_INPUT = (Cancelled, ConfigError, ModelError, ModelNotFound, SchemaError)
"""Errors that every further document would meet too, so that going on makes no sense."""


class RunsDocuments(Protocol):
    """What the command needs of `edge_runtime.pipeline.Pipeline`."""

    def warm_up(self) -> object:
        """Load the models and prepare the prompt's beginning."""
        ...

    def events(self, source: Any) -> Generator[Event]:
        """Read one document; the last event is its `Result`."""
        ...

    @property
    def recorder(self) -> Recorder | None:
        """Spans of the last run."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """A result, and the exit code if it is the only one."""

    result: RunResult
    exit_code: int = 0

    @property
    def is_failed(self) -> bool:
        """Whether there is no usable result."""
        return self.result.status is ResultStatus.FAILED


def run_one(
    pipeline: RunsDocuments, document: OcrInput, *, watch: Callable[[Event], None]
) -> Outcome:
    """Read one document; an error becomes a failed result that keeps the lines read so far.

    Raises:
        EdgeRuntimeError: one of `CONCERNS_EVERY_INPUT`.
        KeyboardInterrupt: passes through.
    """
    start = time.perf_counter()
    ending: BaseException = StageError("The pipeline ended without a result.")
    pages: dict[int, tuple[PageInfo, list[Line]]] = {}
    try:
        # closed explicitly: an interrupt in here must stop the work before models are freed
        with contextlib.closing(pipeline.events(document.source)) as events:
            for event in events:
                watch(event)
                if isinstance(event, PageFound):
                    pages[event.page.index] = (event.page, [])
                elif isinstance(event, LineRead) and event.line.page in pages:
                    pages[event.line.page][1].append(event.line)
                elif isinstance(event, Result):
                    result = replace(event.result, source=document.label)
                    return Outcome(result, int(result.status is ResultStatus.FAILED))
    except CONCERNS_EVERY_INPUT:
        raise
    except Exception as err:  # noqa: BLE001 - one document must not take the others down
        ending = err
    read = tuple(Page(info, tuple(lines)) for info, lines in pages.values())
    facts, code = describe(ending)
    total_ms = 1e3 * (time.perf_counter() - start)
    return Outcome(_failed(document.label, read, total_ms, facts), code)


def _failed(
    label: str, pages: tuple[Page, ...], total_ms: float, facts: dict[str, Any]
) -> RunResult:
    return RunResult(
        source=label,
        status=ResultStatus.FAILED,
        document=Document(label, pages),
        data=None,
        fields=(),
        timing=Timing(total_ms=total_ms),
        error=facts,
    )
