"""What is going on, told on standard error."""

from __future__ import annotations

import sys
import time

from edge_runtime.cli.ocr_run import Outcome
from edge_runtime.events import Event, FieldDecided, LineRead, PageFound
from edge_runtime.values import FieldStatus, RunResult

_REDRAW_EVERY_S = 0.1
_CLEAR_LINE = "\r\x1b[2K"


class Progress:
    """A live line while a document is read (terminals only), a line per finished one (batches).

    Args:
        n_total: How many documents there are.
        per_document: Whether finished documents are told at all.
        live: Whether a line may be redrawn; None asks standard error.
    """

    def __init__(self, n_total: int, *, per_document: bool, live: bool | None = None) -> None:
        self._n_total = n_total
        self._per_document = per_document
        self._live = sys.stderr.isatty() if live is None else live
        self._label = ""
        self._n_done = 0
        self._counts = [0, 0, 0]
        self._drawn_at_s = 0.0
        self._is_drawn = False

    def note(self, text: str) -> None:
        """Show what is being done before the first document."""
        if self._live:
            self._draw(text)

    def start(self, label: str) -> None:
        """A document begins."""
        self._label = label
        self._counts = [0, 0, 0]
        if self._live:
            self._draw(f"{self._position()}{label}")

    def watch(self, event: Event) -> None:
        """Count pages, lines and fields as they come."""
        for slot, kind in enumerate((PageFound, LineRead, FieldDecided)):
            if isinstance(event, kind):
                self._counts[slot] += 1
        now_s = time.monotonic()
        if self._live and now_s - self._drawn_at_s >= _REDRAW_EVERY_S:
            n_pages, n_lines, n_fields = self._counts
            self._drawn_at_s = now_s
            self._draw(
                f"{self._position()}{self._label}  page {n_pages}, "
                f"{n_lines} lines, {n_fields} fields"
            )

    def done(self, outcome: Outcome) -> None:
        """A document ended."""
        self._n_done += 1
        self.clear()
        if self._per_document:
            sys.stderr.write(self._finished_line(outcome.result) + "\n")
            sys.stderr.flush()

    def skipped(self, n_skipped: int) -> None:
        """Documents that have a result already."""
        self._n_done += n_skipped

    def clear(self) -> None:
        """Take the live line away, so that output starts on a clean line."""
        if self._is_drawn:
            sys.stderr.write(_CLEAR_LINE)
            sys.stderr.flush()
            self._is_drawn = False

    def _position(self) -> str:
        return f"[{self._n_done + 1}/{self._n_total}] " if self._n_total > 1 else ""

    def _finished_line(self, result: RunResult) -> str:
        parts = [f"[{self._n_done}/{self._n_total}] {result.source}: {result.status.value}"]
        if result.error:
            parts.append(str(result.error.get("message", "")))
        else:
            n_review = sum(field.status is FieldStatus.REVIEW for field in result.fields)
            parts.append(f"{result.timing.total_ms:.0f} ms")
            parts.append(f"{len(result.document.lines)} lines")
            if result.fields:
                parts.append(f"{len(result.fields)} fields, {n_review} to review")
        return ", ".join(part for part in parts if part)

    def _draw(self, text: str) -> None:
        import shutil

        room = shutil.get_terminal_size().columns - 1
        sys.stderr.write(_CLEAR_LINE + text[:room])
        sys.stderr.flush()
        self._is_drawn = True
