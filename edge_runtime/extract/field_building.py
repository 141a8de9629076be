"""A printed text turned into a finished field: normalised, grounded, judged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edge_runtime.extract.assembling import SCHEMA_VIOLATION, to_json_type, violations
from edge_runtime.extract.grounding import NOT_FOUND, Grounding, LineIndex
from edge_runtime.extract.normalising import Conventions, normalise
from edge_runtime.extract.review import (
    ABSENT,
    DEFAULT_RULES,
    MATCH_FACTORS,
    REQUIRED,
    ReviewRules,
    decide_status,
)
from edge_runtime.extract.schema import FieldKind, FieldSpec
from edge_runtime.values import FieldStatus, FieldValue

_UNPRINTED = frozenset({FieldKind.BOOLEAN})


def missing_field(spec: FieldSpec, *, path: str | None = None, reason: str = ABSENT) -> FieldValue:
    """A field that was not found; says so when the schema insists on it."""
    insists = spec.required and not spec.nullable
    reasons = (reason, REQUIRED) if insists else (reason,)
    where = spec.path if path is None else path
    return FieldValue(where, None, None, 0.0, FieldStatus.MISSING, (), reasons)


def field_from_text(
    raw: str,
    spec: FieldSpec,
    index: LineIndex,
    *,
    probability: float,
    path: str | None = None,
    reasons: Iterable[str] = (),
    conventions: Conventions | None = None,
    rules: ReviewRules = DEFAULT_RULES,
) -> FieldValue:
    """The field that a printed text gives.

    Args:
        raw: The text a model or a rule chose.
        spec: What was looked for.
        index: The document, to ground the text in.
        probability: That the choice is right, before grounding and recognition count, 0..1.
        path: Where in the result, the spec's own path by default.
        reasons: What was noticed while choosing.
        conventions: How dates and numbers of this document read.
        rules: When a value needs a look.
    """
    read = normalise(raw, spec.kind, spec=spec, conventions=conventions)
    noted = [*reasons, *read.reasons]
    if read.value is not None and violations(
        to_json_type(read.value, spec.json_schema), spec.json_schema
    ):
        noted.append(SCHEMA_VIOLATION)
    place = _place(raw, read.value, spec, index)
    ocr = min((index.lines[s.position].confidence for s in place.spans), default=1.0)
    confidence = max(0.0, min(1.0, probability * MATCH_FACTORS[place.kind] * ocr))
    status, final = decide_status(
        read.value,
        confidence=confidence,
        match=place.kind,
        reasons=noted,
        ocr_confidence=ocr,
        rules=rules,
    )
    is_missing = status is FieldStatus.MISSING
    return FieldValue(
        path=spec.path if path is None else path,
        value=None if is_missing else read.value,
        raw=raw,
        confidence=0.0 if is_missing else round(confidence, 4),
        status=status,
        evidence=() if is_missing else place.evidence,
        reasons=final,
    )


def _place(raw: str, value: Any, spec: FieldSpec, index: LineIndex) -> Grounding:
    """Where the text stands; a yes or no is never printed as such, its label is."""
    if spec.kind in _UNPRINTED:
        return NOT_FOUND
    return index.find(raw, kind=spec.kind, value=value)
