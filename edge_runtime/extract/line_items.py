"""Rows of a table as a list of objects: line items of invoices, entries of statements.

The header row is found by the labels of the item fields; its cells say where columns are. Rows
below are items when their number columns hold numbers; rows of text alone carry on the item above.
The table ends at its totals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from edge_runtime.extract.amounts import find_amounts
from edge_runtime.extract.assembling import SCHEMA_VIOLATION, to_json_type, violations
from edge_runtime.extract.confusions import fold
from edge_runtime.extract.dates import find_dates
from edge_runtime.extract.grounding import MatchKind
from edge_runtime.extract.normalising import Conventions, normalise
from edge_runtime.extract.review import DEFAULT_RULES, ReviewRules, decide_status
from edge_runtime.extract.schema import ArraySpec, FieldKind, FieldSpec, join_path
from edge_runtime.extract.table_rows import (
    NUMERIC_KINDS,
    Column,
    Header,
    TableRow,
    find_header,
    rows_of,
)
from edge_runtime.extract.text_segments import Segment, cut
from edge_runtime.values import Document, FieldStatus, FieldValue

NO_TABLE = "no_table_found"
SUM_CHECKED = "row_adds_up"
SUM_WRONG = "row_does_not_add_up"

_END = re.compile(
    r"\b(?:sub-?|sub )?tota(?:l|al|le|ls)\b|\bsubtotaal\b|\b(?:zwischen)?summe\b"
    r"|\bgesamt(?:betrag|summe)?\b|\bnettobetrag\b|\bamount due\b|\bbalance due\b|\bsuma\b"
    r"|\bjumlah\b|\brazem\b|\bbase imponible\b|\bimponibile\b"
)
_MAX_END_WORDS = 5
_MAX_GAP_ROWS = 6.0
_MAX_UNIT_LETTERS = 5
_MAX_ITEMS = 500

CONFIDENCE: dict[str, float] = {"adds_up": 0.93, "plain": 0.8, "does_not_add_up": 0.45}
"""Confidence of a cell by whether quantity times price gives the amount of its row."""


@dataclass(slots=True)
class Item:
    """One row: the cells of each field path."""

    cells: dict[str, list[Segment]] = field(default_factory=dict[str, list[Segment]])
    bottom: float = 0.0


def find_items(document: Document, spec: ArraySpec) -> list[Item]:
    """The rows of the table whose header names the fields of `spec`."""
    items: list[Item] = []
    header: Header | None = None
    is_open = False
    offset = 0
    for page in document.pages:
        rows = rows_of(page.lines, offset)
        offset += len(page.lines)
        here = find_header(rows, spec.item_fields)
        if here is None and not (is_open and header is not None):
            continue
        first = here.last_row + 1 if here is not None else 0
        header = here or header
        if header is None:
            continue
        table = _Table(header, continued=here is None)
        for row in rows[first:]:
            if len(items) + len(table.items) >= _MAX_ITEMS or not table.take(row):
                break
        items += table.items
        is_open = not table.has_ended
    return items


class _Table:
    """Collects the items below a header."""

    def __init__(self, header: Header, *, continued: bool) -> None:
        self._header = header
        self._text = next((s for s in header.specs if s.kind not in NUMERIC_KINDS), None)
        self._has_numbers = any(s.kind in NUMERIC_KINDS for s in header.specs)
        money = [s for s in header.specs if s.kind is FieldKind.AMOUNT]
        self._has_money = bool(money)
        self._amount = money[-1] if money else None
        self._n_numbers = 2 if continued else 1
        self._pending: list[Segment] = []
        self._last_bottom: float | None = None
        self.items: list[Item] = []
        self.has_ended = False

    def take(self, row: TableRow) -> bool:
        """Add a row; False when the table is over."""
        cells = self._assign(row)
        is_end = self._is_end(row, cells)
        if is_end or self._is_far(row):
            self.has_ended = bool(self.items)
            return not self.items and not is_end
        if self._is_item(cells):
            item = Item(cells, row.box.y1)
            if self._text is not None and self._text.path not in cells and self._pending:
                item.cells[self._text.path] = self._pending
            self._pending = []
            self.items.append(item)
        elif self._text is not None and set(cells) <= {self._text.path}:
            self._carry_on(cells.get(self._text.path, []), row)
        self._last_bottom = row.box.y1
        return True

    def _carry_on(self, segments: list[Segment], row: TableRow) -> None:
        """Text of its own: more of the item above when close, else the start of the next one."""
        if self._text is None or not segments:
            return
        if self.items and row.box.y0 - self.items[-1].bottom < 1.2 * row.height:
            self.items[-1].cells.setdefault(self._text.path, []).extend(segments)
            self.items[-1].bottom = row.box.y1
        else:
            self._pending = segments

    def _is_far(self, row: TableRow) -> bool:
        if self._last_bottom is None or not self.items:
            return False
        return row.box.y0 - self._last_bottom > _MAX_GAP_ROWS * row.height

    def _is_end(self, row: TableRow, cells: dict[str, list[Segment]]) -> bool:
        """Whether a row prints a total; an article called `Total Care` has all its figures."""
        totals = [
            cell
            for cell in row.cells
            if len(cell.text.split()) <= _MAX_END_WORDS and _END.search(fold(cell.text))
        ]
        if not totals:
            return False
        described = [] if self._text is None else cells.get(self._text.path, [])
        is_complete = all(spec.path in cells for spec in self._header.specs)
        return not (is_complete and all(cell in described for cell in totals))

    def _is_item(self, cells: dict[str, list[Segment]]) -> bool:
        if not self._has_numbers:
            return len(cells) >= min(2, len(self._header.specs))
        numbers = [s for s in self._header.specs if s.kind in NUMERIC_KINDS and s.path in cells]
        money = [s for s in numbers if s.kind is FieldKind.AMOUNT]
        if self._amount is not None and self.items and self._amount.path in self.items[-1].cells:
            money = [s for s in money if s is self._amount]
        return len(numbers) >= self._least_numbers() and (bool(money) or not self._has_money)

    def _least_numbers(self) -> int:
        """Half the figures of the item above: a footer's lone number is no item."""
        if not self.items:
            return self._n_numbers
        last = self.items[-1].cells
        n_last = sum(s.kind in NUMERIC_KINDS and s.path in last for s in self._header.specs)
        return max(self._n_numbers, math.ceil(n_last / 2))

    def _assign(self, row: TableRow) -> dict[str, list[Segment]]:
        """Cells of a row by field path."""
        found: dict[str, list[Segment]] = {}
        for cell in row.cells:
            for part in self._split(cell):
                column = self._column_of(part)
                if column is not None and column.spec is not None:
                    found.setdefault(column.spec.path, []).append(part)
        return found

    def _split(self, cell: Segment) -> list[Segment]:
        """A cell that runs over several headings, cut where figures of the next one begin."""
        touched = [c for c in self._header.columns if cell.box.x0 < c.x1 and cell.box.x1 > c.x0]
        if len(touched) < 2:
            return [cell]
        bounds = [(a.x1 + b.x0) / 2 for a, b in pairwise(touched)]
        words = list(re.finditer(r"\S+", cell.text))
        groups: list[tuple[int, int]] = []
        group_of: list[int] = []
        for word in words:
            part = cut(cell.line, cell.position, cell.start + word.start(), cell.start + word.end())
            center = part.box.center[0] if part is not None else cell.box.x0
            group = sum(center > bound for bound in bounds)
            if groups and group == group_of[-1]:
                groups[-1] = (groups[-1][0], word.end())
            else:
                groups.append((word.start(), word.end()))
                group_of.append(group)
        parts = (
            cut(cell.line, cell.position, cell.start + start, cell.start + end)
            for start, end in groups
        )
        return [part for part in parts if part is not None]

    def _column_of(self, cell: Segment) -> Column | None:
        """The column a cell stands in: under its heading, or aligned with it."""
        is_number = _is_number(cell.text)
        allowed = [c for c in self._header.columns if is_number or not c.is_numeric]
        if not allowed:
            return None
        best = min(allowed, key=lambda c: _distance(cell, c))
        reach = (
            8 * cell.height if best.spec is not None and not best.is_numeric else 4 * cell.height
        )
        return best if _distance(cell, best) <= reach else None


