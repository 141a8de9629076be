"""Fields arranged for reading: single values apart from tables of list items."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from edge_runtime.values import FieldValue, Line, Page


@dataclass(frozen=True, slots=True)
class ItemTable:
    """The items of one list: `rows[i][j]` is column `columns[j]` of item `i`, None if absent."""

    path: str
    columns: tuple[str, ...]
    rows: tuple[tuple[FieldValue | None, ...], ...]


def split_fields(
    fields: Iterable[FieldValue],
) -> tuple[tuple[FieldValue, ...], tuple[ItemTable, ...]]:
    """Single values in their order, and one table per list (`items/0/price`, `tags/1`)."""
    singles: list[FieldValue] = []
    items: dict[str, dict[int, dict[str, FieldValue]]] = {}
    for value in fields:
        place = list_place(value.path)
        if place is None:
            singles.append(value)
            continue
        path, number, column = place
        items.setdefault(path, {}).setdefault(number, {})[column] = value
    return tuple(singles), tuple(_table(path, rows) for path, rows in items.items())


def list_place(path: str) -> tuple[str, int, str] | None:
    """List, item number and the rest of a path such as `items/0/price`; None for single values."""
    pieces = path.split("/")
    for at, piece in enumerate(pieces):
        if at > 0 and piece.isdecimal():
            return "/".join(pieces[:at]), int(piece), "/".join(pieces[at + 1 :])
    return None


def _table(path: str, rows: dict[int, dict[str, FieldValue]]) -> ItemTable:
    columns = tuple(dict.fromkeys(name for row in rows.values() for name in row))
    cells = tuple(tuple(rows[i].get(name) for name in columns) for i in sorted(rows))
    return ItemTable(path, columns, cells)


def show_value(value: Any) -> str:
    """A JSON value for people: text as it is, nothing for null, `4.0` as 4, else JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return json.dumps(value, ensure_ascii=False)


def show_path(path: str) -> str:
    """A path for people, with escapes undone."""
    return path.replace("~1", "/").replace("~0", "~")


def show_place(value: FieldValue) -> str:
    """Page and text of the first evidence."""
    if not value.evidence:
        return ""
    first = value.evidence[0]
    more = f" +{len(value.evidence) - 1}" if len(value.evidence) > 1 else ""
    return f"p{first.page + 1} \u201c{first.text}\u201d{more}"


def text_rows(page: Page) -> list[list[Line]]:
    """The lines of a page in reading order; those that stand beside each other together."""
    rows: list[list[Line]] = []
    for line in page.lines:
        if rows and rows[-1][-1].row == line.row:
            rows[-1].append(line)
        else:
            rows.append([line])
    return rows
