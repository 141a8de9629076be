"""Results without colour or frames: for pipes, logs and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edge_runtime.cli.output.field_rows import (
    ItemTable,
    show_path,
    show_place,
    show_value,
    split_fields,
    text_rows,
)
from edge_runtime.values import FieldValue, ResultStatus, RunResult, Timing

_MAX_CELL = 60


def render_text(result: RunResult) -> str:
    """The text of the document: a row per line, a tab between neighbours, a form feed per page."""
    pages = (
        "".join("\t".join(line.text for line in row) + "\n" for row in text_rows(page))
        for page in result.document.pages
    )
    return "\f".join(pages)


def render_plain(result: RunResult) -> str:
    """Fields and timing (or, when only text was read, the text) as aligned columns."""
    return "\n".join(_plain_lines(result)) + "\n"


def headline(result: RunResult) -> str:
    """One line: the input and how it went."""
    parts = [result.source, result.status.value]
    if result.status is ResultStatus.FAILED and result.error:
        parts.append(str(result.error.get("message", "")))
    return "  ".join(part for part in parts if part)


def summary(timing: Timing) -> str:
    """Totals of a run in one line."""
    parts = [f"total {timing.total_ms:.0f} ms"]
    if timing.ttft_after_input_ms is not None:
        parts.append(f"first value {timing.ttft_after_input_ms:.0f} ms after the last line")
    if timing.peak_rss_mb is not None:
        parts.append(f"peak memory {timing.peak_rss_mb:.0f} MB")
    return ", ".join(parts)


def _plain_lines(result: RunResult) -> Iterator[str]:
    yield headline(result)
    for reason in result.degraded:
        yield f"degraded: {reason}"
    if result.status is ResultStatus.FAILED:
        return
    if result.schema_name is None:
        yield render_text(result).rstrip("\n")
    else:
        yield from _field_lines(result)
    if result.timing.stages:
        yield ""
        yield from _stage_lines(result.timing)
    yield summary(result.timing)


def _field_lines(result: RunResult) -> Iterator[str]:
    singles, tables = split_fields(result.fields)
    yield ""
    head = ("field", "value", "confidence", "status", "where", "notes")
    yield from aligned([head, *(_cells(value) for value in singles)])
    for table in tables:
        yield ""
        yield from _item_lines(table)


def _cells(value: FieldValue) -> tuple[str, ...]:
    found = value.value is not None
    return (
        show_path(value.path),
        show_value(value.value),
        f"{value.confidence:.2f}" if found else "",
        value.status.value,
        show_place(value),
        ", ".join(value.reasons),
    )


def _item_lines(table: ItemTable) -> Iterator[str]:
    yield show_path(table.path)
    rows: list[Sequence[str]] = [[show_path(name) for name in table.columns]]
    rows += [["" if c is None else show_value(c.value) for c in row] for row in table.rows]
    yield from aligned(rows)


def _stage_lines(timing: Timing) -> Iterator[str]:
    rows: list[Sequence[str]] = [("stage", "count", "wall ms", "cpu ms", "tokens")]
    rows += [
        (s.name, str(s.count), f"{s.wall_ms:.1f}", f"{s.cpu_ms:.1f}", str(s.n_tokens or ""))
        for s in timing.stages
    ]
    yield from aligned(rows, right=(1, 2, 3, 4))


def aligned(
    rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), max_cell: int = _MAX_CELL
) -> Iterator[str]:
    """Rows as columns of equal width, cells longer than a bound cut with an ellipsis."""
    cut = [[_cut(cell, max_cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cut) for i in range(len(cut[0]))]
    for row in cut:
        cells = (
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _cut(cell: str, max_cell: int) -> str:
    flat = " ".join(cell.split())
    return flat if len(flat) <= max_cell else flat[: max_cell - 1] + "\N{HORIZONTAL ELLIPSIS}"
