"""What one run carries from thread to thread: events, marks, deadline, cancelling."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from edge_runtime.errors import Cancelled, DeadlineExceeded
from edge_runtime.events import Degraded, Event, FieldDecided, Token
from edge_runtime.trace import Recorder
from edge_runtime.values import Timing

LINE_MARK = "line"
OUTPUT_MARK = "output"


@dataclass(frozen=True, slots=True)
class _Failure:
    error: BaseException


class RunState:
    """One run of a pipeline: a queue of events from the worker to the caller.

    Args:
        recorder: Spans and marks of this run.
        deadline_s: Seconds from now after which work stops, None for never.
    """

    def __init__(self, recorder: Recorder, *, deadline_s: float | None) -> None:
        self.recorder = recorder
        self.degraded: list[str] = []
        self._deadline = None if deadline_s is None else time.monotonic() + deadline_s
        self._stop = threading.Event()
        self._queue: queue.SimpleQueue[Event | _Failure | None] = queue.SimpleQueue()

    def emit(self, event: Event) -> None:
        """Hand an event to the caller; marks the first decided field or token."""
        if isinstance(event, (FieldDecided, Token)):
            self.recorder.mark(OUTPUT_MARK)
        self._queue.put(event)

    def degrade(self, reason: str, *, stage: str) -> None:
        """Note that something was done less well than asked; each reason once."""
        if reason not in self.degraded:
            self.degraded.append(reason)
            self.emit(Degraded(reason, stage))

    def finish(self, error: BaseException | None = None) -> None:
        """Close the queue, with the error that ended the work if there was one."""
        self._queue.put(None if error is None else _Failure(error))

    def stop(self) -> None:
        """Ask the worker to stop at the next opportunity."""
        self._stop.set()

    def should_stop(self) -> bool:
        """For cancel callbacks: the caller left, or time is up."""
        late = self._deadline is not None and time.monotonic() > self._deadline
        return late or self._stop.is_set()

    def check(self, stage: str) -> None:
        """Raise when work has to stop.

        Raises:
            Cancelled: the caller left.
            DeadlineExceeded: time is up.
        """
        if self._stop.is_set():
            raise Cancelled("The run was stopped.", stage=stage)
        if self.should_stop():
            raise DeadlineExceeded(
                "The deadline passed before the document was done.",
                hint="allow more time, fewer pages or a lower resolution",
                stage=stage,
            )

    def events(self) -> Iterator[Event]:
        """Events as they come, until `finish`; raises the error that ended the work."""
        while (item := self._queue.get()) is not None:
            if isinstance(item, _Failure):
                raise item.error
            yield item

    def timing(self) -> Timing:
        """Totals of the run so far."""
        recorder = self.recorder
        first = recorder.first_mark_ns(OUTPUT_MARK)
        last_line = recorder.last_mark_ns(LINE_MARK)
        after_input = None
        if first is not None and last_line is not None:
            after_input = max(0, first - last_line) / 1e6
        return Timing(
            total_ms=recorder.now_ns() / 1e6,
            ttft_ms=None if first is None else first / 1e6,
            ttft_after_input_ms=after_input,
            stages=recorder.stages(),
            peak_rss_mb=peak_rss_mb(),
        )


def peak_rss_mb() -> float | None:
    """The largest resident memory of this process so far, in MB of 2**20 bytes.

    None where the platform does not tell (Windows).
    """
    try:
        import resource
    except ImportError:
        return None
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
