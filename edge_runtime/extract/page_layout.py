"""Where lines stand relative to each other: visual rows, runs of text and chains downwards.

Recognition may return the parts of one printed line as several boxes, or a label and its value as
one. Everything that reasons about neighbours asks a `Layout`, which looks at reading boxes only
and so does not depend on the order in which lines were recognised.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from edge_runtime.values import Box, Document, Line

_SAME_ROW_OVERLAP = 0.45
_JOIN_GAP = 0.8  # of the line height: parts of one printed line
_CHAIN_GAP = 1.3  # of the line height: the next line of the same block
_CHAIN_OVERLAP = 0.25


@dataclass(frozen=True, slots=True)
class Run:
    """Boxes that read as one printed line.

    `index` counts runs of the document from top to bottom, `row` its visual rows, `column` the
    runs of a row from left to right.
    """

    index: int
    page: int
    row: int
    column: int
    text: str
    lines: tuple[Line, ...]
    box: Box

    @property
    def confidence(self) -> float:
        """Of the least certain box."""
        return min(line.confidence for line in self.lines)


@dataclass(slots=True)
class Layout:
    """All runs of a document and how they neighbour each other.

    `line_height` is the median height of all lines in reading pixels, `extent` the box around
    each page's text.
    """

    runs: list[Run]
    rows: list[list[Run]]
    line_height: dict[int, float]
    extent: dict[int, Box]
    _below: dict[int, Run | None] = field(default_factory=dict[int, "Run | None"])
    _above: dict[int, Run | None] = field(default_factory=dict[int, "Run | None"])

    def right_of(self, run: Run) -> Run | None:
        """The next run of the same visual row."""
        row = self.rows[run.row]
        return row[run.column + 1] if run.column + 1 < len(row) else None

    def left_of(self, run: Run) -> Run | None:
        """The previous run of the same visual row."""
        return self.rows[run.row][run.column - 1] if run.column else None

    def below(self, run: Run) -> Run | None:
        """The run that continues this one's block downwards, if there is one close enough."""
        if run.index not in self._below:
            self._below[run.index] = self._vertical(run, 1)
        return self._below[run.index]

    def above(self, run: Run) -> Run | None:
        """The run that this one continues, if there is one close enough."""
        if run.index not in self._above:
            self._above[run.index] = self._vertical(run, -1)
        return self._above[run.index]

    def gap(self, upper: Run, lower: Run) -> float:
        """Blank space between two runs in line heights; negative where boxes overlap."""
        return (lower.box.y0 - upper.box.y1) / self.line_height[upper.page]

    def nearest_above(self, run: Run, max_rows: int = 12) -> list[Run]:
        """Runs of rows above whose horizontal extent meets this one's, nearest first."""
        found: list[Run] = []
        for row in range(run.row - 1, max(-1, run.row - 1 - max_rows), -1):
            found += [
                other
                for other in self.rows[row]
                if other.page == run.page and _x_overlap(run.box, other.box) > 0
            ]
        return found

    def _vertical(self, run: Run, step: int) -> Run | None:
        best: tuple[float, Run] | None = None
        reach = _CHAIN_GAP * max(run.box.height, self.line_height[run.page])
        for row in range(run.row + step, run.row + 3 * step, step):
            if not 0 <= row < len(self.rows):
                break
            for other in self.rows[row]:
                if other.page != run.page:
                    continue
                upper, lower = (run, other) if step > 0 else (other, run)
                if lower.box.y0 - upper.box.y1 > reach:
                    continue
                narrow = max(min(run.box.width, other.box.width), 1.0)
                overlap = _x_overlap(run.box, other.box)
                if overlap > _CHAIN_OVERLAP * narrow and (best is None or overlap > best[0]):
                    best = (overlap, other)
            if best is not None:
                break
        return None if best is None else best[1]


def _x_overlap(a: Box, b: Box) -> float:
    return min(a.x1, b.x1) - max(a.x0, b.x0)


def _y_overlap_share(a: Box, b: Box) -> float:
    shared = min(a.y1, b.y1) - max(a.y0, b.y0)
    return shared / max(min(a.height, b.height), 1e-6)


def _rows_of_page(lines: Sequence[Line]) -> list[list[Line]]:
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda one: one.reading.center[1]):
        best: tuple[float, list[Line]] | None = None
        for row in rows[-4:]:
            nearest = min(row, key=lambda other: _distance_x(line.reading, other.reading))
            blocked = any(_x_overlap(line.reading, o.reading) > 0.3 * _narrow(line, o) for o in row)
            share = _y_overlap_share(line.reading, nearest.reading)
            if not blocked and share > _SAME_ROW_OVERLAP and (best is None or share > best[0]):
                best = (share, row)
        if best is None:
            rows.append([line])
        else:
            best[1].append(line)
    for row in rows:
        row.sort(key=lambda one: one.reading.x0)
    rows.sort(key=lambda row: statistics.fmean(one.reading.center[1] for one in row))
    return rows


def _narrow(a: Line, b: Line) -> float:
    return min(a.reading.width, b.reading.width)


def _distance_x(a: Box, b: Box) -> float:
    return max(0.0, max(a.x0, b.x0) - min(a.x1, b.x1))


def join_texts(texts: Sequence[str]) -> str:
    """Texts of consecutive boxes as one, with single spaces."""
    return " ".join(text.strip() for text in texts if text.strip())


def union_box(lines: Sequence[Line]) -> Box:
    """The box around the reading boxes of `lines`."""
    box = lines[0].reading
    for line in lines[1:]:
        box = box.union(line.reading)
    return box


def lay_out(document: Document) -> Layout:
    """The layout of all pages, rows numbered through the document."""
    runs: list[Run] = []
    rows: list[list[Run]] = []
    heights: dict[int, float] = {}
    extent: dict[int, Box] = {}
    for page in document.pages:
        lines = [line for line in page.lines if line.text.strip()]
        if not lines:
            continue
        number = lines[0].page
        heights[number] = max(statistics.median(line.reading.height for line in lines), 1e-6)
        extent[number] = union_box(lines)
        for row_lines in _rows_of_page(lines):
            groups: list[list[Line]] = []
            for line in row_lines:
                previous = groups[-1][-1] if groups else None
                height = min(line.reading.height, previous.reading.height) if previous else 0.0
                if previous and line.reading.x0 - previous.reading.x1 < _JOIN_GAP * height:
                    groups[-1].append(line)
                else:
                    groups.append([line])
            row: list[Run] = []
            for column, group in enumerate(groups):
                text = join_texts([line.text for line in group])
                run = Run(
                    len(runs), number, len(rows), column, text, tuple(group), union_box(group)
                )
                runs.append(run)
                row.append(run)
            rows.append(row)
    return Layout(runs, rows, heights, extent)
