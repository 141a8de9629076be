"""Progress of pulls on standard error: bars on a terminal, a line per step elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

from edge_runtime.models.progress import Phase, PullProgress

_WORDS = {
    Phase.WAIT: "another process fetches it, waiting",
    Phase.DOWNLOAD: "downloading",
    Phase.UNPACK: "unpacking",
    Phase.CHECK: "checking",
    Phase.DONE: "done",
}


class PullDisplay:
    """Shows what `ModelStore.pull` and `verify` report.

    Args:
        quiet: Show notices only.
        live: Whether bars may be redrawn; None asks standard error.
    """

    def __init__(self, *, quiet: bool = False, live: bool | None = None) -> None:
        self._quiet = quiet
        self._live = not quiet and (sys.stderr.isatty() if live is None else live)
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._last: tuple[str, Phase] | None = None

    def __enter__(self) -> Self:
        if self._live:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def say(self, text: str) -> None:
        """A line that stays, unless the display is quiet."""
        if not self._quiet:
            self.notice(text)

    def notice(self, text: str) -> None:
        """A line that stays and is shown in any case."""
        if self._bars is not None:
            self._bars.console.print(text, markup=False, highlight=False)
        else:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def show(self, progress: PullProgress) -> None:
        """Take a report of the store."""
        if self._bars is not None:
            self._draw(progress)
        elif not self._quiet and (progress.file, progress.phase) != self._last:
            self._last = (progress.file, progress.phase)
            if progress.phase is not Phase.DONE:
                self.say(f"  {progress.file}: {_WORDS[progress.phase]}")

    def _draw(self, progress: PullProgress) -> None:
        text = f"{progress.file} {_WORDS[progress.phase]}"
        if progress.file not in self._tasks:
            self._tasks[progress.file] = self._bars.add_task(text, total=progress.total_bytes)
        self._bars.update(
            self._tasks[progress.file],
            description=text,
            completed=progress.done_bytes,
            total=progress.total_bytes,
        )
