"""Frozen values that stages hand to one another.

All coordinates are pixels of the *original* raster (as stored in the file, before EXIF
orientation, rotation, scaling or tiling), x to the right and y down. For a PDF the original
raster is the page rendered upright at `Page.dpi`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """An axis-aligned rectangle: `x0 <= x1`, `y0 <= y1`."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        """Horizontal extent in pixels."""
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        """Vertical extent in pixels."""
        return self.y1 - self.y0

    @property
    def center(self) -> Point:
        """The middle."""
        return ((self.x0 + self.x1) / 2, (self.y0 + self.y1) / 2)

    def union(self, other: Box) -> Box:
        """The smallest box that holds both."""
        return Box(
            min(self.x0, other.x0),
            min(self.y0, other.y0),
            max(self.x1, other.x1),
            max(self.y1, other.y1),
        )

    def intersection_area(self, other: Box) -> float:
        """Area shared with `other`, 0 when apart."""
        w = min(self.x1, other.x1) - max(self.x0, other.x0)
        h = min(self.y1, other.y1) - max(self.y0, other.y0)
        return max(0.0, w) * max(0.0, h)


@dataclass(frozen=True, slots=True)
class Quad:
    """Four corners, clockwise as read: first the corner where the text begins, at its top."""

    points: tuple[Point, Point, Point, Point]

    @property
    def box(self) -> Box:
        """The axis-aligned box around the corners."""
        xs = [p[0] for p in self.points]
        ys = [p[1] for p in self.points]
        return Box(min(xs), min(ys), max(xs), max(ys))

    @classmethod
    def from_box(cls, box: Box) -> Quad:
        """The upright quad of a box."""
        return cls(((box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)))


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a line."""

    text: str
    quad: Quad
    confidence: float


class LineSource(StrEnum):
    """Where the text of a line comes from."""

    OCR = "ocr"
    TEXT_LAYER = "text_layer"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text on a page, as far as it becomes certain.

    `reading` is the box in *reading* pixels (upright page after rotation was undone): layout
    reasoning (above, beside, column) uses it; `quad` is for people and files.
    `row` numbers lines that stand beside each other (a table row) alike.
    """

    page: int
    index: int
    text: str
    confidence: float
    quad: Quad
    reading: Box
    row: int = 0
    words: tuple[Word, ...] = ()
    source: LineSource = LineSource.OCR


@dataclass(frozen=True, slots=True)
class PageInfo:
    """What is known of a page before its text is."""

    index: int
    width: int
    height: int
    rotation: int = 0
    dpi: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page and its lines in reading order."""

    info: PageInfo
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """All pages of one input."""

    source: str
    pages: tuple[Page, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """Lines of all pages in reading order."""
        return tuple(line for page in self.pages for line in page.lines)


class FieldStatus(StrEnum):
    """Whether a field may be used without a look."""

    OK = "ok"
    REVIEW = "review"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place on a page that shows a field's value."""

    page: int
    line: int
    quad: Quad
    text: str


@dataclass(frozen=True, slots=True)
class FieldValue:
    """One extracted field.

    `path` is a JSON-pointer-like path (`total`, `items/0/price`). `value` is the normalised JSON
    value (None when missing), `raw` the text as printed, `confidence` the calibrated probability
    that `value` is right, `reasons` why a field is not `ok` or what was noticed.
    """

    path: str
    value: Any
    raw: str | None
    confidence: float
    status: FieldStatus
    evidence: tuple[Evidence, ...] = ()
    reasons: tuple[str, ...] = ()


class ResultStatus(StrEnum):
    """How a whole run ended."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StageTiming:
    """One row of the timing table: totals over all spans of a stage."""

    name: str
    count: int
    wall_ms: float
    cpu_ms: float
    n_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """Where the time went.

    `ttft_ms`: start of the run to the first token or decided field.
    `ttft_after_input_ms`: last recognised line to the first token or decided field (0 when it
    came earlier).
    """

    total_ms: float
    ttft_ms: float | None = None
    ttft_after_input_ms: float | None = None
    stages: tuple[StageTiming, ...] = ()
    peak_rss_mb: float | None = None


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A model that took part in a result."""

    role: str
    name: str
    sha256: str | None = None
    licence: str | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """The outcome of one document or recording."""

    source: str
    status: ResultStatus
    document: Document
    data: Any
    fields: tuple[FieldValue, ...]
    timing: Timing
    models: tuple[ModelUse, ...] = ()
    degraded: tuple[str, ...] = ()
    schema_name: str | None = None
    error: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
