"""Spans of one run, recorded from any thread.

A `Recorder` belongs to one run. Stages open spans with `with recorder.span("ocr.detect") as s:`
and add what they know (`s.n_tokens += 12`, `s.note(cache_hit=True)`). Names are
`<stage>.<step>`; the part before the dot is the stage of the timing table.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from edge_runtime.values import StageTiming


@dataclass(slots=True)
class Span:
    """One stretch of work on one thread; times in nanoseconds since the recorder's start."""

    name: str
    thread: int
    start_ns: int
    wall_ns: int = 0
    cpu_ns: int = 0
    n_tokens: int = 0
    notes: dict[str, Any] = field(default_factory=dict[str, Any])

    def note(self, **facts: Any) -> None:
        """Attach facts that end up in the trace file."""
        self.notes.update(facts)


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in time, nanoseconds since the recorder's start."""

    name: str
    at_ns: int
    notes: dict[str, Any]


class Recorder:
    """Collects spans and marks of one run; safe to use from several threads."""

    def __init__(self) -> None:
        self.origin_ns = time.perf_counter_ns()
        self.started_unix_s = time.time()
        self._spans: list[Span] = []
        self._marks: list[Mark] = []
        self._lock = threading.Lock()

    def now_ns(self) -> int:
        """Nanoseconds since this recorder was made."""
        return time.perf_counter_ns() - self.origin_ns

    @contextlib.contextmanager
    def span(self, name: str, **notes: Any) -> Generator[Span]:
        """Record the enclosed work; kept also when it raises (with `error` noted)."""
        cpu0 = time.thread_time_ns()
        start = self.now_ns()
        span = Span(name, threading.get_ident(), start, notes=notes)
        try:
            yield span
        except BaseException as err:
            span.notes["error"] = type(err).__name__
            raise
        finally:
            span.wall_ns = self.now_ns() - start
            span.cpu_ns = time.thread_time_ns() - cpu0
            with self._lock:
                self._spans.append(span)

    def mark(self, name: str, **notes: Any) -> int:
        """Record a point in time and return it."""
        at = self.now_ns()
        with self._lock:
            self._marks.append(Mark(name, at, notes))
        return at

    @property
    def spans(self) -> list[Span]:
        """A snapshot of finished spans."""
        with self._lock:
            return list(self._spans)

    @property
    def marks(self) -> list[Mark]:
        """A snapshot of marks."""
        with self._lock:
            return list(self._marks)

    def first_mark_ns(self, name: str) -> int | None:
        """When `name` was marked first, or None."""
        return min((m.at_ns for m in self.marks if m.name == name), default=None)

    def last_mark_ns(self, name: str) -> int | None:
        """When `name` was marked last, or None."""
        return max((m.at_ns for m in self.marks if m.name == name), default=None)

    def stages(self) -> tuple[StageTiming, ...]:
        """Totals per span name in order of first start. Spans may overlap in time."""
        rows: dict[str, list[Span]] = {}
        for span in sorted(self.spans, key=lambda s: s.start_ns):
            rows.setdefault(span.name, []).append(span)
        return tuple(
            StageTiming(
                name=name,
                count=len(spans),
                wall_ms=sum(s.wall_ns for s in spans) / 1e6,
                cpu_ms=sum(s.cpu_ns for s in spans) / 1e6,
                n_tokens=sum(s.n_tokens for s in spans),
            )
            for name, spans in rows.items()
        )


_current: contextvars.ContextVar[Recorder | None] = contextvars.ContextVar(
    "edge_runtime_recorder", default=None
)


def current() -> Recorder:
    """The recorder of this context, or a throw-away one when nothing records.

    Threads do not inherit it: hand the recorder over and enter `recording(recorder)` there.
    """
    return _current.get() or Recorder()


@contextlib.contextmanager
def recording(recorder: Recorder) -> Generator[Recorder]:
    """Make `recorder` the current one for the enclosed code."""
    token = _current.set(recorder)
    try:
        yield recorder
    finally:
        _current.reset(token)
