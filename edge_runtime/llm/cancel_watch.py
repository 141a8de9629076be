"""Carries a cancel check into native code that runs for seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

_POLL_S = 0.01


class CancelWatch:
    """While entered, asks `cancel` now and then on its own thread and reports the first yes.

    Args:
        cancel: Returns true to stop; an exception counts as a yes and is kept in `error`.
        report: Called once, from the watching thread.
    """

    def __init__(self, cancel: Callable[[], bool], report: Callable[[], None]) -> None:
        self._cancel = cancel
        self._report = report
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="cancel-watch", daemon=True)
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_POLL_S):
            try:
                wanted = self._cancel()
            except Exception as err:  # noqa: BLE001 - raised again on the caller's thread
                self.error = err
                wanted = True
            if wanted:
                self._report()
                return