def _is_number(text: str) -> bool:
    """Whether a cell prints a number and at most a unit or currency with it."""
    amounts = find_amounts(text)
    if not amounts or find_dates(text):
        return False
    return sum(c.isalpha() for c in text) <= _MAX_UNIT_LETTERS


def _distance(cell: Segment, column: Column) -> float:
    """0 under the heading, else how far the nearest edges or middles are apart."""
    shared = min(cell.box.x1, column.x1) - max(cell.box.x0, column.x0)
    middle = abs(cell.box.center[0] - (column.x0 + column.x1) / 2)
    if shared > 0:
        return -shared
    return min(abs(cell.box.x0 - column.x0), abs(cell.box.x1 - column.x1), middle)


def item_fields(
    document: Document,
    spec: ArraySpec,
    *,
    conventions: Conventions | None = None,
    rules: ReviewRules = DEFAULT_RULES,
) -> list[FieldValue]:
    """The rows of a table as fields `items/0/price`; one missing field when there is no table.

    Args:
        document: Pages with lines.
        spec: A list of objects.
        conventions: How dates and numbers of this document read.
        rules: When a value needs a look.
    """
    items = find_items(document, spec)
    if not items:
        return [FieldValue(spec.path, None, None, 0.0, FieldStatus.MISSING, (), (NO_TABLE,))]
    fields: list[FieldValue] = []
    for number, item in enumerate(items):
        prefix = join_path(spec.path, number)
        fields += _row_fields(item, spec, prefix, conventions, rules)
    return fields


