"""Values that are printed beside another field's label belong to that field.

Ranking looks at one field at a time. In a schema with a `date` and a `due_date` both would like
the first date of the page; the labels beside the dates settle whose is whose.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import Enum, auto
from typing import TypeAlias

from edge_runtime.extract.candidates import Candidate
from edge_runtime.extract.document_facts import DocumentFacts
from edge_runtime.extract.labels import FieldRole, FieldTerms, match_label, role_of, terms_of
from edge_runtime.extract.ranking import Choice, Ranking
from edge_runtime.extract.schema import FieldKind, FieldSpec

_CLEAR_LEAD = 0.2  # by which one field's label has to fit better than every rival's
_FITS = 0.6  # least fit of a label that claims a value
_ALL_LABEL = 0.9
_CLAIMED_FACTOR = 25.0  # odds of a value under the field's own label, against one under none
_FOREIGN_FACTOR = 0.02  # odds of a value under a rival's label

Place: TypeAlias = tuple[tuple[int, int, int], ...]


class _Family(Enum):
    DATE = auto()
    NUMBER = auto()
    NAME = auto()
    ADDRESS = auto()
    TEXT = auto()


_FAMILY_OF_ROLE = {
    FieldRole.ORGANISATION: _Family.NAME,
    FieldRole.PERSON: _Family.NAME,
    FieldRole.ADDRESS: _Family.ADDRESS,
}
_NUMBERS = {FieldKind.AMOUNT, FieldKind.NUMBER, FieldKind.INTEGER}


def settle(
    facts: DocumentFacts, ranked: Sequence[tuple[FieldSpec, Ranking]]
) -> list[tuple[FieldSpec, Ranking]]:
    """Rankings of all fields, with values moved towards the field whose label they stand by.

    A field without rivals of its own kind (dates, numbers, names, addresses, other texts) keeps
    its ranking: a name above an address is no label of the address, even if it says "shop".
    """
    families = {
        id(member): group for group in families_of([s for s, _ in ranked]) for member in group
    }
    settled: list[tuple[FieldSpec, Ranking]] = []
    for spec, ranking in ranked:
        rivals = [terms_of(other) for other in families[id(spec)] if other is not spec]
        has_rivals = bool(rivals and ranking.choices)
        mine = _settled(facts, ranking, terms_of(spec), rivals) if has_rivals else ranking
        settled.append((spec, mine))
    return _without_sharing(settled)


def _without_sharing(
    settled: list[tuple[FieldSpec, Ranking]],
) -> list[tuple[FieldSpec, Ranking]]:
    """One place on the page answers one field: the less certain of two looks elsewhere."""
    owner: dict[Place, int] = {}
    result = list(settled)
    order = sorted(range(len(result)), key=lambda i: -_lead_probability(result[i][1]))
    for i in order:
        spec, ranking = result[i]
        while ranking.choices:
            place = place_of(ranking.choices[0].candidate)
            if owner.setdefault(place, i) == i:
                break
            ranking = replace(ranking, choices=ranking.choices[1:])
        result[i] = (spec, ranking)
    return result


def without_places(ranking: Ranking, taken: Collection[Place]) -> Ranking:
    """A ranking without what another field already shows."""
    kept = tuple(c for c in ranking.choices if place_of(c.candidate) not in taken)
    return ranking if len(kept) == len(ranking.choices) else replace(ranking, choices=kept)


def _lead_probability(ranking: Ranking) -> float:
    return ranking.choices[0].probability if ranking.choices else 0.0


def place_of(candidate: Candidate) -> Place:
    """Where a candidate stands, equal for candidates that are the same print."""
    return tuple((piece.run.index, piece.start, piece.end) for piece in candidate.pieces)


def families_of(specs: Sequence[FieldSpec]) -> list[list[FieldSpec]]:
    """Fields that may compete for the same values, in the order of their first members."""
    groups: dict[_Family, list[FieldSpec]] = {}
    for spec in specs:
        groups.setdefault(_family(spec), []).append(spec)
    return list(groups.values())


def _family(spec: FieldSpec) -> _Family:
    if spec.kind is FieldKind.DATE:
        return _Family.DATE
    if spec.kind in _NUMBERS:
        return _Family.NUMBER
    return _FAMILY_OF_ROLE.get(role_of(spec), _Family.TEXT)


def _settled(
    facts: DocumentFacts, ranking: Ranking, own: FieldTerms, rivals: Sequence[FieldTerms]
) -> Ranking:
    weights: list[float] = []
    for choice in ranking.choices:
        texts = _label_texts(facts, choice.candidate)
        mine, theirs = _fit(texts, own), max(_fit(texts, rival) for rival in rivals)
        factor = 1.0
        if mine - theirs > _CLEAR_LEAD and mine >= _FITS:
            factor = _CLAIMED_FACTOR
        elif (theirs - mine > _CLEAR_LEAD and theirs >= _FITS) or _is_label(
            choice.candidate, (own, *rivals)
        ):
            factor = _FOREIGN_FACTOR
        weights.append(choice.probability * factor)
    total = sum(weights)
    if total <= 0:
        return ranking
    # What every choice lost stays lost: a field whose only values are its rivals' is unsure.
    total = max(total, sum(choice.probability for choice in ranking.choices))
    choices: list[Choice] = [
        replace(choice, probability=weight / total)
        for choice, weight in zip(ranking.choices, weights, strict=True)
    ]
    choices.sort(key=lambda choice: -choice.probability)
    return replace(ranking, choices=tuple(choices))


def _is_label(candidate: Candidate, all_terms: Sequence[FieldTerms]) -> bool:
    """Whether the value is nothing but the label of a field."""
    hits = (match_label(candidate.raw, terms) for terms in all_terms)
    return any(hit.is_own and min(hit.score, hit.coverage) >= _ALL_LABEL for hit in hits)


def _label_texts(facts: DocumentFacts, candidate: Candidate) -> tuple[str, ...]:
    """What stands where a label of the value would: before it in its row, or right above."""
    piece = candidate.pieces[0]
    run = piece.run
    before = run.text[: piece.start].strip()
    left = facts.layout.left_of(run)
    above = facts.layout.above(run)
    texts = [before] if before else ([left.text] if left is not None else [])
    if above is not None:
        texts.append(above.text)
    return tuple(texts)


def _fit(texts: Sequence[str], terms: FieldTerms) -> float:
    """How well the best of `texts` fits the field's own labels, 0..1."""
    best = 0.0
    for text in texts:
        hit = match_label(text, terms)
        if hit.is_own:
            best = max(best, hit.score * (0.4 + 0.6 * hit.coverage))
    return best
