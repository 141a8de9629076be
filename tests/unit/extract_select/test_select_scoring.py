from __future__ import annotations

from decimal import Decimal

import pytest

from tools.score_fields import (
    alphanumerics,
    exact_equal,
    kind_of,
    normalised_equal,
    parse_amount,
    parse_date,
)


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("25/12/2018", "2018-12-25"),
        ("24-05-18", "2018-05-24"),
        ("2018-03-18", "2018-03-18"),
        ("14 MAR 2018", "2018-03-14"),
        ("05-JAN-2017", "2017-01-05"),
        ("11.02.18", "2018-02-11"),
        ("25032018", "2018-03-25"),
        ("March 5, 2018", "2018-03-05"),
        ("12/25/2018", "2018-12-25"),
    ],
)
def test_dates_are_read_in_many_forms(text: str, iso: str) -> None:
    day = parse_date(text)
    assert day is not None
    assert day.isoformat() == iso


@pytest.mark.parametrize("text", ["", "no date", "31/02/2018", "99/99/99"])
def test_what_is_no_date_is_none(text: str) -> None:
    assert parse_date(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("RM 1,234.50", "1234.50"),
        ("1.234,56 €", "1234.56"),
        ("1'234.50", "1234.50"),
        ("27,80", "27.80"),
        ("90,000", "90000"),
        ("-5.00", "-5.00"),
        ("(5.00)", "-5.00"),
    ],
)
def test_amounts_are_read_whatever_the_separators(text: str, number: str) -> None:
    assert parse_amount(text) == Decimal(number)


def test_text_is_compared_by_letters_and_digits_only() -> None:
    assert alphanumerics("No. 3, Elm-Street") == "no3elmstreet"
    assert normalised_equal("address", "NO 3 ELM STREET", None, "No. 3, Elm Street.")
    assert not normalised_equal("address", "NO 8 ELM STREET", None, "No. 3, Elm Street.")


def test_dates_and_amounts_are_compared_by_meaning() -> None:
    assert normalised_equal("date", "2018-12-25", "25/12/18", "25/12/2018")
    assert not normalised_equal("date", "2018-12-24", "25/12/18", "25/12/2018")
    assert normalised_equal("total", 8.2, "$8.20", "RM8.20")
    assert not normalised_equal("total", 82.0, "$8.20", "$8.20")


def test_a_right_text_does_not_excuse_a_wrong_value() -> None:
    assert not normalised_equal("date", "2018-12-05", "12/05/2018", "12/05/2018")
    assert not normalised_equal("total", 1.0, "12.50", "12.50")


def test_nothing_equals_only_nothing() -> None:
    assert normalised_equal("total", None, None, None)
    assert not normalised_equal("total", None, None, "1.00")
    assert not normalised_equal("total", 1.0, "1.00", None)


def test_exact_is_letter_by_letter() -> None:
    assert exact_equal(" 8.20 ", "8.20")
    assert not exact_equal("8,20", "8.20")
    assert not exact_equal(None, "8.20")


@pytest.mark.parametrize(
    ("name", "reference", "kind"),
    [
        ("date", "25/12/2018", "date"),
        ("due_date", "n/a", "text"),
        ("total", "8.20", "amount"),
        ("amount_untaxed", 4.11, "amount"),
        ("company", "Acme", "text"),
        ("invoice_number", "42183017", "text"),
    ],
)
def test_kind_follows_name_and_reference(name: str, reference: object, kind: str) -> None:
    assert kind_of(name, reference) == kind
