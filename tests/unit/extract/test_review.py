from __future__ import annotations

import pytest

from edge_runtime.extract import review
from edge_runtime.extract.grounding import MatchKind
from edge_runtime.extract.review import ReviewRules, decide_status
from edge_runtime.values import FieldStatus


def status_of(value: object = "x", **facts: object) -> FieldStatus:
    settings: dict[str, object] = {"confidence": 0.9, "match": MatchKind.EXACT, **facts}
    return decide_status(value, **settings)[0]  # type: ignore[arg-type]


def test_a_sure_value_in_the_document_is_ok() -> None:
    assert decide_status("x", confidence=0.9, match=MatchKind.EXACT, reasons=["ocr_repaired"]) == (
        FieldStatus.OK,
        ("ocr_repaired",),
    )


def test_nothing_is_missing() -> None:
    assert decide_status(None, confidence=0.9, match=MatchKind.NONE) == (
        FieldStatus.MISSING,
        (review.ABSENT,),
    )


@pytest.mark.parametrize("match", [MatchKind.NONE, MatchKind.FUZZY])
def test_a_value_that_is_not_printed_is_never_ok(match: MatchKind) -> None:
    everything = ReviewRules(ok_confidence=0.0, ok_ocr_confidence=0.0, tolerated=review.DOUBTS)
    assert status_of(match=match, confidence=1.0, rules=everything) is FieldStatus.REVIEW


@pytest.mark.parametrize("reason", sorted(review.DOUBTS))
def test_every_doubt_asks_for_a_look(reason: str) -> None:
    assert status_of(reasons=[reason]) is FieldStatus.REVIEW


def test_thresholds_are_the_rules() -> None:
    assert status_of(confidence=0.69) is FieldStatus.REVIEW
    assert status_of(confidence=0.69, rules=ReviewRules(ok_confidence=0.6)) is FieldStatus.OK
    assert status_of(confidence=0.1, rules=ReviewRules(keep_confidence=0.2)) is FieldStatus.MISSING
    assert status_of(ocr_confidence=0.4) is FieldStatus.REVIEW
    assert status_of(ocr_confidence=0.4, rules=ReviewRules(ok_ocr_confidence=0.3)) is FieldStatus.OK


def test_doubts_can_be_tolerated() -> None:
    rules = ReviewRules(tolerated=frozenset({"ambiguous_date"}))
    assert status_of(reasons=["ambiguous_date"], rules=rules) is FieldStatus.OK
