"""What every engine for text recognition does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from edge_runtime.ocr.page_image import PageImage
from edge_runtime.values import Line


class Recogniser(Protocol):
    """Reads the lines of a page.

    `read` yields lines in reading order, each as soon as it is recognised: `index` counts from
    0, `row` is shared by lines that stand beside each other, `quad` and word quads are pixels of
    the original raster, `reading` is pixels of the page given. A page without text yields
    nothing. The words of a line, joined with single spaces, are its text.
    """

    @property
    def name(self) -> str:
        """Short name of the engine, for results and reports."""
        ...

    def read(self, page: PageImage, *, cancel: Callable[[], bool] | None = None) -> Iterator[Line]:
        """Yield the lines of `page`.

        Raises:
            Cancelled: `cancel` returned true; it is asked before detection, between pieces of a
                large page, and between lines.
            StageError: the native library failed.
        """
        ...

    def close(self) -> None:
        """Free models and threads. May be called twice."""
        ...
