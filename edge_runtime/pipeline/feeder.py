"""Prefills the prompt in the background while lines are still being recognised.

The feeder owns the session until `finish()` returns: it keeps the cache equal to the prompt so far,
rounded down to whole chunks, so that what is left when the last line arrives is less than a chunk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edge_runtime.errors import Cancelled, EdgeRuntimeError
from edge_runtime.llm.engine import Session
from edge_runtime.llm.prompt import PromptCompiler, Segment
from edge_runtime.trace import Recorder, recording

CHUNK_TOKENS = 64


@dataclass(frozen=True, slots=True)
class FeedReport:
    """How much of the prompt was in the cache when the input ended.

    `n_tokens` counts the whole prompt so far, `n_backlog` what was not prefilled yet.
    """

    n_tokens: int
    n_backlog: int
    n_prefilled: int


class PromptFeeder:
    """A thread that calls `session.sync` with an ever longer prompt.

    Args:
        session: The session to keep in step.
        compiler: Turns segments into tokens.
        prefix: The pinned segments that every prompt begins with.
        max_tokens: Stop feeding here; the rest of the document does not fit.
        recorder: Receives the spans of this thread.
    """

    def __init__(
        self,
        session: Session,
        compiler: PromptCompiler,
        *,
        prefix: Sequence[Segment],
        max_tokens: int,
        recorder: Recorder,
    ) -> None:
        self._session = session
        self._compiler = compiler
        self._segments = list(prefix)
        self._max_tokens = max_tokens
        self._recorder = recorder
        self._tokens: tuple[int, ...] = tuple(compiler.open_tokens(self._segments))
        self._n_prefix = len(self._tokens)
        self._n_synced = 0
        self._n_prefilled = 0
        self._stopping = False
        self._cancelled = False
        self._error: EdgeRuntimeError | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="edge-prefill", daemon=True)

    def start(self) -> None:
        """Begin prefilling the prefix."""
        self._thread.start()

    def add(self, segment: Segment) -> None:
        """Append a piece of the document; returns at once."""
        with self._changed:
            self._segments.append(segment)
            self._tokens = tuple(self._compiler.open_tokens(self._segments))
            self._changed.notify_all()

    @property
    def n_backlog(self) -> int:
        """Tokens that are known but not in the cache."""
        with self._changed:
            return min(len(self._tokens), self._max_tokens) - self._n_synced

    def wait_below(self, n_tokens: int, cancelled: Callable[[], bool]) -> None:
        """Back-pressure: block until at most `n_tokens` are waiting."""
        with self._changed:
            while self._alive() and self._backlog_locked() > n_tokens and not cancelled():
                self._changed.wait(0.05)

    def finish(self) -> FeedReport:
        """Stop after the chunk at hand and give the session back.

        Raises:
            EdgeRuntimeError: what went wrong in the thread.
        """
        with self._changed:
            self._stopping = True
            backlog = self._backlog_locked()
            self._changed.notify_all()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return FeedReport(len(self._tokens), backlog, self._n_prefilled)

    def cancel(self) -> None:
        """Stop as soon as possible, in the middle of a chunk if the engine can."""
        with self._changed:
            self._stopping = self._cancelled = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def error(self) -> EdgeRuntimeError | None:
        """What ended the feeding before its time, or None."""
        return self._error

    @property
    def overflowed(self) -> bool:
        """Whether the document is longer than the room for it."""
        with self._changed:
            return len(self._tokens) > self._max_tokens

    def _alive(self) -> bool:
        return self._thread.is_alive() and not self._stopping

    def _backlog_locked(self) -> int:
        return min(len(self._tokens), self._max_tokens) - self._n_synced

    def _next_target(self) -> tuple[int, ...] | None:
        """The tokens to sync next, or None to stop. Waits for a whole chunk."""
        with self._changed:
            while True:
                if self._stopping:
                    return None
                if self._n_synced == 0:
                    # the cache may still hold the prefix of the run before: never cut into it
                    return self._tokens[: self._n_prefix]
                room = min(len(self._tokens), self._max_tokens)
                whole = room - (room - self._n_synced) % CHUNK_TOKENS
                if whole > self._n_synced:
                    return self._tokens[: min(whole, self._n_synced + 2 * CHUNK_TOKENS)]
                self._changed.wait()

    def _work(self) -> None:
        with recording(self._recorder):
            while (target := self._next_target()) is not None:
                try:
                    with self._recorder.span("llm.prefill") as span:
                        report = self._session.sync(
                            target, cancel=lambda: self._cancelled, keep_logits=False
                        )
                        span.n_tokens = report.n_prefilled
                        span.note(n_reused=report.n_reused, n_restored=report.n_restored)
                except Cancelled:
                    return
                except EdgeRuntimeError as err:
                    self._error = err
                    return
                with self._changed:
                    self._n_synced = len(target)
                    self._n_prefilled += report.n_prefilled
                    self._changed.notify_all()
