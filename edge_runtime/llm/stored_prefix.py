"""A session's side of the prefix store: whole states in, whole states out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edge_runtime.errors import CapabilityError
from edge_runtime.kv.prefix_key import PrefixKey, block_bounds
from edge_runtime.kv.prefix_store import PrefixStore
from edge_runtime.kv.state_blob import Plane, StateBlob, join, parse

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredState:
    """A state found in the store; it holds the first `n_tokens` tokens."""

    n_tokens: int
    state: bytes


@dataclass(frozen=True, slots=True)
class StoredPrefixes:
    """A prefix store under the key of one model, build and cache format."""

    store: PrefixStore
    key: PrefixKey

    @property
    def block_tokens(self) -> int:
        """Tokens per stored block."""
        return self.store.block_tokens

    def find(self, tokens: Sequence[int], *, more_than: int) -> StoredState | None:
        """The longest stored state of a beginning of `tokens`, if it beats `more_than` tokens."""
        hit = self.store.lookup(self.key, tokens)
        if hit.n_tokens <= more_than:
            return None
        try:
            return StoredState(hit.n_tokens, join(hit.blocks))
        except CapabilityError as err:
            _log.warning("A stored prefix cannot be put together and is computed again: %s", err)
            return None

    def save(self, tokens: Sequence[int], state: NDArray[np.uint8]) -> int:
        """Store the blocks of `tokens` out of a state that begins with them; 0 if it cannot be."""
        try:
            blob = _by_position(parse(state.data))
        except CapabilityError as err:
            _log.info("This model's state is not stored: %s", err)
            return 0
        n_tokens = len(tokens)
        if blob.n_cells < n_tokens or blob.positions[n_tokens - 1] != n_tokens - 1:
            _log.warning("The cache does not hold positions 0..%d, nothing stored", n_tokens - 1)
            return 0
        blocks = [
            blob.slice_cells(start, end).to_bytes()
            for start, end in block_bounds(n_tokens, self.block_tokens)
        ]
        self.store.put(self.key, tokens, blocks)
        return n_tokens


def _by_position(blob: StateBlob) -> StateBlob:
    """The same cells in the order of their positions; cells refilled after a rollback are not."""
    order = np.argsort(blob.positions, kind="stable")
    if np.array_equal(order, np.arange(order.size)):
        return blob
    return replace(
        blob,
        positions=blob.positions[order],
        keys=tuple(_reordered(plane, order) for plane in blob.keys),
        values=tuple(_reordered(plane, order) for plane in blob.values),
    )


def _reordered(plane: Plane, order: NDArray[Any]) -> Plane:
    data = plane.data[:, order] if plane.transposed else plane.data[order]
    return replace(plane, data=np.ascontiguousarray(data))
