"""Visual rows of a page, and the header of a table among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from edge_runtime.extract.confusions import fold_alnum
from edge_runtime.extract.schema import FieldKind, FieldSpec
from edge_runtime.extract.text_segments import Segment, cut, split_at_gaps, y_overlap
from edge_runtime.values import Box, Line

_MAX_LABEL_WORDS = 4
_FUZZY_LABEL = 88.0
_MIN_FUZZY = 5
_MIN_AFFIX = 5
_HEADER_ROWS = 3
_CELL_GAP = 0.8


@dataclass(frozen=True, slots=True)
class TableRow:
    """Cells that stand beside each other, left to right; `box` in reading pixels."""

    cells: tuple[Segment, ...]

    @property
    def box(self) -> Box:
        """Around all cells."""
        first, *rest = (cell.box for cell in self.cells)
        for box in rest:
            first = first.union(box)
        return first

    @property
    def height(self) -> float:
        """Median text height in reading pixels."""
        return median(cell.height for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Column:
    """A heading's extent in reading pixels; `spec` is None for a column nobody asked for."""

    x0: float
    x1: float
    spec: FieldSpec | None = None

    @property
    def is_numeric(self) -> bool:
        """Whether only numbers belong here."""
        return self.spec is not None and self.spec.kind in NUMERIC_KINDS


NUMERIC_KINDS = frozenset({FieldKind.AMOUNT, FieldKind.NUMBER, FieldKind.INTEGER})


@dataclass(slots=True)
class Header:
    """Columns left to right, and the rows that print them."""

    columns: list[Column] = field(default_factory=list[Column])
    first_row: int = 0
    last_row: int = 0

    @property
    def specs(self) -> list[FieldSpec]:
        """The wanted fields that have a column."""
        return [c.spec for c in self.columns if c.spec is not None]

    @property
    def has_numbers(self) -> bool:
        """Whether items are told from text by their figures."""
        return any(column.is_numeric for column in self.columns)


def rows_of(lines: Sequence[Line], offset: int) -> list[TableRow]:
    """Rows of one page from top to bottom.

    Args:
        lines: Lines of the page.
        offset: Lines on the pages before.
    """
    cells = [
        cell
        for number, line in enumerate(lines)
        for cell in split_at_gaps(line, offset + number, wide_gap=_CELL_GAP)
    ]
    cells.sort(key=lambda c: c.box.center[1])
    rows: list[list[Segment]] = []
    for cell in cells:
        if rows and max(y_overlap(cell.box, other.box) for other in rows[-1][-3:]) > 0.5:
            rows[-1].append(cell)
        else:
            rows.append([cell])
    return [TableRow(tuple(sorted(row, key=lambda c: c.box.x0))) for row in rows]


def _words(cell: Segment) -> list[Segment]:
    """The words of a cell as segments."""
    words: list[Segment] = []
    position = 0
    for word in cell.text.split():
        start = cell.text.index(word, position)
        position = start + len(word)
        found = cut(cell.line, cell.position, cell.start + start, cell.start + position)
        if found is not None:
            words.append(found)
    return words


@dataclass(frozen=True, slots=True)
class _Hit:
    score: float
    n_words: int
    first: int
    spec: FieldSpec


def _label_score(text: str, label: str, n_words: int) -> float:
    """How well a heading's text fits a label, 0..1; `Zeilenbetrag` fits `Betrag`."""
    if text == label:
        return 1.0
    if (
        n_words == 1
        and len(label) >= _MIN_AFFIX
        and (text.endswith(label) or text.startswith(label))
    ):
        return 0.7 if len(text) > 2.5 * len(label) else 0.85
    if min(len(text), len(label)) >= _MIN_FUZZY:
        from rapidfuzz import fuzz

        ratio = fuzz.ratio(text, label, score_cutoff=_FUZZY_LABEL)
        return 0.9 * ratio / 100
    return 0.0


def _hits(words: Sequence[Segment], specs: Sequence[FieldSpec]) -> Iterator[_Hit]:
    labels = [
        (spec, fold_alnum(label), 1 - 0.01 * min(rank, 9))
        for spec in specs
        for rank, label in enumerate(spec.labels)
    ]
    for first in range(len(words)):
        for n_words in range(1, min(_MAX_LABEL_WORDS, len(words) - first) + 1):
            run = words[first : first + n_words]
            if any(b.box.x0 - a.box.x1 > 3 * a.height for a, b in pairwise(run)):
                break
            text = fold_alnum("".join(word.text for word in run))
            for spec, label, preference in labels:
                score = _label_score(text, label, n_words) if text and label else 0.0
                if score > 0:
                    yield _Hit(score * preference, n_words, first, spec)


