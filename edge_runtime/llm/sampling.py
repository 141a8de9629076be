"""Choosing a token from a row of logits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edge_runtime.errors import StageError
from edge_runtime.llm.engine import Greedy, Sampled, Sampling

Row = NDArray[np.float32]


def choose(row: Row, sampling: Sampling, mask: NDArray[Any] | None = None) -> int:
    """The chosen token.

    Args:
        row: Logits of shape (n_vocab,).
        sampling: How to choose.
        mask: Allowed tokens, see `engine.TokenMask`; None allows all.

    Raises:
        StageError: when `mask` allows nothing.
    """
    if mask is None:
        if isinstance(sampling, Greedy):
            return int(row.argmax())
        return _draw(row, np.arange(row.size), sampling)
    allowed = allowed_tokens(mask, row.size)
    if allowed.size == 0:
        raise StageError("The constraint allows no token at all here")
    if isinstance(sampling, Greedy):
        return int(allowed[row[allowed].argmax()])
    return _draw(row, allowed, sampling)


def allowed_tokens(mask: NDArray[Any], n_vocab: int) -> NDArray[np.intp]:
    """Ids of the allowed tokens, ascending; bits beyond the vocabulary are ignored."""
    flat = np.ascontiguousarray(mask).reshape(-1)
    if flat.dtype == np.bool_:
        return np.flatnonzero(flat[:n_vocab])
    bits = np.unpackbits(flat.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits[:n_vocab])


def _draw(row: Row, ids: NDArray[np.intp], sampling: Sampled) -> int:
    if sampling.temperature <= 0:
        return int(ids[row[ids].argmax()])
    scores = row[ids].astype(np.float64) / sampling.temperature
    order = np.argsort(-scores, kind="stable")
    if sampling.top_k > 0:
        order = order[: sampling.top_k]
    weights = np.exp(scores[order] - scores[order[0]])
    weights /= weights.sum()
    if sampling.top_p < 1:
        # The token that crosses the threshold still belongs to the nucleus.
        n_kept = int(np.searchsorted(np.cumsum(weights), sampling.top_p)) + 1
        order, weights = order[:n_kept], weights[:n_kept]
        weights = weights / weights.sum()
    return int(ids[order[sampling.rng.choice(order.size, p=weights)]])
