"""Values that stand beside a label: in the same line, to its right, or below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from edge_runtime.extract.candidates import Candidate, Piece, part, raw_of, whole
from edge_runtime.extract.confusions import fold_alnum
from edge_runtime.extract.document_facts import DocumentFacts
from edge_runtime.extract.labels import FieldRole, FieldTerms, LabelHit, match_label
from edge_runtime.extract.normalising import Conventions, normalise
from edge_runtime.extract.page_layout import Run
from edge_runtime.extract.schema import FieldKind, FieldSpec
from edge_runtime.extract.text_repair import repair_text

LAYOUTS = (
    "inline",
    "right",
    "right_two",
    "below",
    "below_block",
    "cell",
    "cell_block",
    "left",
    "pattern",
)
_MIN_LABEL = 0.6
_MAX_BLOCK = 6
_MAX_CELL_ROWS = 6
_MAX_CELL_VALUES = 3
_CELL_REACH = 5.0  # line heights
_MAX_LABEL_REST = 30
_MAX_PATTERN = 60
_EMAIL = re.compile(r"[\w.+\-]+\s?@\s?[\w\-]+(?:\.[\w\-]+)+")
_URL = re.compile(
    r"(?:https?://|www\.)\S+|\b[\w\-]+(?:\.[\w\-]+)*\.(?:com|org|net|de|fr|io|co|eu)\b\S*",
    re.IGNORECASE,
)
_PHONE = re.compile(r"\+?\(?\d[\d\s()\-./]{5,}\d")
_PATTERNS = {FieldKind.EMAIL: _EMAIL, FieldKind.URL: _URL, FieldKind.PHONE: _PHONE}
_IDENTIFIER = re.compile(r"(?=[A-Za-z\d/\-.]*\d)[A-Za-z\d][A-Za-z\d/\-.]{3,}")


def labelled_candidates(
    facts: DocumentFacts, spec: FieldSpec, terms: FieldTerms
) -> list[Candidate]:
    """Values beside any of the field's labels, and texts of the field's form anywhere."""
    reading = Conventions(facts.day_first, facts.decimal_mark)
    found: list[Candidate] = []
    for run in facts.layout.runs:
        hit = match_label(run.text, terms)
        if hit.score >= _MIN_LABEL:
            for layout, pieces in _beside(facts, run, hit, spec):
                candidate = _candidate(pieces, spec, reading, layout)
                if candidate is not None:
                    notes = {"label": hit.score, "cover": hit.coverage, "own": float(hit.is_own)}
                    notes["gap"] = _gap(facts, run, pieces[0])
                    found.append(replace(candidate, notes=notes))
    found += _by_form(facts, spec, terms, reading)
    return found


def _beside(
    facts: DocumentFacts, run: Run, hit: LabelHit, spec: FieldSpec
) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    layout = facts.layout
    after = part(run, hit.end, len(run.text), "label")
    has_inline = any(c.isalnum() for c in after.text)
    below = layout.below(run)
    if has_inline:
        yield "inline", (after,)
        colon = after.text.find(":")
        if 0 < colon < _MAX_LABEL_REST:
            yield "inline", (part(run, after.start + colon + 1, len(run.text), "label"),)
        if below is not None and spec.kind in (FieldKind.TEXT, FieldKind.STRING):
            yield "below_block", (after, whole(below))
    right = layout.right_of(run)
    if right is not None:
        first = part(right, 0, len(right.text), "")
        yield "right", (first,)
        second = layout.right_of(right)
        if second is not None:
            yield "right_two", (first, whole(second))
    block: tuple[Piece, ...] = ()
    while below is not None and len(block) < _MAX_BLOCK:
        block = (*block, part(below, 0, len(below.text), ""))
        if len(block) == 1:
            yield "below", block
        elif spec.kind in (FieldKind.TEXT, FieldKind.STRING):
            yield "below_block", block
        else:
            break
        below = layout.below(below)
    yield from _in_cell(facts, run, spec)
    left = layout.left_of(run)
    if left is not None and not has_inline:
        yield "left", (part(left, 0, len(left.text), ""),)
    if hit.start > 1:
        yield "left", (part(run, 0, hit.start, "label"),)


def _in_cell(
    facts: DocumentFacts, run: Run, spec: FieldSpec
) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    """Values further down in the box of a form whose upper left corner holds the label."""
    layout = facts.layout
    unit = layout.line_height[run.page]
    right = layout.right_of(run)
    x0 = run.box.x0 - unit
    x1 = right.box.x0 - 0.2 * unit if right is not None else layout.extent[run.page].x1
    nearest = layout.below(run)
    found: list[Run] = []
    for row in layout.rows[run.row + 1 : run.row + 1 + _MAX_CELL_ROWS]:
        for other in row:
            inside = x0 <= other.box.x0 and other.box.x1 <= x1 + unit
            near = other.box.y0 - run.box.y1 < _CELL_REACH * unit
            if other.page == run.page and inside and near and any(c.isalnum() for c in other.text):
                found.append(other)
    for other in found[:_MAX_CELL_VALUES]:
        if other is not nearest:
            yield "cell", (part(other, 0, len(other.text), ""),)
    if spec.kind in (FieldKind.TEXT, FieldKind.STRING):
        for other in found[:_MAX_CELL_VALUES]:
            below = layout.below(other)
            if other is not nearest and below is not None:
                yield "cell_block", (part(other, 0, len(other.text), ""), whole(below))


def _gap(facts: DocumentFacts, label: Run, piece: Piece) -> float:
    """Distance between label and value in line heights, 0 when they touch."""
    unit = facts.layout.line_height[label.page]
    box, other = label.box, piece.run.box
    dx = max(0.0, other.x0 - box.x1, box.x0 - other.x1)
    dy = max(0.0, other.y0 - box.y1, box.y0 - other.y1)
    return (dx + dy) / unit


def _candidate(
    pieces: tuple[Piece, ...], spec: FieldSpec, reading: Conventions, layout: str
) -> Candidate | None:
    raw = raw_of(pieces)
    if not any(c.isalnum() for c in raw):
        return None
    if spec.kind in (FieldKind.STRING, FieldKind.TEXT):
        value, repairs = repair_text(raw)
        normalised = normalise(value, FieldKind.STRING, spec=spec)
        reasons = (*repairs, *normalised.reasons)
    else:
        normalised = normalise(raw, spec.kind, spec=spec, conventions=reading)
        reasons = normalised.reasons
    if normalised.value is None:
        return None
    key = fold_alnum(str(normalised.value))
    if not key:
        return None
    return Candidate(normalised.value, raw, spec.kind, pieces, key, reasons, origin=layout)


def _by_form(
    facts: DocumentFacts, spec: FieldSpec, terms: FieldTerms, reading: Conventions
) -> list[Candidate]:
    pattern = _PATTERNS.get(spec.kind)
    if pattern is None and spec.hints.patterns:
        pattern = re.compile("|".join(f"(?:{p.strip('^$')})" for p in spec.hints.patterns))
    if pattern is None and terms.role is FieldRole.IDENTIFIER:
        pattern = _IDENTIFIER
    found: list[Candidate] = []
    if pattern is not None:
        for run in facts.layout.runs:
            for match in pattern.finditer(run.text):
                piece = part(run, match.start(), match.end(), "pattern")
                candidate = _candidate((piece,), spec, reading, "pattern")
                if candidate is not None:
                    hit = match_label(run.text[: match.start()], terms)
                    notes = {"label": hit.score, "cover": hit.coverage, "own": float(hit.is_own)}
                    found.append(replace(candidate, notes=notes))
            if len(found) > _MAX_PATTERN:
                break
    if spec.kind is FieldKind.ENUM:
        found += _printed_options(facts, spec, reading)
    return found


def _printed_options(
    facts: DocumentFacts, spec: FieldSpec, reading: Conventions
) -> list[Candidate]:
    found: list[Candidate] = []
    options = {fold_alnum(str(option)) for option in spec.enum} - {""}
    for run in facts.layout.runs:
        key = fold_alnum(run.text)
        if any(option in key for option in options):
            candidate = _candidate((whole(run),), spec, reading, "pattern")
            if candidate is not None:
                found.append(candidate)
    return found
