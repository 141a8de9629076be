"""Lists without a model: rows of tables, and plain values beside a label or of a telling form."""

from __future__ import annotations

import re

from edge_runtime.extract.confusions import fold_alnum
from edge_runtime.extract.field_building import field_from_text
from edge_runtime.extract.grounding import LineIndex
from edge_runtime.extract.key_values import PROBABILITY, find_pairs
from edge_runtime.extract.line_items import item_fields
from edge_runtime.extract.normalising import Conventions, normalise
from edge_runtime.extract.review import DEFAULT_RULES, ReviewRules
from edge_runtime.extract.schema import ArraySpec, FieldKind, join_path
from edge_runtime.values import Document, FieldStatus, FieldValue

NO_VALUES = "no_values_found"

_SELF_TELLING = frozenset({FieldKind.EMAIL, FieldKind.URL})
_SEPARATOR = re.compile(r"\s*[;,|]\s+|\s*[;|]\s*|\n")
_FORM_PROBABILITY = 0.8
_MAX_VALUES = 200


def array_fields(
    document: Document,
    spec: ArraySpec,
    *,
    conventions: Conventions | None = None,
    rules: ReviewRules = DEFAULT_RULES,
) -> list[FieldValue]:
    """The entries of a list as fields `tags/0`, `items/0/price`.

    A list with no entries gives one missing field at its own path.
    """
    if not spec.is_scalar:
        return item_fields(document, spec, conventions=conventions, rules=rules)
    inner = spec.item_fields[0]
    index = LineIndex(document.lines, conventions)
    texts = _labelled(document, spec)
    if not texts and inner.kind in _SELF_TELLING:
        texts = [
            (line.text, _FORM_PROBABILITY) for line in document.lines if _tells(line.text, spec)
        ]
    fields = [
        field_from_text(
            text,
            inner,
            index,
            probability=probability,
            path=join_path(spec.path, number),
            conventions=conventions,
            rules=rules,
        )
        for number, (text, probability) in enumerate(texts[:_MAX_VALUES])
    ]
    found = [field for field in fields if field.value is not None]
    if found:
        return found
    return [FieldValue(spec.path, None, None, 0.0, FieldStatus.MISSING, (), (NO_VALUES,))]


def _tells(text: str, spec: ArraySpec) -> bool:
    return normalise(text, spec.item_fields[0].kind, spec=spec.item_fields[0]).value is not None


def _labelled(document: Document, spec: ArraySpec) -> list[tuple[str, float]]:
    """Values of the pairs whose label names the list, taken apart."""
    wanted = {fold_alnum(label) for label in (*spec.labels, *spec.item_fields[0].labels)}
    texts: list[tuple[str, float]] = []
    for pair in find_pairs(document, ("inline", "beside")):
        if fold_alnum(pair.key) in wanted:
            pieces = (piece.strip() for piece in _SEPARATOR.split(pair.text))
            texts += [(piece, PROBABILITY[pair.layout]) for piece in pieces if piece]
    return texts
