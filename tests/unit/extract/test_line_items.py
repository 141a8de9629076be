from __future__ import annotations

from typing import Any

from drawn_pages import document_of

from edge_runtime.extract.assembling import assemble
from edge_runtime.extract.line_items import NO_TABLE, SUM_CHECKED, SUM_WRONG, item_fields
from edge_runtime.extract.lists import array_fields
from edge_runtime.extract.schema_loading import load_schema
from edge_runtime.values import Document, FieldStatus, FieldValue

INVOICE = load_schema("invoice")

PAGE = """
Harbour Goods Ltd                          Invoice 1077

Description                 Qty      Unit price       Amount
Green tea, loose              2            4.50         9.00
  organic, 250 g
Tea pot                       1           24.90        24.90
Total Care cleaning set       3            5.00        15.00

                                 Subtotal              48.90
                                 Tax 10 %               4.89
                                 Total                 53.79
"""


def rows(document: Document, schema: Any = INVOICE) -> list[dict[str, Any]]:
    return assemble(schema, item_fields(document, schema.arrays[0]))["items"]


def cell(fields: list[FieldValue], path: str) -> FieldValue:
    return next(field for field in fields if field.path == path)


def test_rows_below_the_headings_are_items_until_the_totals() -> None:
    assert rows(document_of(PAGE)) == [
        {
            "description": "Green tea, loose\norganic, 250 g",
            "quantity": 2,
            "unit_price": 4.5,
            "amount": 9.0,
        },
        {"description": "Tea pot", "quantity": 1, "unit_price": 24.9, "amount": 24.9},
        {
            "description": "Total Care cleaning set",
            "quantity": 3,
            "unit_price": 5.0,
            "amount": 15.0,
        },
    ]


def test_rows_that_add_up_are_sure_and_others_are_not() -> None:
    good = cell(item_fields(document_of(PAGE), INVOICE.arrays[0]), "items/1/amount")
    assert SUM_CHECKED in good.reasons
    assert good.status is FieldStatus.OK
    spoilt = PAGE.replace("1           24.90        24.90", "1           24.90        42.90")
    bad = cell(item_fields(document_of(spoilt), INVOICE.arrays[0]), "items/1/amount")
    assert SUM_WRONG in bad.reasons
    assert bad.status is FieldStatus.REVIEW


def test_every_cell_has_its_place() -> None:
    document = document_of(PAGE)
    for field in item_fields(document, INVOICE.arrays[0]):
        if field.value is not None:
            assert " ".join(e.text for e in field.evidence) == str(field.raw).replace("\n", " ")


def test_german_headings_of_two_lines_and_a_decimal_comma() -> None:
    document = document_of(
        """
        Pos.   Menge   Beschreibung              VK-Preis    Zeilenbetrag
                                                     Ohne            Ohne
                                                    MwSt.           MwSt.
        1          2   Kleines Paket                 3,89            7,78
        2          1   Grosses Paket             1.005,39        1.005,39

                                            Gesamtbetrag         1.013,17
        """
    )
    assert rows(document) == [
        {"description": "Kleines Paket", "quantity": 2, "unit_price": 3.89, "amount": 7.78},
        {"description": "Grosses Paket", "quantity": 1, "unit_price": 1005.39, "amount": 1005.39},
    ]


def test_a_table_goes_on_on_the_next_page() -> None:
    second = """
    Description                 Qty      Unit price       Amount
    Sugar                         1            2.00         2.00
    """
    first = PAGE.split("Total Care", maxsplit=1)[0]
    names = [row["description"] for row in rows(document_of(first, second))]
    assert names == ["Green tea, loose\norganic, 250 g", "Tea pot", "Sugar"]


def test_columns_nobody_asked_for_do_not_spill_over() -> None:
    schema = load_schema('{"items": [{"item": "string", "price": "amount"}]}')
    document = document_of(
        """
        Item            Colour      Stock      Price
        Tea pot         dark red       17      24.90
        Cup             white         120       3.50
        """
    )
    assert rows(document, schema) == [
        {"item": "Tea pot", "price": 24.9},
        {"item": "Cup", "price": 3.5},
    ]


def test_tables_without_numbers_work_too() -> None:
    schema = load_schema('{"items": [{"name": "string", "city": "string"}]}')
    document = document_of(
        """
        Name            City
        Jo Miller       Westport
        Ann Baker       Northam
        """
    )
    assert rows(document, schema) == [
        {"name": "Jo Miller", "city": "Westport"},
        {"name": "Ann Baker", "city": "Northam"},
    ]


def test_empty_cells_are_missing_not_dropped() -> None:
    gap = PAGE.replace("1           24.90        24.90", "             24.90        24.90")
    fields = item_fields(document_of(gap), INVOICE.arrays[0])
    quantity = cell(fields, "items/1/quantity")
    assert (quantity.value, quantity.status) == (None, FieldStatus.MISSING)


def test_no_table_is_one_missing_field() -> None:
    (field,) = item_fields(document_of("Dear Jo,\nthank you for everything."), INVOICE.arrays[0])
    assert (field.path, field.status, field.reasons) == ("items", FieldStatus.MISSING, (NO_TABLE,))


def test_lists_of_plain_values_come_from_their_label_or_form() -> None:
    schema = load_schema('{"tags": ["string"], "contacts": ["email"]}')
    document = document_of(
        "Tags: red, green; blue\n\nWrite to jo@example.org or call\nann@example.org"
    )
    tags, contacts = (array_fields(document, spec) for spec in schema.arrays)
    assert [field.value for field in tags] == ["red", "green", "blue"]
    assert [field.value for field in contacts] == ["jo@example.org", "ann@example.org"]
    assert all(field.evidence for field in (*tags, *contacts))
    empty = array_fields(document_of("Hello"), schema.arrays[0])
    assert [(field.path, field.value) for field in empty] == [("tags", None)]
