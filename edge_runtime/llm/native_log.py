"""What llama.cpp says, kept in memory so that errors can quote it.

llama.cpp explains a refusal only in its log; its functions return a null pointer or a number. The
callback is installed once per process, replaces the default printing to stderr, and keeps the
last lines of level info and above.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

# enum ggml_log_level
DEBUG, INFO, WARN, ERROR, CONT = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line; `number` counts all lines ever kept."""

    number: int
    level: int
    text: str


class NativeLog:
    """A bounded record of log lines; safe to write from any thread."""

    def __init__(self, *, n_lines: int = 512) -> None:
        self._lines: deque[LogLine] = deque(maxlen=n_lines)
        self._lock = threading.Lock()
        self._n_written = 0
        self._partial = ""
        self._partial_level = INFO

    def write(self, level: int, text: str) -> None:
        """Take a piece of log text, which may be part of a line or several lines."""
        if level == DEBUG:
            return
        with self._lock:
            if level != CONT:
                self._finish_partial()
                self._partial_level = level
            *whole, rest = (self._partial + text).split("\n")
            self._partial = ""
            for line in whole:
                self._keep(line)
            self._partial = rest

    def mark(self) -> int:
        """A place in the log, for `since`."""
        with self._lock:
            self._finish_partial()
            return self._n_written

    def since(self, mark: int, *, level: int = INFO) -> list[LogLine]:
        """Kept lines after `mark` that are at least as grave as `level`."""
        with self._lock:
            self._finish_partial()
            return [line for line in self._lines if line.number >= mark and line.level >= level]

    def quote(self, mark: int, *, n_lines: int = 8) -> str:
        """The last warnings and errors after `mark`, or else the last lines of any level."""
        lines = self.since(mark, level=WARN) or self.since(mark)
        return "\n".join(line.text for line in lines[-n_lines:])

    def _finish_partial(self) -> None:
        if self._partial:
            line, self._partial = self._partial, ""
            self._keep(line)

    def _keep(self, line: str) -> None:
        if line.strip(" ."):  # loading prints dots as a progress bar
            self._lines.append(LogLine(self._n_written, self._partial_level, line.rstrip()))
            self._n_written += 1


NATIVE_LOG = NativeLog()
_installed: list[Any] = []  # the C callback must outlive the library's use of it


def capture(library: Any) -> NativeLog:
    """Send llama.cpp's log to `NATIVE_LOG`; later calls change nothing."""
    if not _installed:

        def receive(level: int, text: bytes | None, _user_data: Any) -> None:
            if text and level != DEBUG:
                NATIVE_LOG.write(level, text.decode("utf-8", errors="replace"))

        callback = library.llama_log_callback(receive)
        _installed.append(callback)
        library.llama_log_set(callback, None)
    return NATIVE_LOG
