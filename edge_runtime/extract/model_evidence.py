"""The language model's opinion on the leading candidates of a field."""

from __future__ import annotations

from edge_runtime.extract.asker import Asker
from edge_runtime.extract.labels import FieldRole
from edge_runtime.extract.ranking import Ranker, Ranking, RoleWeights, signals_of
from edge_runtime.extract.schema import ExtractionSchema, FieldSpec
from edge_runtime.llm.prompt import Role, Segment


class ModelEvidence:
    """Asks how probable each leading candidate is as the answer, and weighs that in.

    Args:
        ranker: Holds the weights of the model's opinion by role.
    """

    def __init__(self, ranker: Ranker) -> None:
        self._ranker = ranker

    def prefix_segments(self, schema: ExtractionSchema) -> tuple[Segment, ...]:
        """Instruction and examples, pinned."""
        del schema
        return (Segment(Role.SYSTEM, "Read the document and answer briefly.", pinned=True),)

    def would_help(self, role: FieldRole, ranking: Ranking) -> bool:
        """Whether asking can change what is chosen."""
        del role, ranking
        return False

    def judge(self, asker: Asker, spec: FieldSpec, ranking: Ranking) -> Ranking:
        """The ranking after the model's opinion."""
        del asker, spec
        return ranking

    def confidence(self, entry: RoleWeights, ranking: Ranking) -> float:
        """Calibrated probability that the best choice is right."""
        return entry.calibrator.probability(signals_of(ranking))
