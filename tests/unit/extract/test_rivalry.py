from __future__ import annotations

from edge_runtime.extract.open_strategy import open_strategy
from edge_runtime.extract.schema_loading import load_schema
from edge_runtime.values import Box, Document, FieldStatus, FieldValue, Line, Page, PageInfo, Quad

SCHEMA = {"order date": "date", "delivery date": "date", "net sum": "amount", "shipping": "amount"}


def document(rows: list[list[tuple[float, str]]]) -> Document:
    lines: list[Line] = []
    for row, cells in enumerate(rows):
        for x, text in cells:
            box = Box(x, 40.0 * row, x + 11.0 * len(text), 40.0 * row + 24)
            lines.append(Line(0, len(lines), text, 0.98, Quad.from_box(box), box, row=row))
    return Document("made up", (Page(PageInfo(0, 800, 1000), tuple(lines)),))


def fields(rows: list[list[tuple[float, str]]]) -> dict[str, FieldValue]:
    found = open_strategy("select").extract(document(rows), load_schema(SCHEMA), None)
    return {field.path: field for field in found}


def test_each_date_goes_to_the_field_whose_label_stands_beside_it() -> None:
    got = fields(
        [
            [(20, "Acme Trading Ltd")],
            [(20, "Delivery date"), (300, "2026-06-14")],
            [(20, "Order date"), (300, "2026-05-02")],
        ]
    )
    assert got["order date"].value == "2026-05-02"
    assert got["delivery date"].value == "2026-06-14"


def test_labels_above_count_as_well() -> None:
    got = fields(
        [
            [(20, "Acme Trading Ltd")],
            [(20, "Delivery date"), (400, "Order date")],
            [(20, "2026-06-14"), (400, "2026-05-02")],
        ]
    )
    assert got["order date"].value == "2026-05-02"
    assert got["delivery date"].value == "2026-06-14"


def test_amounts_follow_their_labels() -> None:
    got = fields(
        [
            [(20, "Acme Trading Ltd")],
            [(20, "Shipping"), (300, "4.90")],
            [(20, "Net sum"), (300, "120.00")],
        ]
    )
    assert got["shipping"].value == 4.9
    assert got["net sum"].value == 120.0


def test_the_only_date_under_a_rivals_label_is_never_ok() -> None:
    got = fields([[(20, "Acme Trading Ltd")], [(20, "Order date"), (300, "2026-05-02")]])
    assert got["order date"].value == "2026-05-02"
    assert got["delivery date"].status is not FieldStatus.OK


def test_one_place_answers_one_field() -> None:
    got = fields([[(20, "Acme Trading Ltd")], [(20, "Dated"), (300, "2026-05-02")]])
    shown = [f for f in (got["order date"], got["delivery date"]) if f.value is not None]
    assert len(shown) <= 1
