"""Candidates beside labels as rows of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from edge_runtime.extract.candidate_features import FeatureTable
from edge_runtime.extract.candidates import Candidate
from edge_runtime.extract.document_facts import DocumentFacts
from edge_runtime.extract.labelled_candidates import LAYOUTS
from edge_runtime.extract.labels import FieldTerms, match_label
from edge_runtime.extract.text_features import TEXT_NAMES, text_features

_LAYOUT_LABELS = tuple(f"{name}_label" for name in LAYOUTS)
LABELLED_NAMES: tuple[str, ...] = (
    *(f"at_{name}" for name in LAYOUTS),
    *_LAYOUT_LABELS,
    "label",
    "cover",
    "exact",
    "own",
    "gap_0",
    "gap_1",
    "gap_4",
    "gap_far",
    "colon_before",
    "value_is_label",
    "value_colon",
    "n_pieces",
    "has_digit",
    "all_digits",
    "no_digit",
    "pattern_ok",
    "repeated",
    "rival_inline",
    "confidence",
    *(f"text_{name}" for name in TEXT_NAMES),
)


def labelled_features(
    facts: DocumentFacts, candidates: Sequence[Candidate], terms: FieldTerms
) -> FeatureTable:
    """Features of values beside labels: how well the label fits, where the value stands."""
    del facts  # all that matters was noted when the candidates were made
    times = Counter(c.key for c in candidates)
    inline = any(c.origin == "inline" and c.notes.get("label", 0) > 0.9 for c in candidates)
    rows = [_row(c, terms, times, has_inline=inline) for c in candidates]
    values = np.asarray(rows, dtype=np.float32).reshape(len(rows), len(LABELLED_NAMES))
    return FeatureTable(LABELLED_NAMES, values)


def _row(
    candidate: Candidate, terms: FieldTerms, times: Counter[str], *, has_inline: bool
) -> list[float]:
    notes, raw = candidate.notes, candidate.raw
    label, cover, gap = notes.get("label", 0.0), notes.get("cover", 0.0), notes.get("gap", 0.0)
    first = candidate.pieces[0]
    before = first.run.text[: first.start]
    n_digits = sum(c.isdigit() for c in raw)
    return [
        *(candidate.origin == name for name in LAYOUTS),
        *(label * cover * (candidate.origin == name) for name in LAYOUTS),
        label,
        cover,
        label * cover > 0.85,
        notes.get("own", 0.0),
        gap < 0.3,
        gap < 1.5,
        gap < 4,
        gap >= 10,
        ":" in before,
        match_label(raw, terms).score > 0.85,
        raw.rstrip().endswith(":"),
        min(len(candidate.pieces), 5) / 5,
        n_digits > 0,
        n_digits > 0 and n_digits >= sum(c.isalnum() for c in raw),
        n_digits == 0,
        "pattern_mismatch" not in candidate.reasons,
        times[candidate.key] > 1,
        has_inline and candidate.origin != "inline",
        candidate.confidence,
        *text_features(raw),
    ]
