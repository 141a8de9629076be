"""Whether a field may be used without a look.

A field is `ok` only when it stands in the document, is read without doubt and is probable enough.
The thresholds are data (`ReviewRules`, in recipes `[extraction.review]`); their defaults follow
from the aim that at most one `ok` field in ten is wrong: with calibrated confidences every field
above `ok_confidence` is more often right than that on average.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from edge_runtime.extract import normalising as norm
from edge_runtime.extract.assembling import SCHEMA_VIOLATION
from edge_runtime.extract.dates import COMPACT_DATE, UNUSUAL_ORDER
from edge_runtime.extract.grounding import MatchKind
from edge_runtime.values import FieldStatus

NOT_IN_DOCUMENT = "not_in_document"
NEARLY_IN_DOCUMENT = "nearly_in_document"
LOW_CONFIDENCE = "low_confidence"
LOW_OCR_CONFIDENCE = "low_ocr_confidence"
TRUNCATED = "truncated_output"
ABSENT = "absent"
REQUIRED = "required_by_schema"

DOUBTS: frozenset[str] = frozenset(
    {
        norm.AMBIGUOUS_DATE,
        norm.AMBIGUOUS_THOUSANDS,
        norm.ODD_GROUPING,
        norm.SEVERAL_VALUES,
        norm.FUZZY_OPTION,
        norm.PATTERN_MISMATCH,
        COMPACT_DATE,
        UNUSUAL_ORDER,
        SCHEMA_VIOLATION,
        NOT_IN_DOCUMENT,
        NEARLY_IN_DOCUMENT,
        LOW_OCR_CONFIDENCE,
        TRUNCATED,
    }
)
"""Reasons that ask for a look whatever the confidence. Others are only remarks."""

MATCH_FACTORS: dict[MatchKind, float] = {
    MatchKind.EXACT: 1.0,
    MatchKind.NORMALISED: 0.98,
    MatchKind.VALUE: 0.98,
    MatchKind.PARTS: 0.85,
    MatchKind.FUZZY: 0.6,
    MatchKind.NONE: 0.05,
}
"""By how much the way a value was found lowers the chance that it is right."""


@dataclass(frozen=True, slots=True)
class ReviewRules:
    """When a field is `ok`, needs `review`, or counts as `missing`.

    `ok_confidence`: least probability of an `ok` field. `keep_confidence`: below it the value is
    not shown at all. `ok_ocr_confidence`: least recognition confidence of the lines it stands on.
    `tolerated`: doubts that shall not matter, such as `ambiguous_date`; never those that say that
    the value is not in the document.
    """

    ok_confidence: float = 0.7
    keep_confidence: float = 0.0
    ok_ocr_confidence: float = 0.5
    tolerated: frozenset[str] = frozenset()


DEFAULT_RULES = ReviewRules()


def decide_status(
    value: Any,
    *,
    confidence: float,
    match: MatchKind,
    reasons: Iterable[str] = (),
    ocr_confidence: float = 1.0,
    rules: ReviewRules = DEFAULT_RULES,
) -> tuple[FieldStatus, tuple[str, ...]]:
    """Status of a field, and its reasons with those of this decision added.

    Args:
        value: The normalised value; None is absent.
        confidence: Calibrated probability that the value is right, 0..1.
        match: How the value was found in the document.
        reasons: What normalising and the strategy noticed.
        ocr_confidence: Lowest recognition confidence among the lines of evidence, 0..1.
        rules: Thresholds.
    """
    noted = list(dict.fromkeys(reasons))
    if value is None:
        return FieldStatus.MISSING, tuple(noted or [ABSENT])
    if confidence < rules.keep_confidence:
        return FieldStatus.MISSING, (*noted, LOW_CONFIDENCE)
    if match is MatchKind.NONE:
        noted.append(NOT_IN_DOCUMENT)
    elif match is MatchKind.FUZZY:
        noted.append(NEARLY_IN_DOCUMENT)
    if ocr_confidence < rules.ok_ocr_confidence:
        noted.append(LOW_OCR_CONFIDENCE)
    if confidence < rules.ok_confidence:
        noted.append(LOW_CONFIDENCE)
    tolerated = rules.tolerated - {NOT_IN_DOCUMENT, NEARLY_IN_DOCUMENT}
    doubts = (set(noted) & DOUBTS) - tolerated
    is_ok = not doubts and confidence >= rules.ok_confidence
    return FieldStatus.OK if is_ok else FieldStatus.REVIEW, tuple(dict.fromkeys(noted))
