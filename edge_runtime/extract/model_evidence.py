"""The language model's opinion on the leading candidates of a field.

The model reads the document after one worked example, and every leading candidate is scored as
the answer to a question about the field. Its log-probabilities are weighed with the ranking's own
probabilities by trained weights; roles without such weights are never asked about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from edge_runtime.extract.asker import Asker
from edge_runtime.extract.labels import FieldRole, role_of
from edge_runtime.extract.ranking import Choice, Ranker, Ranking, RoleWeights, signals_of
from edge_runtime.extract.schema import ExtractionSchema, FieldSpec
from edge_runtime.llm.engine import ScoredContinuation
from edge_runtime.llm.prompt import Role, Segment

MAX_OPTIONS = 6
_LEAST_PROBABILITY = 1e-6
_INSTRUCTION = "Read the document and answer with words copied from it."
_EXAMPLE = """GREEN VALLEY BOOKS LTD
18 Market Street, Ashford, Kent TN23 1AB
Tel 01233 555 014
RECEIPT  No. 10442
Date 05/03/2019  14:22
1  Garden Atlas  12.50
2  Pencil  3.00
Subtotal  15.50
VAT  3.10
Total  18.60
Cash  20.00
Change  1.40
"""
_ANSWERS = (("company", "GREEN VALLEY BOOKS LTD"), ("total", "18.60"), ("receipt no", "10442"))


class ModelEvidence:
    """Asks how probable each leading candidate is as the answer, and weighs that in.

    Args:
        ranker: Holds the weights of the model's opinion by role.
    """

    def __init__(self, ranker: Ranker) -> None:
        self._ranker = ranker

    def has_a_say(self, role: FieldRole) -> bool:
        """Whether training found that the model improves choices of this role."""
        entry = self._ranker.roles.get(role)
        return entry is not None and entry.model is not None

    def prefix_segments(self, schema: ExtractionSchema) -> tuple[Segment, ...]:
        """Instruction and a worked example, pinned; the same for every schema."""
        del schema
        segments = [
            Segment(Role.SYSTEM, _INSTRUCTION, pinned=True),
            Segment(Role.EXAMPLE, _EXAMPLE, pinned=True),
        ]
        for name, answer in _ANSWERS:
            segments.append(Segment(Role.EXAMPLE, _question(name, ""), pinned=True))
            segments.append(Segment(Role.ANSWER, answer, pinned=True))
        return tuple(segments)

    def would_help(self, role: FieldRole, ranking: Ranking) -> bool:
        """Whether asking can change what is chosen: the model has a say and there is a doubt."""
        entry = self._ranker.roles.get(role)
        if entry is None or entry.model is None or len(ranking.choices) < 2:
            return False
        return ranking.margin < entry.model.ask_below_margin

    def judge(self, asker: Asker, spec: FieldSpec, ranking: Ranking) -> Ranking:
        """The ranking after the model's opinion; choices that were not asked about keep theirs.

        Raises:
            ContextOverflow: document and question do not fit.
            Cancelled: the caller asked to stop.
        """
        weights = self._ranker.roles[role_of(spec)].model
        if weights is None:
            return ranking
        asked, rest = ranking.choices[:MAX_OPTIONS], ranking.choices[MAX_OPTIONS:]
        opinions = opinions_on(asker, spec, asked)
        scores = [
            weights.prior * math.log(max(choice.probability, _LEAST_PROBABILITY))
            + weights.logprob_sum * opinion.logprob_sum
            + weights.logprob_mean * opinion.mean_logprob
            for choice, opinion in zip(asked, opinions, strict=True)
        ]
        judged = _shared_out(asked, scores)
        ordered = sorted((*judged, *rest), key=lambda choice: -choice.probability)
        return replace(ranking, choices=tuple(ordered))

    def confidence(self, entry: RoleWeights, ranking: Ranking) -> float:
        """Calibrated probability that the best choice is right."""
        return entry.calibrator.probability(signals_of(ranking))


def opinions_on(
    asker: Asker, spec: FieldSpec, choices: Sequence[Choice]
) -> list[ScoredContinuation]:
    """How probable the model finds each choice as the answer to a question about the field."""
    question = Segment(Role.QUESTION, _question(spec.name, spec.description))
    return asker.score([question], [" ".join(c.candidate.raw.split()) for c in choices])


def _question(name: str, description: str) -> str:
    meaning = f" ({description.strip().rstrip('.')})" if description.strip() else ""
    return f"\n\nWhat is the {name.replace('_', ' ')}{meaning}?"


def _shared_out(asked: tuple[Choice, ...], scores: list[float]) -> list[Choice]:
    """The probability that the asked choices had together, shared out by their new scores."""
    mass = sum(choice.probability for choice in asked)
    top = max(scores)
    shares = [math.exp(score - top) for score in scores]
    total = sum(shares)
    return [
        replace(choice, probability=mass * share / total)
        for choice, share in zip(asked, shares, strict=True)
    ]
