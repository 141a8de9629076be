from __future__ import annotations

import pytest

from edge_runtime.extract.labels import FieldRole, match_label, role_of, split_name, terms_of
from edge_runtime.extract.schema import FieldKind, FieldSpec


def spec(name: str, kind: FieldKind = FieldKind.STRING, *labels: str, path: str = "") -> FieldSpec:
    return FieldSpec(path or name, name, kind, labels=labels)


@pytest.mark.parametrize(
    ("name", "kind", "role"),
    [
        ("company", "string", FieldRole.ORGANISATION),
        ("vendorName", "string", FieldRole.ORGANISATION),
        ("RecipientName", "string", FieldRole.PERSON),
        ("shipping_address", "text", FieldRole.ADDRESS),
        ("invoice_number", "string", FieldRole.IDENTIFIER),
        ("RecipientTIN", "string", FieldRole.IDENTIFIER),
        ("total", "amount", FieldRole.TOTAL),
        ("amountDue", "amount", FieldRole.TOTAL),
        ("subtotal", "amount", FieldRole.AMOUNT),
        ("total_tax", "amount", FieldRole.AMOUNT),
        ("quantity", "integer", FieldRole.NUMBER),
        ("due_date", "date", FieldRole.DATE),
        ("email", "email", FieldRole.CONTACT),
        ("currency", "enum", FieldRole.CHOICE),
        ("remarks", "text", FieldRole.TEXT),
        ("colour", "string", FieldRole.STRING),
    ],
)
def test_role_follows_from_kind_and_name(name: str, kind: str, role: FieldRole) -> None:
    assert role_of(spec(name, FieldKind(kind))) is role


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("invoiceNumber", "invoice number"),
        ("RecipientTIN", "recipient tin"),
        ("seller/name", "seller name"),
        ("due_date", "due date"),
    ],
)
def test_names_are_split_into_words(name: str, words: str) -> None:
    assert split_name(name) == words


@pytest.mark.parametrize("text", ["Invoice No.", "INVOICE NO:", "Involce No", "lnvoice No :"])
def test_a_label_is_found_despite_case_and_confused_letters(text: str) -> None:
    hit = match_label(text, terms_of(spec("number", FieldKind.STRING, "invoice no")))
    assert hit.score > 0.9
    assert hit.coverage > 0.9


def test_a_label_inside_other_words_covers_less() -> None:
    terms = terms_of(spec("total", FieldKind.AMOUNT, "total"))
    alone, within = match_label("Total:", terms), match_label("Total savings this year", terms)
    assert alone.coverage > 2 * within.coverage


def test_a_short_label_is_no_part_of_a_longer_word() -> None:
    assert match_label("Notice", terms_of(spec("x", FieldKind.STRING, "no"))).score == 0.0


def test_text_without_letters_has_no_label() -> None:
    assert match_label("12.50", terms_of(spec("total", FieldKind.AMOUNT, "total"))).score == 0.0
