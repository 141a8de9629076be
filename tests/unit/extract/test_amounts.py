from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_runtime.extract.amounts import find_amounts, infer_decimal_mark
from edge_runtime.extract.confusions import OCR_REPAIRED
from edge_runtime.extract.number_format import AMBIGUOUS_THOUSANDS, ODD_GROUPING, parse_number

CENTS = st.integers(min_value=0, max_value=99_999_999_99)


def values(text: str, mark: str | None = None) -> list[float]:
    return [amount.value for amount in find_amounts(text, decimal_mark=mark)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.234,56", 1234.56),
        ("1'234.50", 1234.5),
        ("CHF 1\u2019234.50", 1234.5),
        ("27,80", 27.8),
        ("3 038,14 EUR", 3038.14),
        ("3\u00a0038,14 €", 3038.14),
        ("RM 12.50", 12.5),
        ("RM60.30", 60.3),
        ("$8.20", 8.2),
        ("(12.00)", -12.0),
        ("-5.59", -5.59),
        ("5.59-", -5.59),
        ("2,400.00CR", -2400.0),
        ("1,23,456.00", 123456.0),
        ("27,-", 27.0),
        (".025", 0.025),
        ("12.00SR", 12.0),
        ("TOTAL AMT........ RM 60.31", 60.31),
        ("$ 390,50", 390.5),
    ],
)
def test_common_forms_are_read(text: str, value: float) -> None:
    assert values(text) == [pytest.approx(value)]


@pytest.mark.parametrize(
    "text", ["TEL:07-3507405", "050100035279", "12:30", "1.2.3", "A4", "x12.50", "B12.50"]
)
def test_other_figures_are_no_amounts(text: str) -> None:
    assert values(text) == []


def group(digits: str, mark: str) -> str:
    return f"{int(digits):,}".replace(",", mark)


@given(
    CENTS,
    st.sampled_from([(",", "."), (".", ","), ("'", "."), ("\u00a0", ","), ("", "."), ("", ",")]),
)
def test_written_amounts_come_back(cents: int, marks: tuple[str, str]) -> None:
    whole, rest = divmod(cents, 100)
    text = f"{group(str(whole), marks[0])}{marks[1]}{rest:02d}"
    parsed = parse_number(text)
    assert parsed is not None
    assert parsed.value == pytest.approx(cents / 100)
    assert parsed.reasons == ()
    (found,) = find_amounts(f"Sum EUR {text}")
    assert found.value == pytest.approx(cents / 100)
    assert found.currency == "EUR"


@given(st.text(max_size=50))
def test_any_text_gives_spans_in_order(text: str) -> None:
    end = 0
    for found in find_amounts(text):
        assert text[found.start : found.end] == found.text
        assert found.start >= end
        end = found.end


def test_three_digits_after_one_mark_are_flagged_unless_decided() -> None:
    (amount,) = find_amounts("1,234")
    assert (amount.value, amount.reasons) == (1234.0, (AMBIGUOUS_THOUSANDS,))
    (decided,) = find_amounts("1,234", decimal_mark=".")
    assert decided.reasons == ()
    (dollars,) = find_amounts("$1,234")
    assert (dollars.value, dollars.reasons) == (1234.0, ())


def test_measures_may_have_three_decimals() -> None:
    parsed = parse_number("1.234", is_money=False)
    assert parsed is not None
    assert (parsed.value, parsed.reasons) == (1.234, (AMBIGUOUS_THOUSANDS,))
    assert find_amounts("0.125")[0].value == 0.125


def test_misread_amounts_are_repaired_and_said_so() -> None:
    for text, value in (("1O.5O", 10.5), ("12 .50", 12.5), ("12. 50", 12.5), ("S5.00", 5.0)):
        (amount,) = find_amounts(text)
        assert amount.value == value
        assert OCR_REPAIRED in amount.reasons
    assert ODD_GROUPING in find_amounts("1.234.56")[0].reasons


def test_columns_stay_apart() -> None:
    assert values("QTY 2 123.00") == [2.0, 123.0]
    assert values("1 x 10.50 @ 5.25") == [1.0, 10.5, 5.25]


def test_percentages_are_marked() -> None:
    (share,) = find_amounts("TAX(6.00%)")
    assert share.is_percent
    assert share.value == 6.0


@pytest.mark.parametrize(
    ("texts", "mark"),
    [(["27,80", "1.234,56"], ","), (["12.50"], "."), (["12.50", "27,80"], None), (["1,234"], None)],
)
def test_a_documents_amounts_prove_the_decimal_mark(texts: list[str], mark: str | None) -> None:
    assert infer_decimal_mark(texts) == mark
