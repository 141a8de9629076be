"""Stretches of printed lines that stand apart: cells, labels, values.

A recogniser may return a whole row as one line, or a word at a time. Segments are what a reader
sees as units: lines cut at wide gaps between words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from edge_runtime.extract.evidence import evidence_for_span, word_spans
from edge_runtime.extract.grounding import LineSpan
from edge_runtime.values import Box, Evidence, Line

_WIDE_GAP = 1.3
"""A gap between words above this many line heights separates units."""


@dataclass(frozen=True, slots=True)
class Segment:
    """`text` = `line.text[start:end]`; `box` in reading pixels; `position` counts all lines."""

    line: Line
    position: int
    start: int
    end: int
    text: str
    box: Box

    @property
    def height(self) -> float:
        """Of the text, in reading pixels."""
        return max(1.0, self.box.height)

    @property
    def span(self) -> LineSpan:
        """The stretch of text this is."""
        return LineSpan(self.position, self.start, self.end)

    def evidence(self) -> Evidence:
        """Its place on the page."""
        return evidence_for_span(self.line, self.start, self.end)


def _along(line: Line, x: float, y: float) -> float:
    """How far along the line's baseline a point of the original raster is, 0..1."""
    (x0, y0), (x1, y1) = line.quad.points[0], line.quad.points[1]
    dx, dy = x1 - x0, y1 - y0
    length2 = dx * dx + dy * dy
    return ((x - x0) * dx + (y - y0) * dy) / length2 if length2 > 0 else 0.0


def horizontal_extent(line: Line, start: int, end: int) -> tuple[float, float]:
    """Reading x of `line.text[start:end]`: from its words, else in proportion to characters."""
    box, n = line.reading, max(1, len(line.text))
    inside = [(a, b, w) for a, b, w in word_spans(line) if a < end and b > start]
    if not inside:
        return box.x0 + box.width * start / n, box.x0 + box.width * end / n
    edges: list[float] = []
    for index, (a, b, word) in ((0, inside[0]), (1, inside[-1])):
        left = _along(line, *word.quad.points[0])
        right = _along(line, *word.quad.points[1])
        cut = max(a, start) if index == 0 else min(b, end)
        share = left + (right - left) * (cut - a) / max(1, b - a)
        edges.append(box.x0 + box.width * min(1.0, max(0.0, share)))
    return edges[0], max(edges[1], edges[0])


def cut(line: Line, position: int, start: int, end: int) -> Segment | None:
    """The segment `line.text[start:end]` without blanks at its ends; None when nothing is left."""
    text = line.text[start:end]
    start += len(text) - len(text.lstrip())
    text = text.strip()
    if not text:
        return None
    end = start + len(text)
    if start == 0 and end == len(line.text.rstrip()):
        return Segment(line, position, start, end, text, line.reading)
    x0, x1 = horizontal_extent(line, start, end)
    return Segment(line, position, start, end, text, Box(x0, line.reading.y0, x1, line.reading.y1))


def split_at_gaps(line: Line, position: int, *, wide_gap: float = _WIDE_GAP) -> list[Segment]:
    """The units of one line."""
    spans = word_spans(line)
    cuts = [0]
    height = max(1.0, line.reading.height)
    for (a0, b0, _), (a1, b1, _) in pairwise(spans):
        gap = horizontal_extent(line, a1, b1)[0] - horizontal_extent(line, a0, b0)[1]
        if gap > wide_gap * height:
            cuts.append(a1)
    cuts.append(len(line.text))
    found = (cut(line, position, a, b) for a, b in pairwise(cuts))
    return [segment for segment in found if segment is not None]


def segments_of(lines: Sequence[Line]) -> list[Segment]:
    """Units of all lines, in the order of the lines."""
    return [s for position, line in enumerate(lines) for s in split_at_gaps(line, position)]


def y_overlap(a: Box, b: Box) -> float:
    """Shared height as a share of the lower of both boxes, 0..1."""
    shared = min(a.y1, b.y1) - max(a.y0, b.y0)
    return max(0.0, shared) / max(1.0, min(a.height, b.height))


def x_overlap(a: Box, b: Box) -> float:
    """Shared width as a share of the narrower of both boxes, 0..1."""
    shared = min(a.x1, b.x1) - max(a.x0, b.x0)
    return max(0.0, shared) / max(1.0, min(a.width, b.width))


def typical_height(segments: Iterable[Segment]) -> float:
    """Median text height in reading pixels, 1 without segments."""
    heights = [s.height for s in segments]
    return median(heights) if heights else 1.0
