"""Blocks held in memory, least recently used out first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """How full the tier is."""

    n_blocks: int
    n_bytes: int
    n_evicted: int


class MemoryTier:
    """A byte-bounded map from block digest to payload; keeps references, never copies."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._blocks: OrderedDict[bytes, bytes] = OrderedDict()
        self._n_bytes = 0
        self._n_evicted = 0
        self._lock = threading.Lock()

    def get(self, digest: bytes) -> bytes | None:
        """The payload or None."""
        with self._lock:
            return self._blocks.get(digest)

    def put_chain(self, chain: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep the blocks of a chain, given as (digest, payload), as the most recently used.

        The end of a chain is useless without its beginning, so the end is evicted first.
        """
        with self._lock:
            for digest, payload in reversed(chain):
                old = self._blocks.pop(digest, None)
                self._n_bytes -= len(old) if old is not None else 0
                if len(payload) <= self._budget_bytes:
                    self._blocks[digest] = payload
                    self._n_bytes += len(payload)
            while self._n_bytes > self._budget_bytes:
                _, evicted = self._blocks.popitem(last=False)
                self._n_bytes -= len(evicted)
                self._n_evicted += 1

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._blocks.clear()
            self._n_bytes = 0

    def use(self) -> MemoryUse:
        """Current fill."""
        with self._lock:
            return MemoryUse(len(self._blocks), self._n_bytes, self._n_evicted)
