"""What is known about a document before any field is asked for, computed once and shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from edge_runtime.extract.amounts import AmountMatch, find_amounts, infer_decimal_mark
from edge_runtime.extract.dates import DateMatch, find_dates, infer_day_first
from edge_runtime.extract.page_layout import Layout, Run, lay_out
from edge_runtime.extract.vocabulary import AMOUNT_CUES, classes_of
from edge_runtime.values import Document, Line

_MAX_HEADER_ROWS = 8
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlacedAmount:
    """An amount, the line and run that show it, and what the text around says it is.

    `left` holds word classes of the text to its left in the same row, `above` those of the row
    above when that row holds no amount itself, `header` those of the nearest words above in the
    same column.
    """

    match: AmountMatch
    line: Line
    run: Run
    left_text: str
    left: frozenset[str]
    above: frozenset[str]
    header: frozenset[str]
    n_in_row: int
    is_last_in_row: bool

    @property
    def cents(self) -> int:
        """The value in hundredths, for exact arithmetic."""
        return round(self.match.value * 100)


@dataclass(frozen=True, slots=True)
class PlacedDate:
    """A date, the lines that show it and the text before it in its row."""

    match: DateMatch
    lines: tuple[Line, ...]
    run: Run
    left_text: str


class DocumentFacts:
    """Layout, dates and amounts of a document.

    Args:
        document: The recognised pages.
        day_first: Order of ambiguous dates; None infers it from the document.
        decimal_mark: `.` or `,`; None infers it from the document.
    """

    def __init__(
        self,
        document: Document,
        *,
        day_first: bool | None = None,
        decimal_mark: str | None = None,
    ) -> None:
        self.document = document
        self.layout: Layout = lay_out(document)
        texts = [run.text for run in self.layout.runs]
        self.day_first = infer_day_first(texts) if day_first is None else day_first
        self.decimal_mark = infer_decimal_mark(texts) if decimal_mark is None else decimal_mark
        self.dates: list[PlacedDate] = self._place_dates()
        self.amounts: list[PlacedAmount] = self._place_amounts()
        self._memo: dict[str, Any] = {}

    def once(self, key: str, make: Callable[[], T]) -> T:
        """`make()` the first time `key` is asked for, its result from then on."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]

    def left_text(self, run: Run, line: Line | None = None, start: int = 0) -> str:
        """Everything printed before `line.text[start:]` in its visual row."""
        row = self.layout.rows[run.row]
        pieces = [other.text for other in row[: run.column]]
        for one in run.lines:
            if line is not None and one is line:
                pieces.append(one.text[:start])
                break
            if line is not None:
                pieces.append(one.text)
        return " ".join(piece for piece in pieces if piece.strip())

    def _place_dates(self) -> list[PlacedDate]:
        found: list[PlacedDate] = []
        for run in self.layout.runs:
            inside: list[PlacedDate] = []
            for line in run.lines:
                inside += [
                    PlacedDate(m, (line,), run, self.left_text(run, line, m.start))
                    for m in find_dates(line.text, day_first=self.day_first)
                ]
            if not inside and len(run.lines) > 1:
                inside = [
                    PlacedDate(m, run.lines, run, self.left_text(run))
                    for m in find_dates(run.text, day_first=self.day_first)
                ]
            found += inside
        return found

    def _place_amounts(self) -> list[PlacedAmount]:
        dated = {id(line): [] for d in self.dates for line in d.lines}
        for date in self.dates:
            if len(date.lines) == 1:
                dated[id(date.lines[0])].append((date.match.start, date.match.end))
        raw: list[tuple[AmountMatch, Line, Run]] = []
        for run in self.layout.runs:
            for line in run.lines:
                spans = dated.get(id(line), [])
                raw += [
                    (m, line, run)
                    for m in find_amounts(line.text, decimal_mark=self.decimal_mark)
                    if not any(m.start < end and start < m.end for start, end in spans)
                ]
        by_row: dict[int, list[tuple[AmountMatch, Line, Run]]] = {}
        for item in raw:
            by_row.setdefault(item[2].row, []).append(item)
        rows_with_money = {
            row for row, items in by_row.items() if any(m.n_decimals == 2 for m, _, _ in items)
        }
        placed: list[PlacedAmount] = []
        for row, items in by_row.items():
            above = self._classes_of_row(row - 1) if row - 1 not in rows_with_money else frozenset()
            for number, (match, line, run) in enumerate(items):
                left = self.left_text(run, line, match.start)
                placed.append(
                    PlacedAmount(
                        match=match,
                        line=line,
                        run=run,
                        left_text=left,
                        left=classes_of(left, AMOUNT_CUES),
                        above=above,
                        header=self._header(run),
                        n_in_row=len(items),
                        is_last_in_row=number == len(items) - 1,
                    )
                )
        return placed

    def _classes_of_row(self, row: int) -> frozenset[str]:
        if row < 0:
            return frozenset()
        text = " ".join(run.text for run in self.layout.rows[row])
        return classes_of(text, AMOUNT_CUES)

    def _header(self, run: Run) -> frozenset[str]:
        for other in self.layout.nearest_above(run, _MAX_HEADER_ROWS):
            if any(c.isalpha() for c in other.text) and not any(c.isdigit() for c in other.text):
                return classes_of(other.text, AMOUNT_CUES)
        return frozenset()
