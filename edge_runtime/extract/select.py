"""The strategy for small models: choose among values that the document offers.

Cheap evidence (labels, place, form, arithmetic) ranks the candidates of every field. Fields that
it decides are yielded at once, the most certain kinds first; only where it leaves doubt is the
language model asked how probable each of the leading candidates is as the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from edge_runtime.extract import locales
from edge_runtime.extract.asker import Asker
from edge_runtime.extract.document_facts import DocumentFacts
from edge_runtime.extract.grounding import MatchKind
from edge_runtime.extract.key_values import pair_fields
from edge_runtime.extract.labels import FieldRole, role_of
from edge_runtime.extract.line_items import item_fields
from edge_runtime.extract.model_evidence import ModelEvidence
from edge_runtime.extract.normalising import Conventions, normalise
from edge_runtime.extract.ranking import (
    Choice,
    Ranker,
    Ranking,
    RoleWeights,
    load_ranker,
    make_candidates,
    rank,
    scores_of,
)
from edge_runtime.extract.review import LOW_CONFIDENCE, ReviewRules, decide_status
from edge_runtime.extract.rivalry import Place, families_of, place_of, settle, without_places
from edge_runtime.extract.schema import ExtractionSchema, FieldKind, FieldSpec
from edge_runtime.extract.strategy import document_segment
from edge_runtime.llm.prompt import Segment
from edge_runtime.trace import current
from edge_runtime.values import Document, FieldStatus, FieldValue, Line

NO_CANDIDATE = "no_candidate"
NOT_TRAINED = "role_without_weights"

_LEAST_CONFIDENCE = 0.15
"""Below it a value is more likely to mislead than to help, and the field is missing."""

_LEAST_LABELLED_OK = 0.97
"""For values that only a label speaks for: their confidence was calibrated on forms that have the
field, so a field that is absent is found too readily."""

_LABELLED = {
    FieldRole.STRING,
    FieldRole.IDENTIFIER,
    FieldRole.PERSON,
    FieldRole.TEXT,
    FieldRole.CONTACT,
    FieldRole.CHOICE,
}

_CHEAPEST_FIRST = (
    FieldRole.DATE,
    FieldRole.TOTAL,
    FieldRole.AMOUNT,
    FieldRole.NUMBER,
    FieldRole.CONTACT,
    FieldRole.IDENTIFIER,
    FieldRole.CHOICE,
    FieldRole.PERSON,
    FieldRole.STRING,
    FieldRole.TEXT,
    FieldRole.ORGANISATION,
    FieldRole.ADDRESS,
)
_READ_AGAIN = {
    FieldKind.DATE,
    FieldKind.AMOUNT,
    FieldKind.NUMBER,
    FieldKind.INTEGER,
}


class SelectStrategy:
    """Ranks candidates found in the document; a value is never made up.

    Args:
        locale: Language tag for dates and numbers that the text leaves open.
        rules: Replace the thresholds that came with the weights.
        ranker: Replaces the shipped weights.
    """

    name = "select"

    def __init__(
        self,
        *,
        locale: str | None = None,
        rules: ReviewRules | None = None,
        ranker: Ranker | None = None,
    ) -> None:
        self._locale = locale
        self._rules = rules
        self._ranker = ranker or load_ranker()
        self._model = ModelEvidence(self._ranker)

    def wants_model(self, schema: ExtractionSchema) -> bool:
        """Whether the weights give the model a say for any field."""
        return any(self._model.has_a_say(role_of(spec)) for spec in schema.fields)

    def prefix_segments(self, schema: ExtractionSchema) -> tuple[Segment, ...]:
        """Instruction and examples of our own."""
        return self._model.prefix_segments(schema)

    def line_segment(self, line: Line, previous: Line | None) -> Segment:
        """The line's text, rows kept together."""
        return document_segment(line, previous)

    def extract(
        self, document: Document, schema: ExtractionSchema, asker: Asker | None
    ) -> Iterator[FieldValue]:
        """All fields of the schema, decided ones first; see `Strategy.extract`."""
        with current().span("extract.facts"):
            facts = DocumentFacts(
                document,
                day_first=locales.day_first(self._locale),
                decimal_mark=locales.decimal_mark(self._locale),
            )
        undecided: list[tuple[FieldSpec, Ranking]] = []
        order = sorted(schema.fields, key=lambda spec: _CHEAPEST_FIRST.index(role_of(spec)))
        taken: set[Place] = set()
        for family in families_of(order):
            for spec, settled in self._ranked(facts, family):
                ranking = settled
                if spec.kind not in _READ_AGAIN:  # texts: a number or date may be part of one
                    ranking = without_places(settled, taken)
                    taken.update(place_of(c.candidate) for c in ranking.choices[:1])
                if asker is not None and self._model.would_help(role_of(spec), ranking):
                    undecided.append((spec, ranking))
                else:
                    yield self._decide(facts, spec, ranking)
        conventions = Conventions(facts.day_first, facts.decimal_mark)
        rules = self._rules or ReviewRules()
        for array in schema.arrays:
            yield from item_fields(document, array, conventions=conventions, rules=rules)
        if schema.is_open:
            yield from pair_fields(document, schema, rules=rules)
        for spec, ranking in undecided:
            judged = ranking if asker is None else self._model.judge(asker, spec, ranking)
            yield self._decide(facts, spec, judged)

    def _ranked(
        self, facts: DocumentFacts, specs: Sequence[FieldSpec]
    ) -> list[tuple[FieldSpec, Ranking]]:
        rankings: list[tuple[FieldSpec, Ranking]] = []
        for spec in specs:
            with current().span("extract.rank") as span:
                ranking = self._rank(facts, spec)
                span.note(field=spec.path, n_candidates=ranking.n_candidates)
            rankings.append((spec, ranking))
        return settle(facts, rankings)

    def _rank(self, facts: DocumentFacts, spec: FieldSpec) -> Ranking:
        entry = self._ranker.roles.get(role_of(spec))
        if entry is None:
            return Ranking((), 0)
        candidates, table = make_candidates(facts, spec)
        return rank(candidates, scores_of(table, entry.weights))

    def _decide(self, facts: DocumentFacts, spec: FieldSpec, ranking: Ranking) -> FieldValue:
        entry = self._ranker.roles.get(role_of(spec))
        if entry is None:
            return _missing(spec, 0.0, NOT_TRAINED)
        if not ranking.choices:
            return _missing(spec, 0.0, NO_CANDIDATE)
        confidence = self._model.confidence(entry, ranking)
        if confidence < max(entry.keep_confidence, _LEAST_CONFIDENCE):
            return _missing(spec, confidence, LOW_CONFIDENCE)
        return self._field(facts, spec, entry, ranking.choices[0], confidence)

    def _field(
        self,
        facts: DocumentFacts,
        spec: FieldSpec,
        entry: RoleWeights,
        choice: Choice,
        confidence: float,
    ) -> FieldValue:
        candidate = choice.candidate
        value, reasons = self._value(facts, spec, choice)
        least = _LEAST_LABELLED_OK if role_of(spec) in _LABELLED else 0.0
        rules = self._rules or replace(ReviewRules(), ok_confidence=max(entry.ok_confidence, least))
        repaired = candidate.value != candidate.raw and spec.kind not in _READ_AGAIN
        status, reasons = decide_status(
            value,
            confidence=confidence,
            match=MatchKind.NORMALISED if repaired else MatchKind.EXACT,
            reasons=reasons,
            ocr_confidence=candidate.confidence,
            rules=rules,
        )
        return FieldValue(
            path=spec.path,
            value=value,
            raw=candidate.raw,
            confidence=round(confidence, 4),
            status=status,
            evidence=candidate.evidence(),
            reasons=reasons,
        )

    def _value(
        self, facts: DocumentFacts, spec: FieldSpec, choice: Choice
    ) -> tuple[Any, tuple[str, ...]]:
        """The value, read again where the field itself says how dates or numbers are written."""
        candidate = choice.candidate
        if spec.kind not in _READ_AGAIN:
            return candidate.value, candidate.reasons
        conventions = Conventions(facts.day_first, facts.decimal_mark)
        read = normalise(
            candidate.raw,
            spec.kind,
            spec=spec,
            locale=self._locale,
            conventions=conventions,
        )
        if read.value is None:
            return candidate.value, candidate.reasons
        return read.value, read.reasons


def _missing(spec: FieldSpec, confidence: float, reason: str) -> FieldValue:
    return FieldValue(
        spec.path, None, None, round(confidence, 4), FieldStatus.MISSING, (), (reason,)
    )
