from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_runtime.extract import normalising as norm
from edge_runtime.extract.normalising import Conventions, infer_conventions, normalise
from edge_runtime.extract.schema import FieldHints, FieldKind, FieldSpec


def choice(*options: Any) -> FieldSpec:
    return FieldSpec("kind", "kind", FieldKind.ENUM, enum=options)


@pytest.mark.parametrize(
    ("raw", "kind", "value"),
    [
        ("TOTAL RM 12.50", FieldKind.AMOUNT, 12.5),
        ("Total 2 items 12.50", FieldKind.AMOUNT, 12.5),
        ("1 234", FieldKind.INTEGER, 1234),
        ("12.00", FieldKind.INTEGER, 12),
        ("6 %", FieldKind.NUMBER, 6.0),
        ("Date: 25/12/2018 10:30", FieldKind.DATE, "2018-12-25"),
        ("25/12/20 18", FieldKind.DATE, "2018-12-25"),
        ("25122018", FieldKind.DATE, "2018-12-25"),
        ("Ja", FieldKind.BOOLEAN, True),
        ("[x] yes", FieldKind.BOOLEAN, True),
        ("unchecked", FieldKind.BOOLEAN, False),
        ("perhaps", FieldKind.BOOLEAN, None),
        ("Mail: jo @ Example.ORG", FieldKind.EMAIL, "jo@example.org"),
        ("Tel: 03-5547 360", FieldKind.PHONE, "03-5547 360"),
        ("see www.example.org.", FieldKind.URL, "www.example.org"),
        (": ACME  Ltd,", FieldKind.STRING, "ACME Ltd"),
        ("12  Main St\n Springfield ", FieldKind.TEXT, "12 Main St\nSpringfield"),
    ],
)
def test_printed_text_becomes_a_value(raw: str, kind: FieldKind, value: Any) -> None:
    read = normalise(raw, kind)
    assert read.raw == raw
    assert read.value == value


@pytest.mark.parametrize("kind", list(FieldKind))
def test_nothing_gives_nothing_with_a_reason(kind: FieldKind) -> None:
    read = normalise("   ", kind)
    assert read.value is None
    assert read.reasons == (norm.EMPTY,)


@pytest.mark.parametrize(
    "kind", [k for k in FieldKind if k not in (FieldKind.STRING, FieldKind.TEXT)]
)
def test_unreadable_text_is_never_guessed(kind: FieldKind) -> None:
    read = normalise("lorem ipsum dolor", kind, spec=choice("EUR", "USD"))
    assert read.value is None
    assert read.reasons


@given(st.text(max_size=40), st.sampled_from(list(FieldKind)))
def test_any_text_of_any_kind_is_read_or_refused(raw: str, kind: FieldKind) -> None:
    read = normalise(raw, kind, spec=choice("A", "B"))
    assert read.raw == raw
    assert read.value is not None or read.reasons


def test_a_fraction_is_no_integer() -> None:
    assert normalise("12.5", FieldKind.INTEGER).reasons == (norm.NOT_AN_INTEGER,)


@pytest.mark.parametrize(
    ("raw", "value", "reasons"),
    [
        ("eur", "EUR", ()),
        ("€", "EUR", ()),
        ("Währung: EUR", "EUR", ()),
        ("Franken", "Franken", ()),
        ("Franke", "Franken", (norm.FUZZY_OPTION,)),
        ("GBP", None, (norm.NOT_AN_OPTION,)),
    ],
)
def test_options_are_met_without_case_and_nearly(
    raw: str, value: str | None, reasons: tuple[str, ...]
) -> None:
    read = normalise(raw, FieldKind.ENUM, spec=choice("EUR", "USD", "Franken"))
    assert (read.value, read.reasons) == (value, reasons)


def test_options_keep_their_type_and_accents() -> None:
    assert normalise("2", FieldKind.ENUM, spec=choice(1, 2)).value == 2
    assert normalise("CAFE", FieldKind.ENUM, spec=choice("café", "thé")).value == "café"


def test_two_options_equally_near_are_not_chosen_between() -> None:
    read = normalise("approvea", FieldKind.ENUM, spec=choice("approved", "approver"))
    assert read.value is None


def test_several_dates_are_flagged() -> None:
    read = normalise("01.05.2014 - 31.05.2014", FieldKind.DATE)
    assert read.value == "2014-05-01"
    assert norm.SEVERAL_VALUES in read.reasons


def test_locale_field_and_document_decide_in_turn() -> None:
    assert normalise("03/04/2018", FieldKind.DATE, locale="en_US").value == "2018-03-04"
    assert normalise("03/04/2018", FieldKind.DATE, locale="en_GB").value == "2018-04-03"
    document = Conventions(day_first=True)
    read = normalise("03/04/2018", FieldKind.DATE, locale="en_US", conventions=document)
    assert read.value == "2018-04-03"
    spec = FieldSpec("d", "d", FieldKind.DATE, hints=FieldHints(day_first=False))
    read = normalise("03/04/2018", FieldKind.DATE, spec=spec, conventions=document)
    assert read.value == "2018-03-04"
    assert read.reasons == ()


def test_a_document_proves_its_conventions() -> None:
    found = infer_conventions(["25/12/2018", "1.234,56 EUR"], locale="en_US")
    assert found == Conventions(day_first=True, decimal_mark=",")
    assert infer_conventions([], locale="de_CH") == Conventions(day_first=True, decimal_mark=".")


def test_a_pattern_that_fails_is_noticed() -> None:
    spec = FieldSpec("n", "n", FieldKind.STRING, hints=FieldHints(patterns=(r"^INV-\d+$",)))
    assert normalise("INV-12", FieldKind.STRING, spec=spec).reasons == ()
    assert normalise("12", FieldKind.STRING, spec=spec).reasons == (norm.PATTERN_MISMATCH,)
