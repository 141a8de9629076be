"""Chooses among candidates with small trained linear weights, one set per role.

The weights live in `pipelines/ranker.json` (`tools/train_ranker.py` makes it). A candidate's
score is linear in its features; scores become probabilities by a softmax over all candidates of
the field, and occurrences of one value add up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from edge_runtime.errors import ConfigError
from edge_runtime.extract.block_candidates import address_candidates, name_candidates
from edge_runtime.extract.calibration import Calibrator, logit
from edge_runtime.extract.candidate_features import (
    FeatureTable,
    amount_features,
    block_features,
    date_features,
)
from edge_runtime.extract.candidates import Candidate, amount_candidates, date_candidates
from edge_runtime.extract.document_facts import DocumentFacts
from edge_runtime.extract.labelled_candidates import labelled_candidates
from edge_runtime.extract.labelled_features import labelled_features
from edge_runtime.extract.labels import FieldRole, FieldTerms, terms_of
from edge_runtime.extract.schema import FieldSpec
from edge_runtime.resources import find_data

RANKER_FILE = "ranker.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """How much a language model's opinion counts beside the other evidence.

    A choice scores `prior` times the logarithm of its probability, plus the model's
    log-probability of it (`logprob_sum` for the whole text, `logprob_mean` per token). The model
    is asked when the best choice leads by less than `ask_below_margin`.
    """

    prior: float
    logprob_sum: float
    logprob_mean: float
    ask_below_margin: float


@dataclass(frozen=True, slots=True)
class RoleWeights:
    """The trained numbers of one role.

    `model` is absent where training showed that the model's opinion makes choices no better.
    `ok_confidence` is the least confidence that kept wrong `ok` fields under the wanted share in
    training, `keep_confidence` the one below which a value counts as absent.
    """

    weights: Mapping[str, float]
    calibrator: Calibrator
    ok_confidence: float
    keep_confidence: float
    model: ModelWeights | None = None


@dataclass(frozen=True, slots=True)
class Ranker:
    """Weights of all roles."""

    roles: Mapping[FieldRole, RoleWeights]


@dataclass(frozen=True, slots=True)
class Choice:
    """A distinct value with its summed probability and best-scoring occurrence."""

    candidate: Candidate
    probability: float
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """Distinct values of a field, best first, and the signals for calibration."""

    choices: tuple[Choice, ...]
    n_candidates: int

    @property
    def margin(self) -> float:
        """Probability of the best minus that of the second."""
        probabilities = [choice.probability for choice in self.choices[:2]]
        return probabilities[0] - sum(probabilities[1:]) if probabilities else 0.0


def make_candidates(facts: DocumentFacts, spec: FieldSpec) -> tuple[list[Candidate], FeatureTable]:
    """Candidates for a field and their features, as its role asks."""
    terms = terms_of(spec)
    make, describe = _FAMILIES.get(terms.role, (_labelled, labelled_features))
    candidates = make(facts, spec, terms)
    return candidates, describe(facts, candidates, terms)


def _labelled(facts: DocumentFacts, spec: FieldSpec, terms: FieldTerms) -> list[Candidate]:
    return labelled_candidates(facts, spec, terms)


def _dates(facts: DocumentFacts, spec: FieldSpec, terms: FieldTerms) -> list[Candidate]:
    del spec, terms
    return date_candidates(facts)


def _amounts(facts: DocumentFacts, spec: FieldSpec, terms: FieldTerms) -> list[Candidate]:
    del terms
    return amount_candidates(facts, spec.kind)


def _names(facts: DocumentFacts, spec: FieldSpec, terms: FieldTerms) -> list[Candidate]:
    del terms
    return name_candidates(facts, spec.kind)


def _addresses(facts: DocumentFacts, spec: FieldSpec, terms: FieldTerms) -> list[Candidate]:
    del terms
    return address_candidates(facts, spec.kind)


_Maker = Callable[[DocumentFacts, FieldSpec, FieldTerms], list[Candidate]]
_Describer = Callable[[DocumentFacts, Sequence[Candidate], FieldTerms], FeatureTable]
_FAMILIES: dict[FieldRole, tuple[_Maker, _Describer]] = {
    FieldRole.DATE: (_dates, date_features),
    FieldRole.TOTAL: (_amounts, amount_features),
    FieldRole.AMOUNT: (_amounts, amount_features),
    FieldRole.NUMBER: (_amounts, amount_features),
    FieldRole.ORGANISATION: (_names, block_features),
    FieldRole.ADDRESS: (_addresses, block_features),
}


def scores_of(table: FeatureTable, weights: Mapping[str, float]) -> np.ndarray:
    """Linear scores, float64 `(n_candidates,)`."""
    column = np.asarray([weights.get(name, 0.0) for name in table.names])
    return table.values.astype(np.float64) @ column


def rank(candidates: Sequence[Candidate], scores: np.ndarray) -> Ranking:
    """Distinct values by their summed softmax probability."""
    if not len(candidates):
        return Ranking((), 0)
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    best: dict[str, int] = {}
    total: dict[str, float] = {}
    for i, candidate in enumerate(candidates):
        total[candidate.key] = total.get(candidate.key, 0.0) + float(weights[i])
        if candidate.key not in best or scores[i] > scores[best[candidate.key]]:
            best[candidate.key] = i
    order = sorted(total, key=lambda key: -total[key])
    choices = tuple(
        Choice(candidates[best[key]], total[key], float(scores[best[key]])) for key in order
    )
    return Ranking(choices, len(candidates))


def signals_of(ranking: Ranking) -> dict[str, float]:
    """What tells how far the best choice can be trusted."""
    if not ranking.choices:
        return {}
    best = ranking.choices[0]
    candidate = best.candidate
    doubt = sum((1 - line.confidence) * len(line.text) for line in candidate.lines)
    return {
        "logit": logit(best.probability),
        "margin": ranking.margin,
        "score": best.score,
        "ocr": min(candidate.confidence, 1.0),
        "ocr_doubt": min(doubt, 5.0),
        "letters": math.log1p(len(candidate.raw)),
        "n_lines": float(len(candidate.pieces)),
        "repaired": float("ocr_repaired" in candidate.reasons),
    }


def load_ranker(path: Path | None = None) -> Ranker:
    """The weights shipped with the package, or those of another file.

    Raises:
        ConfigError: the file is missing or not a ranker of this format.
    """
    found = path or find_data("pipelines", RANKER_FILE)
    if found is None:
        raise ConfigError(
            f"{RANKER_FILE} is missing from the installed data.", hint="reinstall edge-runtime"
        )
    return _read(found)


@lru_cache(maxsize=4)
def _read(path: Path) -> Ranker:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as err:
        raise ConfigError(f"{path} cannot be read as ranking weights: {err}") from err
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise ConfigError(
            f"{path} does not hold ranking weights of format {_FORMAT}.",
            hint="make it with tools/train_ranker.py",
        )
    try:
        return Ranker({FieldRole(name): _role(entry) for name, entry in data["roles"].items()})
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        raise ConfigError(f"{path} is not a valid file of ranking weights: {err}") from err


def _role(entry: Mapping[str, Mapping[str, float]]) -> RoleWeights:
    calibration, thresholds = entry["calibration"], entry["thresholds"]
    signals = {k: float(v) for k, v in calibration.items() if k not in {"bias", "ceiling"}}
    return RoleWeights(
        weights={k: float(v) for k, v in entry["weights"].items()},
        calibrator=Calibrator(
            float(calibration["bias"]), signals, float(calibration.get("ceiling", 0.99))
        ),
        ok_confidence=float(thresholds["ok"]),
        keep_confidence=float(thresholds["keep"]),
        model=ModelWeights(**entry["model"]) if "model" in entry else None,
    )
