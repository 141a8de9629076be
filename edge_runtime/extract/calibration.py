"""From what ranking saw to a probability that the chosen value is right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_CLIP = 1e-4


@dataclass(frozen=True, slots=True)
class Calibrator:
    """Logistic regression on a few named signals.

    `weights` and `bias` were fitted on values chosen by rankers that had not seen the document's
    company; `ceiling` bounds the result, since no sample proves certainty.
    """

    bias: float
    weights: Mapping[str, float]
    ceiling: float = 0.99

    def probability(self, signals: Mapping[str, float]) -> float:
        """The calibrated probability, 0..`ceiling`."""
        total = self.bias + sum(w * signals.get(name, 0.0) for name, w in self.weights.items())
        return min(sigmoid(total), self.ceiling)


def sigmoid(x: float) -> float:
    """The logistic function without overflow."""
    if x >= 0:
        return 1 / (1 + math.exp(-min(x, 700.0)))
    e = math.exp(max(x, -700.0))
    return e / (1 + e)


def logit(p: float) -> float:
    """Inverse of `sigmoid`, finite at 0 and 1."""
    p = min(max(p, _CLIP), 1 - _CLIP)
    return math.log(p / (1 - p))


def expected_calibration_error(pairs: Sequence[tuple[float, bool]], n_bins: int = 10) -> float:
    """Mean |confidence - accuracy| over equal-width bins, weighted by how many fall into each."""
    bins: dict[int, list[tuple[float, bool]]] = {}
    for confidence, right in pairs:
        bins.setdefault(min(int(confidence * n_bins), n_bins - 1), []).append((confidence, right))
    total = sum(abs(sum(c - float(r) for c, r in rows)) for rows in bins.values())
    return total / len(pairs) if pairs else 0.0