def _columns(words: Sequence[Segment], specs: Sequence[FieldSpec]) -> list[Column]:
    """Columns of a row of words: wanted ones by their labels, others by what is left."""
    taken: set[int] = set()
    found: dict[str, Column] = {}
    ranked = sorted(_hits(words, specs), key=lambda h: (-h.score * (1 + 0.1 * h.n_words), h.first))
    for hit in ranked:
        places = set(range(hit.first, hit.first + hit.n_words))
        if hit.spec.path in found or places & taken:
            continue
        taken |= places
        run = words[hit.first : hit.first + hit.n_words]
        found[hit.spec.path] = Column(run[0].box.x0, run[-1].box.x1, hit.spec)
    columns = list(found.values())
    for number, word in enumerate(words):
        if number not in taken:
            columns.append(Column(word.box.x0, word.box.x1))
    return _merged(sorted(columns, key=lambda c: c.x0), words)


def _merged(columns: list[Column], words: Sequence[Segment]) -> list[Column]:
    """Further words of a heading joined to it: they stand a space apart, not a column.

    A number's heading takes in only a unit in brackets (`Price (EUR)`): narrow columns stand close.
    """
    space = 0.6 * median(word.height for word in words)
    plain = {(w.box.x0, w.box.x1) for w in words if not _is_unit(w.text)}
    result: list[Column] = []
    for column in columns:
        last = result[-1] if result else None
        if last is not None and column.x0 - last.x1 < space and _joins(last, column, plain):
            result[-1] = Column(last.x0, max(last.x1, column.x1), last.spec or column.spec)
        else:
            result.append(column)
    return result


def _is_unit(text: str) -> bool:
    return text[0] in "([" or not any(c.isalpha() for c in text)


def _joins(left: Column, right: Column, plain: set[tuple[float, float]]) -> bool:
    if left.spec is not None and right.spec is not None:
        return False
    if left.is_numeric:
        return (right.x0, right.x1) not in plain
    return not right.is_numeric


def find_header(rows: Sequence[TableRow], specs: Sequence[FieldSpec]) -> Header | None:
    """The row that names most of the wanted fields; None when no row names two (or the only one).

    Rows right below that hold no figures may add to it (headings of two lines).
    """
    needed = min(2, len(specs))
    best: tuple[tuple[int, float], Header] | None = None
    for number, row in enumerate(rows):
        words = [word for cell in row.cells for word in _words(cell)]
        if not words or len(row.cells) < needed or _share_of_figures(words) > 0.3:
            continue
        columns = _columns(words, specs)
        n_found = sum(c.spec is not None for c in columns)
        n_numeric = sum(c.is_numeric for c in columns)
        if n_found < needed:
            continue
        rank = (n_found, n_numeric - 0.1 * number / len(rows))
        if best is None or rank > best[0]:
            best = rank, Header(columns, number, number)
    if best is None:
        return None
    _extend(best[1], rows, specs)
    return best[1]


def _share_of_figures(words: Sequence[Segment]) -> float:
    return sum(any(c.isdigit() for c in w.text) for w in words) / len(words)


def _extend(header: Header, rows: Sequence[TableRow], specs: Sequence[FieldSpec]) -> None:
    """Take in the rows that continue the headings above and below."""
    missing = [spec for spec in specs if spec not in header.specs]
    for number in range(header.last_row + 1, min(len(rows), header.last_row + _HEADER_ROWS)):
        row, above = rows[number], rows[number - 1]
        words = [word for cell in row.cells for word in _words(cell)]
        close = row.box.y0 - above.box.y1 < 0.8 * above.height
        under = all(
            any(w.box.x0 < c.x1 + w.height and w.box.x1 > c.x0 - w.height for c in header.columns)
            for w in words
        )
        if not close or not under or any(c.isdigit() for w in words for c in w.text):
            break
        names_more = _columns_named(words, missing)
        if not names_more and (len(row.cells) == 1 or not header.has_numbers):
            break
        header.last_row = number
        for column in _columns(words, missing):
            _widen(header, column)
    header.columns.sort(key=lambda c: c.x0)


def _columns_named(words: Sequence[Segment], specs: Sequence[FieldSpec]) -> bool:
    return any(c.spec is not None for c in _columns(words, specs))


def _widen(header: Header, extra: Column) -> None:
    for number, column in enumerate(header.columns):
        if extra.x0 < column.x1 and extra.x1 > column.x0:
            spec = column.spec or (extra.spec if extra.spec not in header.specs else None)
            header.columns[number] = Column(
                min(column.x0, extra.x0), max(column.x1, extra.x1), spec
            )
            return
