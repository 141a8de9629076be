from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest

from edge_runtime.cli.output import csv_rows, markdown, plain_text
from edge_runtime.cli.output.field_rows import show_value, split_fields
from edge_runtime.cli.output.table import render_table
from edge_runtime.errors import UnreadableInput
from edge_runtime.values import Document, ResultStatus, RunResult

Make = Callable[..., RunResult]


@pytest.fixture
def failed(result_with: Make) -> RunResult:
    error = UnreadableInput("This is no picture.").to_dict()
    return result_with(
        status=ResultStatus.FAILED, error=error, fields=(), data=None, document=Document("x", ())
    )


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_list_items_become_a_table(result: RunResult) -> None:
    singles, tables = split_fields(result.fields)
    assert [value.path for value in singles] == ["company", "total", "date"]
    (items,) = tables
    assert items.path == "items"
    assert items.columns == ("name", "price")
    assert [[c and c.value for c in row] for row in items.rows] == [
        ["Oat bread", 2.95],
        ["Soap", None],
    ]


def test_list_of_plain_values_has_one_nameless_column(result_with: Make) -> None:
    from edge_runtime.values import FieldStatus, FieldValue

    fields = [FieldValue(f"tags/{i}", v, v, 1.0, FieldStatus.OK) for i, v in enumerate("ab")]
    _, (tags,) = split_fields(fields)
    assert (tags.path, tags.columns, len(tags.rows)) == ("tags", ("",), 2)


def test_text_keeps_rows_together(result: RunResult) -> None:
    assert plain_text.render_text(result) == "Harbour | Lane\nTotal\t13,94\n1. first *item*\n"


def test_plain_shows_fields_items_and_stages(result: RunResult) -> None:
    lines = plain_text.render_plain(result).splitlines()
    assert lines[0] == "page.png  ok"
    total = next(line for line in lines if line.startswith("total "))
    assert total.split() == ["total", "13.94", "0.93", "ok", "p1", "\u201c13,94\u201d"]
    assert any(line.split() == ["Oat", "bread", "2.95"] for line in lines)
    assert any(line.split() == ["llm.prefill", "7", "280.5", "500.0", "405"] for line in lines)
    assert lines[-1] == ("total 812 ms, first value 61 ms after the last line, peak memory 612 MB")


def test_plain_of_text_only_shows_the_text(result_with: Make) -> None:
    text = plain_text.render_plain(result_with(schema_name=None, fields=(), data=None))
    assert "Total\t13,94\n" in text


def test_degraded_and_failed_say_why(result_with: Make, failed: RunResult) -> None:
    degraded = result_with(status=ResultStatus.DEGRADED, degraded=("context full",))
    assert "degraded: context full" in plain_text.render_plain(degraded)
    assert "- context full" in markdown.render_markdown(degraded)
    assert "degraded: context full" in render_table(degraded, width=100, colour=False)
    for text in (
        plain_text.render_plain(failed),
        markdown.render_markdown(failed),
        render_table(failed, width=100, colour=False),
    ):
        assert "This is no picture." in text


def test_csv_has_a_row_per_field(result: RunResult) -> None:
    text = csv_rows.header(csv_rows.FIELD_COLUMNS) + csv_rows.render_fields(result)
    found = rows(text)
    assert [row["path"] for row in found] == [value.path for value in result.fields]
    total = found[1]
    assert (total["value"], total["raw"], total["status"]) == ("13.94", "13,94", "ok")
    assert (total["page"], total["x0"], total["y1"]) == ("1", "150.0", "60.0")
    assert found[0]["notes"] == "low_confidence"
    assert found[2]["value"] == ""


def test_csv_of_text_has_a_row_per_line(result: RunResult) -> None:
    found = rows(csv_rows.header(csv_rows.LINE_COLUMNS) + csv_rows.render_lines(result))
    assert [row["text"] for row in found] == [line.text for line in result.document.lines]
    assert [row["row"] for row in found] == ["0", "1", "1", "3"]


def test_wide_csv_has_a_row_per_document(result: RunResult, failed: RunResult) -> None:
    paths = ("company", "total", "items")
    text = csv_rows.header(csv_rows.wide_columns(paths))
    text += csv_rows.render_wide(result, paths) + csv_rows.render_wide(failed, paths)
    good, bad = rows(text)
    assert good["total"] == "13.94"
    assert good["document_review"] == "company items/1/name"
    assert '"name": "Oat bread"' in good["items"]
    assert (bad["document_status"], bad["total"]) == ("failed", "")
    assert bad["document_notes"] == "This is no picture."


def test_failed_document_is_one_csv_row(failed: RunResult) -> None:
    for columns, render in (
        (csv_rows.FIELD_COLUMNS, csv_rows.render_fields),
        (csv_rows.LINE_COLUMNS, csv_rows.render_lines),
    ):
        (row,) = rows(csv_rows.header(columns) + render(failed))
        assert row["document_status"] == "failed"
        assert row["notes"] == "This is no picture."


def test_text_of_a_document_is_never_markup(result: RunResult) -> None:
    text = markdown.render_markdown(result)
    assert r"Harbour \| Lane" in text
    assert r"1\. first \*item\*" in text
    assert r"| total | 13.94 | 0.93 | ok |" in text


@pytest.mark.parametrize(
    ("raw", "escaped"),
    [
        ("# no heading", r"\# no heading"),
        ("- no item", r"\- no item"),
        ("12) no item", r"12\) no item"),
        ("<b>&amp;", r"\<b\>\&amp;"),
        ("a-b + c 1.5", "a-b + c 1.5"),
        ("back\\slash", "back\\\\slash"),
    ],
)
def test_markdown_escapes(raw: str, escaped: str) -> None:
    assert markdown.escape(raw) == escaped


def test_table_has_values_and_stages(result: RunResult) -> None:
    text = render_table(result, width=120, colour=False)
    assert "\x1b" not in text
    for word in ("company", "13.94", "review", "missing", "Oat bread", "ocr.detect", "405"):
        assert word in text
    assert "\x1b[" in render_table(result, width=120)


def test_narrow_table_keeps_every_value(result: RunResult) -> None:
    text = render_table(result, width=40, colour=False)
    assert all(len(line) <= 40 for line in text.splitlines())
    assert "13.94" in text


def test_markup_of_a_document_is_shown_as_it_is(result_with: Make) -> None:
    text = render_table(result_with(source="[red]x[/red].png"), width=100, colour=False)
    assert "[red]x[/red].png" in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        ("4.0", "4.0"),
        (4.0, "4"),
        (13.94, "13.94"),
        (-0.5, "-0.5"),
        (True, "true"),
        (["ä"], '["ä"]'),
    ],
)
def test_values_are_shown_plainly(value: object, shown: str) -> None:
    assert show_value(value) == shown
