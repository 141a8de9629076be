"""Results in a terminal: coloured tables of fields and of stages."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from edge_runtime.cli.output.field_rows import (
    ItemTable,
    show_path,
    show_place,
    show_value,
    split_fields,
    text_rows,
)
from edge_runtime.cli.output.plain_text import summary
from edge_runtime.values import FieldStatus, FieldValue, ResultStatus, RunResult, Timing

_NARROW_COLUMNS = 64
_STATUS_STYLE = {
    FieldStatus.OK: "green",
    FieldStatus.REVIEW: "yellow",
    FieldStatus.MISSING: "dim",
}
_RESULT_STYLE = {
    ResultStatus.OK: "green",
    ResultStatus.DEGRADED: "yellow",
    ResultStatus.FAILED: "red",
}


def render_table(result: RunResult, *, width: int, colour: bool = True) -> str:
    """The result as tables for a terminal `width` columns wide."""
    target = io.StringIO()
    console = Console(
        file=target,
        force_terminal=colour,
        no_color=not colour,
        width=width,
        highlight=False,
        emoji=False,
        markup=False,
    )
    for part in _parts(result, is_narrow=width < _NARROW_COLUMNS):
        console.print(part)
    return target.getvalue()


def _parts(result: RunResult, *, is_narrow: bool) -> Iterator[RenderableType]:
    head = Text(result.source, style="bold")
    head.append("  ")
    head.append(result.status.value, style=_RESULT_STYLE[result.status])
    yield head
    for reason in result.degraded:
        yield Text(f"degraded: {reason}", style="yellow")
    if result.status is ResultStatus.FAILED:
        if result.error:
            yield Text(str(result.error.get("message", "")), style="red")
        return
    if result.schema_name is None:
        yield _lines_table(result)
    else:
        singles, tables = split_fields(result.fields)
        yield _fields_table(singles, is_narrow=is_narrow)
        for table in tables:
            yield _items_table(table)
    if result.timing.stages:
        yield _stages_table(result.timing, is_narrow=is_narrow)
    yield Text(summary(result.timing), style="dim")


def _table(title: str | None = None) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        header_style="bold",
        pad_edge=False,
    )


def _fields_table(fields: tuple[FieldValue, ...], *, is_narrow: bool) -> Table:
    table = _table()
    table.add_column("field", overflow="fold")
    table.add_column("value", overflow="fold", ratio=2)
    table.add_column("conf.", justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    if not is_narrow:
        table.add_column("where", overflow="fold", ratio=2)
    notes = not is_narrow and any(value.reasons for value in fields)
    if notes:
        table.add_column("notes", overflow="fold", ratio=1)
    for value in fields:
        found = value.value is not None
        cells = [
            Text(show_path(value.path)),
            Text(show_value(value.value)),
            Text(f"{value.confidence:.2f}" if found else ""),
            Text(value.status.value, style=_STATUS_STYLE[value.status]),
        ]
        if not is_narrow:
            cells.append(Text(show_place(value), style="dim"))
        if notes:
            cells.append(Text(", ".join(value.reasons), style="dim"))
        table.add_row(*cells)
    return table


def _items_table(items: ItemTable) -> Table:
    table = _table(show_path(items.path))
    for name in items.columns:
        table.add_column(show_path(name), overflow="fold")
    for row in items.rows:
        table.add_row(*(_item_cell(cell) for cell in row))
    return table


def _item_cell(cell: FieldValue | None) -> Text:
    if cell is None:
        return Text("")
    style = "" if cell.status is FieldStatus.OK else _STATUS_STYLE[cell.status]
    return Text(show_value(cell.value), style=style)


def _lines_table(result: RunResult) -> Table:
    table = _table()
    table.add_column("page", justify="right", no_wrap=True)
    table.add_column("text", overflow="fold")
    table.add_column("conf.", justify="right", no_wrap=True)
    for page in result.document.pages:
        for row in text_rows(page):
            text = "   ".join(line.text for line in row)
            worst = min(line.confidence for line in row)
            table.add_row(str(page.info.index + 1), Text(text), f"{worst:.2f}")
    return table


def _stages_table(timing: Timing, *, is_narrow: bool) -> Table:
    table = _table()
    table.add_column("stage", no_wrap=True)
    for name in ("wall ms", "tokens") if is_narrow else ("count", "wall ms", "cpu ms", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    for stage in timing.stages:
        counted = [str(stage.count), f"{stage.wall_ms:.1f}", f"{stage.cpu_ms:.1f}"]
        tokens = str(stage.n_tokens or "")
        table.add_row(Text(stage.name), *(counted[1:2] if is_narrow else counted), tokens)
    return table
