from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_runtime.extract.confusions import OCR_REPAIRED
from edge_runtime.extract.dates import (
    AMBIGUOUS_DATE,
    COMPACT_DATE,
    TWO_DIGIT_YEAR,
    UNUSUAL_ORDER,
    find_dates,
    infer_day_first,
)

DATES = st.dates(min_value=dt.date(1970, 1, 1), max_value=dt.date(2068, 12, 31))
MONTHS = {
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
    "diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro "
    "dezembro",
}


def isos(text: str, **options: bool) -> list[str]:
    return [date.iso for date in find_dates(text, **options)]


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("25/12/2018", "2018-12-25"),
        ("25-12-17", "2017-12-25"),
        ("2018-03-04", "2018-03-04"),
        ("2018/03/04", "2018-03-04"),
        ("15 JAN 2018", "2018-01-15"),
        ("15JAN2018", "2018-01-15"),
        ("01-JUL-16", "2016-07-01"),
        ("Jan 5, 2019", "2019-01-05"),
        ("15th March, 2018", "2018-03-15"),
        ("1. Januar 2019", "2019-01-01"),
        ("15 de enero de 2018", "2018-01-15"),
        ("1er janvier 2019", "2019-01-01"),
        ("3 août 2017", "2017-08-03"),
        ("7. Mai 2014", "2014-05-07"),
        ("2014年8月3日", "2014-08-03"),
        ("1.2.2018", "2018-02-01"),
        ("4/14/81", "1981-04-14"),
        ("20180428/191204", "2018-04-28"),
    ],
)
def test_common_forms_are_read(text: str, iso: str) -> None:
    assert isos(text) == [iso]


@pytest.mark.parametrize(
    "text",
    [
        "TEL: 07-35-0740",
        "12.50 10.30 5.60",
        "No. 12-3456-78",
        "1,234,56",
        "99/99/2018",
        "13/25/2018",
    ],
)
def test_other_figures_are_no_dates(text: str) -> None:
    assert isos(text) == []


@given(DATES)
def test_numeric_forms_come_back(date: dt.date) -> None:
    for form in ("%d/%m/%Y", "%d-%m-%Y", "%d.%m.%Y", "%Y-%m-%d", "%d/%m/%y"):
        assert isos(date.strftime(form), day_first=True) == [date.isoformat()]
    assert isos(date.strftime("%m/%d/%Y"), day_first=False) == [date.isoformat()]


@given(DATES, st.sampled_from(sorted(MONTHS)))
def test_month_names_come_back(date: dt.date, language: str) -> None:
    name = MONTHS[language].split()[date.month - 1]
    for text in (f"{date.day}. {name} {date.year}", f"{date.day} {name.upper()} {date.year}"):
        assert isos(text) == [date.isoformat()]


@given(DATES, st.text(alphabet="abc .,:/-0129", max_size=12))
def test_spans_are_where_the_text_is(date: dt.date, before: str) -> None:
    text = f"{before} {date.isoformat()}"
    for found in find_dates(text):
        assert text[found.start : found.end] == found.text


@given(st.text(max_size=60))
def test_any_text_gives_valid_dates_without_overlap(text: str) -> None:
    end = 0
    for found in find_dates(text):
        assert dt.date.fromisoformat(found.iso)
        assert found.start >= end
        end = found.end


def test_swappable_day_and_month_are_flagged_and_decided_by_the_caller() -> None:
    (open_date,) = find_dates("03/04/2018")
    assert open_date.iso == "2018-04-03"
    assert AMBIGUOUS_DATE in open_date.reasons
    (american,) = find_dates("03/04/2018", day_first=False)
    assert (american.iso, american.reasons) == ("2018-03-04", ())
    (same,) = find_dates("04/04/2018")
    assert same.reasons == ()


def test_digits_win_over_the_expected_order() -> None:
    (date,) = find_dates("03/25/2018", day_first=True)
    assert date.iso == "2018-03-25"
    assert UNUSUAL_ORDER in date.reasons


def test_misread_digits_are_repaired_and_said_so() -> None:
    for text in ("12/O3/2018", "l2/03/2018"):
        (date,) = find_dates(text, day_first=True)
        assert (date.iso, date.reasons) == ("2018-03-12", (OCR_REPAIRED,))


def test_a_time_glued_to_the_date_does_not_hide_it() -> None:
    assert isos("25/12/201819:45") == ["2018-12-25"]
    assert isos("25-12-1819:45") == ["2018-12-25"]


def test_both_ends_of_a_range_are_found() -> None:
    assert isos("01.05.14-31.05.14") == ["2014-05-01", "2014-05-31"]


def test_remarks_on_uncertain_forms() -> None:
    assert find_dates("20180304")[0].reasons == (COMPACT_DATE,)
    assert TWO_DIGIT_YEAR in find_dates("25-12-17")[0].reasons


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["25/12/2018", "03/04/2018"], True),
        (["12/25/2018"], False),
        (["03/04/2018"], None),
        (["25/12/2018", "12/25/2018"], None),
        ([], None),
    ],
)
def test_a_documents_dates_prove_the_order(texts: list[str], expected: bool | None) -> None:
    assert infer_day_first(texts) is expected