def _row_fields(
    item: Item, spec: ArraySpec, prefix: str, conventions: Conventions | None, rules: ReviewRules
) -> list[FieldValue]:
    values: dict[str, tuple[str, object, tuple[str, ...]]] = {}
    for inner in spec.item_fields:
        segments = item.cells.get(inner.path, [])
        if segments:
            raw = "\n".join(_joined(segments))
            read = normalise(raw, inner.kind, spec=inner, conventions=conventions)
            values[inner.path] = raw, read.value, read.reasons
    check = _adds_up(spec.item_fields, values)
    return [
        _cell_field(inner, prefix, item, values.get(inner.path), check, rules)
        for inner in spec.item_fields
    ]


def _joined(segments: Sequence[Segment]) -> list[str]:
    """Texts of a cell, line by line."""
    lines: list[str] = []
    bottom = -math.inf
    for segment in segments:
        if lines and segment.box.center[1] < bottom:
            lines[-1] += f" {segment.text}"
        else:
            lines.append(segment.text)
        bottom = max(bottom, segment.box.y1)
    return lines


def _cell_field(
    inner: FieldSpec,
    prefix: str,
    item: Item,
    read: tuple[str, object, tuple[str, ...]] | None,
    check: str | None,
    rules: ReviewRules,
) -> FieldValue:
    path = f"{prefix}/{inner.path}" if inner.path else prefix
    if read is None:
        return FieldValue(path, None, None, 0.0, FieldStatus.MISSING, (), ("empty_cell",))
    raw, value, reasons = read
    segments = item.cells[inner.path]
    ocr = min(segment.line.confidence for segment in segments)
    level = CONFIDENCE["plain"]
    if check is not None and inner.kind in NUMERIC_KINDS:
        level = CONFIDENCE["adds_up" if check == SUM_CHECKED else "does_not_add_up"]
        reasons = (*reasons, check)
    wrong = violations(to_json_type(value, inner.json_schema), inner.json_schema)
    if value is not None and wrong:
        reasons = (*reasons, SCHEMA_VIOLATION)
    status, reasons = decide_status(
        value,
        confidence=level * ocr,
        match=MatchKind.EXACT,
        reasons=reasons,
        ocr_confidence=ocr,
        rules=rules,
    )
    return FieldValue(
        path=path,
        value=value,
        raw=raw,
        confidence=round(level * ocr, 4) if value is not None else 0.0,
        status=status,
        evidence=tuple(segment.evidence() for segment in segments),
        reasons=reasons,
    )


def _adds_up(
    specs: Sequence[FieldSpec], values: dict[str, tuple[str, object, tuple[str, ...]]]
) -> str | None:
    """Whether the quantity times the price is the amount; None when a row does not have all three.

    The quantity is the first plain number, price and amount the first and last sums of money.
    """
    counts = [s for s in specs if s.kind in {FieldKind.NUMBER, FieldKind.INTEGER}]
    money = [s for s in specs if s.kind is FieldKind.AMOUNT]
    if not counts or len(money) < 2:
        return None
    chosen = [values.get(s.path, ("", None, ()))[1] for s in (counts[0], money[0], money[-1])]
    if not all(isinstance(v, int | float) for v in chosen):
        return None
    quantity, price, amount = (float(v) for v in chosen if isinstance(v, int | float))
    tolerance = max(0.011, 0.006 * abs(quantity))
    return SUM_CHECKED if abs(quantity * price - amount) <= tolerance else SUM_WRONG
