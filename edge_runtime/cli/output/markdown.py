"""Results as Markdown: a table of fields, a table per list, then the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from edge_runtime.cli.output.field_rows import (
    show_path,
    show_place,
    show_value,
    split_fields,
    text_rows,
)
from edge_runtime.values import ResultStatus, RunResult

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~$&])")
_LINE_MARK = re.compile(r"^(\s*)([-+=])|^(\s*\d+)([.)])(?=\s|$)")


def render_markdown(result: RunResult) -> str:
    """The result as one Markdown section. Text of the document never acts as markup."""
    return "\n".join(_sections(result)) + "\n"


def _sections(result: RunResult) -> Iterator[str]:
    yield f"# {escape(result.source)}"
    yield ""
    if result.status is not ResultStatus.OK:
        yield f"Status: {result.status.value}"
        yield ""
        reasons = list(result.degraded)
        if result.error:
            reasons.append(str(result.error.get("message", "")))
        yield from (f"- {escape(reason)}" for reason in reasons)
        yield ""
    if result.fields:
        yield from _fields(result)
    for page in result.document.pages:
        yield f"## Page {page.info.index + 1}"
        yield ""
        # a hard break keeps one printed row one row
        yield "\\\n".join(
            " \N{MIDDLE DOT} ".join(escape(line.text) for line in row) for row in text_rows(page)
        )
        yield ""


def _fields(result: RunResult) -> Iterator[str]:
    singles, tables = split_fields(result.fields)
    if singles:
        yield from _table(
            ("Field", "Value", "Confidence", "Status", "Where"),
            [
                (
                    show_path(value.path),
                    show_value(value.value),
                    f"{value.confidence:.2f}" if value.value is not None else "",
                    value.status.value,
                    show_place(value),
                )
                for value in singles
            ],
        )
    for table in tables:
        yield f"## {escape(show_path(table.path))}"
        yield ""
        yield from _table(
            [show_path(name) or "value" for name in table.columns],
            [["" if c is None else show_value(c.value) for c in row] for row in table.rows],
        )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield "|" + " --- |" * len(head)
    yield from (_row(row) for row in rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escape(" ".join(cell.split())) for cell in cells) + " |"


def escape(text: str) -> str:
    """Text with every character that Markdown could take for markup escaped."""
    escaped = _SPECIAL.sub(r"\\\1", text)
    return _LINE_MARK.sub(r"\1\3\\\2\4", escaped)
