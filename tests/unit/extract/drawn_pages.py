"""Documents laid out on a grid of characters, for tests that need places on a page."""

from __future__ import annotations

import re

from edge_runtime.values import Box, Document, Line, Page, PageInfo, Quad, Word

CHAR_WIDTH = 10.0
ROW_HEIGHT = 30.0
TEXT_HEIGHT = 20.0


def line_at(
    text: str,
    index: int,
    *,
    x: float = 0.0,
    y: float | None = None,
    page: int = 0,
    score: float = 0.99,
) -> Line:
    """A line of monospaced text with a box for every word."""
    top = index * ROW_HEIGHT if y is None else y

    def box(start: int, end: int) -> Box:
        return Box(x + start * CHAR_WIDTH, top, x + end * CHAR_WIDTH, top + TEXT_HEIGHT)

    words = tuple(
        Word(m.group(), Quad.from_box(box(*m.span())), score) for m in re.finditer(r"\S+", text)
    )
    whole = box(0, len(text))
    return Line(page, index, text, score, Quad.from_box(whole), whole, index, words)


def document_of(*pages: str) -> Document:
    """Pages drawn as text: every printed row is one row, three blanks part lines."""
    made: list[Page] = []
    for number, drawing in enumerate(pages):
        lines: list[Line] = []
        for row, text in enumerate(drawing.strip("\n").splitlines()):
            for match in re.finditer(r"\S+(?: {1,2}\S+)*", text):
                lines.append(
                    line_at(
                        match.group(),
                        len(lines),
                        x=match.start() * CHAR_WIDTH,
                        y=row * ROW_HEIGHT,
                        page=number,
                    )
                )
        made.append(Page(PageInfo(number, 1000, 1400), tuple(lines)))
    return Document("drawn", tuple(made))


def lines_of(*texts: str) -> tuple[Line, ...]:
    """One line a row."""
    return tuple(line_at(text, index) for index, text in enumerate(texts))
