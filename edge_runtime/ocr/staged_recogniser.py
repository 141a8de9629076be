"""Detection, order, recognition: the way from a page to lines that all engines share."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from edge_runtime import trace
from edge_runtime.errors import Cancelled, SessionPoisoned
from edge_runtime.ocr.ctc import Glyph
from edge_runtime.ocr.line_strips import cut_strip
from edge_runtime.ocr.page_image import PageImage, Pixels
from edge_runtime.ocr.probability_map import FoundBoxes
from edge_runtime.ocr.reading_order import reading_order
from edge_runtime.ocr.upright_lines import is_along_page, text_directions
from edge_runtime.ocr.word_boxes import along_quad, line_text, mean_confidence, split_words
from edge_runtime.trace import Recorder
from edge_runtime.values import Box, Line, Quad, Word

Corners = npt.NDArray[np.float64]


class Detector(Protocol):
    """Finds lines on a page; quads (n, 4, 2) in page pixels."""

    def detect(self, pixels: Pixels, *, cancel: Callable[[], bool] | None = None) -> FoundBoxes:
        """Rectangles around lines."""
        ...


class StripReader(Protocol):
    """Reads one strip of text; called from several threads at once when `n_workers` > 1."""

    def read(self, strip: Pixels) -> list[Glyph]:
        """Characters with their place along the strip."""
        ...


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How lines are handed out.

    Attributes:
        n_workers: Lines read at the same time.
        n_ahead: Lines per worker that are read before the caller has taken the earlier ones.
        min_confidence: Lines below this are noise and left out.
    """

    n_workers: int = 2
    n_ahead: int = 8
    min_confidence: float = 0.5


@dataclass(frozen=True, slots=True)
class _Reading:
    corners: Corners
    glyphs: list[Glyph]
    confidence: float


class StagedRecogniser:
    """A recogniser made of a detector and a reader of strips. See `engine.Recogniser`."""

    def __init__(
        self, name: str, detector: Detector, reader: StripReader, options: ReadOptions
    ) -> None:
        self._name = name
        self._detector = detector
        self._reader = reader
        self._options = options
        self._workers: ThreadPoolExecutor | None = ThreadPoolExecutor(
            options.n_workers, thread_name_prefix="ocr"
        )

    @property
    def name(self) -> str:
        """Short name of the engine."""
        return self._name

    def read(self, page: PageImage, *, cancel: Callable[[], bool] | None = None) -> Iterator[Line]:
        """Yield the lines of a page in reading order; see `engine.Recogniser.read`."""
        if self._workers is None:
            raise SessionPoisoned("This recogniser is closed.", hint="open a new one", stage="ocr")
        recorder = trace.current()
        _check(cancel)
        with recorder.span("ocr.detect") as span:
            quads = self._detector.detect(page.pixels, cancel=cancel).quads
            quads = text_directions(quads)
            order = reading_order(quads)
            span.note(n_boxes=len(quads))
        ordered = [quads[i] for i in order.order]
        index = 0
        for row, reading in zip(
            order.rows, self._readings(page, ordered, cancel, recorder), strict=True
        ):
            text = line_text(reading.glyphs)
            if not text or reading.confidence < self._options.min_confidence:
                continue
            yield _line(page, reading, text, index=index, row=row)
            index += 1

    def close(self) -> None:
        """Stop the worker threads and let go of the models."""
        workers, self._workers = self._workers, None
        if workers is not None:
            workers.shutdown(wait=True, cancel_futures=True)

    def _readings(
        self,
        page: PageImage,
        quads: list[Corners],
        cancel: Callable[[], bool] | None,
        recorder: Recorder,
    ) -> Iterator[_Reading]:
        """Readings in the order of `quads`, computed ahead by the workers."""
        waiting: deque[Future[_Reading]] = deque()
        todo = iter(quads)
        n_open = self._options.n_workers * self._options.n_ahead
        try:
            for _ in quads:
                _check(cancel)
                for corners in itertools.islice(todo, n_open - len(waiting)):
                    waiting.append(self._submit(page.pixels, corners, recorder))
                with recorder.span("ocr.recognise"):
                    reading = waiting.popleft().result()
                yield reading
        finally:
            for future in waiting:
                future.cancel()

    def _submit(self, pixels: Pixels, corners: Corners, recorder: Recorder) -> Future[_Reading]:
        if self._workers is None:
            raise Cancelled("The recogniser was closed while it read.", stage="ocr")
        return self._workers.submit(self._read_line, pixels, corners, recorder)

    def _read_line(self, pixels: Pixels, corners: Corners, recorder: Recorder) -> _Reading:
        with recorder.span("ocr.line"):
            best = self._read_strip(pixels, corners)
            if not is_along_page(corners):
                # Text that runs down the page may as well run up it.
                other = self._read_strip(pixels, np.roll(corners, 2, axis=0))
                if other.confidence > best.confidence:
                    return other
            return best

    def _read_strip(self, pixels: Pixels, corners: Corners) -> _Reading:
        glyphs = self._reader.read(cut_strip(pixels, corners))
        return _Reading(corners, glyphs, mean_confidence(glyphs))


def _check(cancel: Callable[[], bool] | None) -> None:
    if cancel is not None and cancel():
        raise Cancelled("Stopped while reading a page.", stage="ocr")


def _line(page: PageImage, reading: _Reading, text: str, *, index: int, row: int) -> Line:
    words = tuple(
        Word(
            span.text,
            _original(page, along_quad(reading.corners, span.start, span.end)),
            round(span.confidence, 4),
        )
        for span in split_words(reading.glyphs)
    )
    inside = np.clip(reading.corners, 0.0, (page.width, page.height))
    x0, y0 = inside.min(axis=0)
    x1, y1 = inside.max(axis=0)
    return Line(
        page=page.info.index,
        index=index,
        text=text,
        confidence=round(reading.confidence, 4),
        quad=_original(page, reading.corners),
        reading=Box(float(x0), float(y0), float(x1), float(y1)),
        row=row,
        words=words,
    )


def _original(page: PageImage, corners: Corners) -> Quad:
    """Corners in original pixels, clipped to the page."""
    inside = np.clip(corners, 0.0, (page.width, page.height))
    a, b, c, d = (
        (round(float(x), 2), round(float(y), 2)) for x, y in page.to_original.apply(inside)
    )
    return Quad((a, b, c, d))
