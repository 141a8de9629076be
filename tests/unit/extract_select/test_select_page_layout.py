from __future__ import annotations

from edge_runtime.extract.page_layout import lay_out
from edge_runtime.values import Document
from tests.unit.extract_select.made_up_sheets import BILL, page


def test_boxes_of_one_printed_line_are_joined_and_columns_are_not() -> None:
    layout = lay_out(page([[(0, "Blue"), (45, "Heron"), (300, "12.50")]]))
    assert [run.text for run in layout.runs] == ["Blue Heron", "12.50"]
    assert [line.text for line in layout.runs[0].lines] == ["Blue", "Heron"]


def test_rows_do_not_depend_on_the_order_of_recognition() -> None:
    document = page([[(20, "Total"), (300, "9.00")], [(20, "Cash"), (300, "10.00")]])
    shuffled = Document(
        document.source,
        (type(document.pages[0])(document.pages[0].info, document.pages[0].lines[::-1]),),
    )
    for each in (document, shuffled):
        rows = lay_out(each).rows
        assert [[run.text for run in row] for row in rows] == [["Total", "9.00"], ["Cash", "10.00"]]


def test_a_block_goes_on_below_but_not_across_a_wide_gap() -> None:
    layout = lay_out(
        page([[(0, "First line")], [(0, "second line")], [(0, "far away")]], gaps={2: 80})
    )
    first, second, far = layout.runs
    assert layout.below(first) is second
    assert layout.above(second) is first
    assert layout.below(second) is None
    assert layout.above(far) is None


def test_neighbours_in_a_row() -> None:
    layout = lay_out(page(BILL))
    total = next(run for run in layout.runs if run.text == "TOTAL")
    amount = layout.right_of(total)
    assert amount is not None
    assert amount.text == "60.00"
    assert layout.left_of(amount) is total
    assert layout.right_of(amount) is None


def test_an_empty_document_has_an_empty_layout() -> None:
    layout = lay_out(Document("nothing"))
    assert layout.runs == []
    assert layout.rows == []
