"""Places on the page for a stretch of a line's text."""

from __future__ import annotations

from edge_runtime.values import Evidence, Line, Quad, Word


def word_spans(line: Line) -> list[tuple[int, int, Word]]:
    """Start and end of each word within `line.text`; words that are not there are left out."""
    spans: list[tuple[int, int, Word]] = []
    position = 0
    for word in line.words:
        if not word.text:
            continue
        start = line.text.find(word.text, position)
        if start < 0:
            continue
        position = start + len(word.text)
        spans.append((start, position, word))
    return spans


def join_quads(first: Quad, last: Quad) -> Quad:
    """The quad from where `first` begins to where `last` ends, along the reading direction."""
    return Quad((first.points[0], last.points[1], last.points[2], first.points[3]))


def evidence_for_span(line: Line, start: int, end: int) -> Evidence:
    """Evidence for `line.text[start:end]`: the quad of its words, or of the line without words."""
    inside = [word for a, b, word in word_spans(line) if a < end and b > start]
    quad = join_quads(inside[0].quad, inside[-1].quad) if inside else line.quad
    return Evidence(line.page, line.index, quad, line.text[start:end])
