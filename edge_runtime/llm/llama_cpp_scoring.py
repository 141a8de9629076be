"""Log-probabilities of many continuations, computed with a llama.cpp context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edge_runtime.errors import StageError
from edge_runtime.llm.engine import ScoredContinuation
from edge_runtime.llm.llama_cpp_context import NativeContext, raise_for_status
from edge_runtime.llm.logprobs import token_logprobs
from edge_runtime.llm.native_log import NATIVE_LOG
from edge_runtime.llm.score_plan import ROOT, ScoreBatch, Tree, batches, build_tree

Row = NDArray[np.float32]
# (node index or ROOT, token) -> log-probability of the token there
_Found = dict[tuple[int, int], float]


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Bounds of one scored batch."""

    n_tokens: int
    n_sequences: int


def score_tree(
    context: NativeContext,
    n_history: int,
    row: Row,
    continuations: Sequence[Sequence[int]],
    limits: BatchLimits,
) -> tuple[list[ScoredContinuation], int]:
    """Score with shared beginnings decoded once; sequence 0 is as before afterwards.

    Args:
        context: Holds `n_history` tokens in sequence 0.
        n_history: Tokens before the continuations.
        row: Logits after the history.
        continuations: Token lists; empty ones score 0.
        limits: Bounds of a batch.

    Returns:
        The scores in order, and the number of tokens decoded.
    """
    tree = build_tree(continuations)
    scratch = np.empty_like(row)
    found: _Found = {}
    for token, value in zip(
        tree.first_asked, token_logprobs(row, tree.first_asked, scratch), strict=True
    ):
        found[ROOT, token] = value
    n_decoded = 0
    for batch in batches(tree, max_tokens=limits.n_tokens, max_sequences=limits.n_sequences):
        context.share_history(batch.n_sequences)
        _decode_batch(context, n_history, tree, batch, limits.n_tokens, found, scratch)
        context.remove_sequences(batch.n_sequences)
        n_decoded += len(batch.nodes)
    scored = [
        _scored(tokens, path, found) for tokens, path in zip(continuations, tree.paths, strict=True)
    ]
    return scored, n_decoded


def _decode_batch(
    context: NativeContext,
    n_history: int,
    tree: Tree,
    batch: ScoreBatch,
    max_tokens: int,
    found: _Found,
    scratch: Row,
) -> None:
    # More than one piece happens only for a single path, where any cut is valid.
    for start in range(0, len(batch.nodes), max_tokens):
        indices = batch.nodes[start : start + max_tokens]
        nodes = [tree.nodes[index] for index in indices]
        mark = NATIVE_LOG.mark()
        status = context.decode(
            [node.token for node in nodes],
            [n_history + node.depth for node in nodes],
            outputs="all",
            sequences=[
                [1 + sequence for sequence in sequences]
                for sequences in batch.sequences[start : start + max_tokens]
            ],
        )
        raise_for_status(status, mark)
        rows = context.rows(len(nodes))
        for index, node, node_row in zip(indices, nodes, rows, strict=True):
            values = token_logprobs(node_row, node.asked, scratch)
            for token, value in zip(node.asked, values, strict=True):
                found[index, token] = value


def _scored(tokens: Sequence[int], path: Sequence[int], found: _Found) -> ScoredContinuation:
    places = [ROOT, *path][: len(tokens)]
    values = tuple(found[place, token] for place, token in zip(places, tokens, strict=True))
    return ScoredContinuation(sum(values), len(tokens), values)


def score_one_by_one(
    context: NativeContext, n_history: int, row: Row, continuations: Sequence[Sequence[int]]
) -> tuple[list[ScoredContinuation], int]:
    """The same for models whose state cannot be shared or rolled back: from a saved state.

    Arguments and result as for `score_tree`.
    """
    scratch = np.empty_like(row)
    state = context.save_state()
    scored: list[ScoredContinuation] = []
    n_decoded = 0
    for tokens in continuations:
        values = token_logprobs(row, tokens[:1], scratch)
        decoded = tokens[:-1]
        for start in range(0, len(decoded), context.n_batch):
            part = decoded[start : start + context.n_batch]
            first = n_history + start
            mark = NATIVE_LOG.mark()
            positions = range(first, first + len(part))
            raise_for_status(context.decode(part, positions, outputs="all"), mark)
            rows = context.rows(len(part))
            for offset, node_row in enumerate(rows):
                asked = tokens[start + offset + 1 : start + offset + 2]
                values += token_logprobs(node_row, asked, scratch)
        if decoded:
            n_decoded += len(decoded)
            if not context.load_state(state):
                raise StageError("llama.cpp refused the state that it saved before scoring")
        scored.append(ScoredContinuation(sum(values), len(tokens), tuple(values)))
    return scored, n_decoded
