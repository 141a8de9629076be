from __future__ import annotations

import pytest
from drawn_pages import CHAR_WIDTH, line_at, lines_of
from hypothesis import given
from hypothesis import strategies as st

from edge_runtime.extract.grounding import LineIndex, MatchKind
from edge_runtime.extract.normalising import Conventions
from edge_runtime.extract.schema import FieldKind
from edge_runtime.values import Line, Quad

SHOP = lines_of(
    "SUNRISE Café",
    "NO.53 HARBOUR ROAD 1,",
    "GREEN PARK.",
    "81200 WESTPORT",
    "Date 03/04/2018",
    "TOTAL 1,234.50",
    "Invoice 2018-77 total 1,234.50",
)


@pytest.fixture
def shop() -> LineIndex:
    return LineIndex(SHOP, Conventions(day_first=True))


@pytest.mark.parametrize(
    ("text", "kind", "texts"),
    [
        ("GREEN PARK", MatchKind.EXACT, ["GREEN PARK"]),
        ("sunrise cafe", MatchKind.NORMALISED, ["SUNRISE Café"]),
        ("HARBOUR ROAD 1, GREEN PARK", MatchKind.NORMALISED, ["HARBOUR ROAD 1,", "GREEN PARK"]),
        ("Green Parc, 81200 Westport", MatchKind.FUZZY, ["GREEN PARK.", "81200 WESTPORT"]),
        ("SUNRISE, 81200 WESTPORT", MatchKind.PARTS, ["SUNRISE", "81200 WESTPORT"]),
        ("HARBUR ROAD", MatchKind.FUZZY, ["HARBOUR ROAD"]),
        ("MOON LIMITED", MatchKind.NONE, []),
        ("", MatchKind.NONE, []),
        ("...", MatchKind.NONE, []),
    ],
)
def test_values_are_found_as_well_as_they_can_be(
    shop: LineIndex, text: str, kind: MatchKind, texts: list[str]
) -> None:
    found = shop.find(text)
    assert found.kind is kind
    assert [e.text for e in found.evidence] == texts


def test_values_are_found_by_what_they_mean(shop: LineIndex) -> None:
    date = shop.find("2018-04-03", kind=FieldKind.DATE, value="2018-04-03")
    assert (date.kind, date.evidence[0].text) == (MatchKind.VALUE, "03/04/2018")
    amount = shop.find("1234.5", kind=FieldKind.AMOUNT, value=1234.5)
    assert (amount.kind, amount.n_places) == (MatchKind.VALUE, 2)


@pytest.mark.parametrize("text", ["234.50", "1,234", "18", "2018-7", "RISE"])
def test_pieces_of_numbers_and_words_are_not_the_value(shop: LineIndex, text: str) -> None:
    assert shop.find(text).kind is MatchKind.NONE


def test_a_changed_digit_is_another_number(shop: LineIndex) -> None:
    assert shop.find("81201").kind is MatchKind.NONE
    assert shop.find("1,234.60", kind=FieldKind.AMOUNT, value=1234.6).kind is MatchKind.NONE


def test_the_nearest_of_equal_places_is_taken(shop: LineIndex) -> None:
    assert shop.find("1,234.50").spans[0].position == 5
    assert shop.find("1,234.50", near=6).spans[0].position == 6


def test_evidence_is_the_box_of_the_words(shop: LineIndex) -> None:
    (place,) = shop.find("HARBOUR ROAD").evidence
    assert (place.quad.box.x0, place.quad.box.x1) == (6 * CHAR_WIDTH, 18 * CHAR_WIDTH)
    assert place.line == 1


def test_evidence_without_words_is_the_box_of_the_line() -> None:
    whole = line_at("HELLO WORLD", 0)
    bare = Line(0, 0, whole.text, 0.9, whole.quad, whole.reading)
    assert LineIndex([bare]).find("WORLD").evidence[0].quad == whole.quad


def test_evidence_follows_turned_words() -> None:
    quad = Quad(((100, 0), (100, 110), (80, 110), (80, 0)))
    line = line_at("HELLO WORLD", 0)
    turned = Line(0, 0, line.text, 0.9, quad, line.reading)
    assert LineIndex([turned]).find("HELLO WORLD").evidence[0].quad == quad


def test_glued_words_are_found_but_only_long_ones() -> None:
    index = LineIndex(lines_of("SUNRISETRADING SDN", "ABCDE"))
    assert index.find("TRADING").kind is MatchKind.NORMALISED
    assert index.find("BCD").kind is MatchKind.NONE


WORDS = st.text(alphabet="abcdefg", min_size=3, max_size=7)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=1, max_size=6), st.data())
def test_any_run_of_words_is_found(rows: list[list[str]], data: st.DataObject) -> None:
    index = LineIndex(lines_of(*(" ".join(row) for row in rows)))
    row = data.draw(st.sampled_from(rows))
    start = data.draw(st.integers(0, len(row) - 1))
    wanted = " ".join(row[start : data.draw(st.integers(start + 1, len(row)))])
    found = index.find(wanted)
    assert found.kind is MatchKind.EXACT
    assert found.evidence[0].text == wanted


@given(st.lists(st.text(max_size=12), max_size=5), st.text(max_size=12))
def test_any_text_can_be_looked_up(rows: list[str], wanted: str) -> None:
    found = LineIndex(lines_of(*rows)).find(wanted)
    for span, place in zip(found.spans, found.evidence, strict=True):
        assert rows[span.position][span.start : span.end] == place.text


def test_an_empty_document_has_nothing() -> None:
    assert LineIndex(()).find("x y z").kind is MatchKind.NONE
