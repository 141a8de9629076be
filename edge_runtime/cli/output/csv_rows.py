"""Results as CSV.

`csv` has a row per field (or, when only text was read, per line): its columns are the same for
every schema. `csv-wide` has a row per document and a column per field of a fixed schema.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from edge_runtime.cli.output.field_rows import show_value
from edge_runtime.values import FieldStatus, FieldValue, Line, Quad, RunResult

FIELD_COLUMNS = (
    "source",
    "document_status",
    "path",
    "value",
    "raw",
    "confidence",
    "status",
    "page",
    "x0",
    "y0",
    "x1",
    "y1",
    "notes",
)
LINE_COLUMNS = (
    "source",
    "document_status",
    "page",
    "line",
    "row",
    "text",
    "confidence",
    "x0",
    "y0",
    "x1",
    "y1",
    "notes",
)


def header(columns: Sequence[str]) -> str:
    """The first line of a file."""
    return _written([columns])


def render_fields(result: RunResult) -> str:
    """A row per field; a failed document is one row without a path."""
    if result.error is not None:
        return _written([_failed(result, FIELD_COLUMNS)])
    return _written(_field_row(result, value) for value in result.fields)


def render_lines(result: RunResult) -> str:
    """A row per line of text; a failed document is one row without text."""
    if result.error is not None:
        return _written([_failed(result, LINE_COLUMNS)])
    return _written(_line_row(result, line) for line in result.document.lines)


def wide_columns(paths: Sequence[str]) -> tuple[str, ...]:
    """Columns of `csv-wide` for a schema's field and list paths."""
    return ("document_source", "document_status", *paths, "document_review", "document_notes")


def render_wide(result: RunResult, paths: Sequence[str]) -> str:
    """The document in one row; a list is JSON text; `document_review` names the doubtful."""
    if result.error is not None:
        return _written([_failed(result, wide_columns(paths))])
    by_path = {value.path: value.value for value in result.fields}
    cells = [by_path[p] if p in by_path else _at(result.data, p) for p in paths]
    review = [v.path for v in result.fields if v.status is FieldStatus.REVIEW]
    row = [result.source, result.status.value, *map(show_value, cells)]
    return _written([[*row, " ".join(review), "; ".join(result.degraded)]])


def _field_row(result: RunResult, value: FieldValue) -> list[Any]:
    first = value.evidence[0] if value.evidence else None
    found = value.value is not None
    return [
        result.source,
        result.status.value,
        value.path,
        show_value(value.value),
        value.raw or "",
        f"{value.confidence:.4f}" if found else "",
        value.status.value,
        "" if first is None else first.page + 1,
        *(("",) * 4 if first is None else _box(first.quad)),
        "; ".join(value.reasons),
    ]


def _line_row(result: RunResult, line: Line) -> list[Any]:
    return [
        result.source,
        result.status.value,
        line.page + 1,
        line.index,
        line.row,
        line.text,
        f"{line.confidence:.4f}",
        *_box(line.quad),
        "",
    ]


def _box(quad: Quad) -> tuple[str, ...]:
    box = quad.box
    return tuple(f"{side:.1f}" for side in (box.x0, box.y0, box.x1, box.y1))


def _failed(result: RunResult, columns: Sequence[str]) -> list[str]:
    message = str((result.error or {}).get("message", ""))
    values = {
        "source": result.source,
        "document_source": result.source,
        "document_status": result.status.value,
        "notes": message,
        "document_notes": message,
    }
    return [values.get(name, "") for name in columns]


def _at(data: Any, path: str) -> Any:
    for piece in path.split("/"):
        name = piece.replace("~1", "/").replace("~0", "~")
        if not isinstance(data, dict) or name not in data:
            return None
        data = data[name]
    return data


def _written(rows: Iterable[Sequence[Any]]) -> str:
    target = io.StringIO()
    csv.writer(target, lineterminator="\n").writerows(rows)
    return target.getvalue()
