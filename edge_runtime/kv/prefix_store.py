"""Computed prefixes kept for the next session: in memory, and on disk for the next process.

A prefix is cut into blocks of `block_tokens` tokens. A block is named by the hash of the key
fields, its predecessor's name and its tokens, so equal beginnings share blocks and a name stands
for everything that was computed before it. The last block of a stored prefix may be shorter.

The payload of a block is opaque here. Whatever goes wrong on disk is a reported miss; the store
never raises because of its disk and never returns bytes that were not stored under that name.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from edge_runtime import resources, trace
from edge_runtime.errors import UsageError
from edge_runtime.kv.disk_folder import StoredBlock
from edge_runtime.kv.disk_tier import DiskTier, NewBlock
from edge_runtime.kv.memory_tier import MemoryTier
from edge_runtime.kv.prefix_key import PrefixKey, block_bounds, next_digest

DEFAULT_BLOCK_TOKENS = 64
DEFAULT_MEMORY_BYTES = 256 << 20
DEFAULT_DISK_BYTES = 2 << 30

Source = Literal["memory", "disk", "mixed", "none"]


def default_root() -> Path:
    """The folder of this user's prefix store."""
    return resources.cache_dir() / "prefixes"


@dataclass(frozen=True, slots=True)
class PrefixHit:
    """The longest stored beginning of some tokens; `blocks` in order, `n_tokens` in all."""

    n_tokens: int
    blocks: list[bytes]
    source: Source


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Fill and events; counts are those of this process, sizes those of the whole store."""

    n_memory_blocks: int
    memory_bytes: int
    memory_budget_bytes: int
    n_disk_blocks: int
    disk_bytes: int
    disk_budget_bytes: int
    n_lookups: int
    n_hits: int
    n_hit_tokens: int
    n_damaged: int
    n_evicted_memory: int
    n_evicted_disk: int
    n_failed_writes: int
    disk_problem: str | None


@dataclass(frozen=True, slots=True)
class StoredPrefixGroup:
    """What the disk holds for one key (model, build and cache format)."""

    name: str
    key: dict[str, Any]
    n_blocks: int
    n_bytes: int
    last_used_unix_s: float


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Outcome of reading every block on disk; damaged ones were deleted."""

    n_blocks: int
    n_bytes: int
    damaged: tuple[tuple[str, str], ...]
    n_abandoned: int


@dataclass(slots=True)
class _Match:
    n_tokens: int = 0
    chain: list[bytes] = field(default_factory=list[bytes])
    blocks: list[bytes] = field(default_factory=list[bytes])
    places: set[str] = field(default_factory=set[str])


class PrefixStore:
    """Blocks of prefixes in memory and on disk; safe between threads and processes.

    Args:
        root: Folder on disk; None keeps everything in memory.
        memory_budget_bytes: Payload bytes held in memory; 0 turns the memory tier off.
        disk_budget_bytes: File bytes held on disk; 0 turns the disk tier off.
        block_tokens: Tokens per full block.

    Raises:
        UsageError: for a negative budget or a block size below one.
    """

    def __init__(
        self,
        root: Path | None,
        *,
        memory_budget_bytes: int = DEFAULT_MEMORY_BYTES,
        disk_budget_bytes: int = DEFAULT_DISK_BYTES,
        block_tokens: int = DEFAULT_BLOCK_TOKENS,
    ) -> None:
        if memory_budget_bytes < 0 or disk_budget_bytes < 0 or block_tokens < 1:
            raise UsageError("A prefix store needs budgets of at least 0 and blocks of at least 1")
        self.block_tokens = block_tokens
        self._memory_budget_bytes = memory_budget_bytes
        self._disk_budget_bytes = disk_budget_bytes
        self._memory = MemoryTier(memory_budget_bytes)
        self._disk = (
            DiskTier(root, disk_budget_bytes, block_tokens)
            if root is not None and disk_budget_bytes
            else None
        )
        self._lock = threading.Lock()
        self._n_lookups = 0
        self._n_hits = 0
        self._n_hit_tokens = 0

    @property
    def disk_problem(self) -> str | None:
        """Why the disk is not used at present, or None."""
        return self._disk.problem if self._disk is not None else None

    def lookup(self, key: PrefixKey, tokens: Sequence[int]) -> PrefixHit:
        """The longest stored beginning of `tokens`; `n_tokens` 0 and no blocks when none is."""
        with trace.current().span("kv.lookup") as span:
            match = self._match(key.digest, tokens)
            source = _source(match.places)
            span.n_tokens = match.n_tokens
            span.note(source=source)
        with self._lock:
            self._n_lookups += 1
            self._n_hits += match.n_tokens > 0
            self._n_hit_tokens += match.n_tokens
        return PrefixHit(match.n_tokens, match.blocks, source)

    def put(self, key: PrefixKey, tokens: Sequence[int], blocks: Sequence[bytes]) -> None:
        """Store the blocks of a prefix; `blocks[i]` belongs to `tokens[i*b : (i+1)*b]`.

        There may be one block less than needed to cover all tokens: then only full blocks are
        stored. Disk trouble is reported in `disk_problem` and the log, and the blocks stay in
        memory.

        Raises:
            UsageError: when the number of blocks does not fit the tokens.
        """
        bounds = block_bounds(len(tokens), self.block_tokens)
        if len(blocks) == len(tokens) // self.block_tokens:
            bounds = bounds[: len(blocks)]
        if len(blocks) != len(bounds):
            raise UsageError(
                f"{len(tokens)} tokens in blocks of {self.block_tokens} are {len(bounds)} blocks, "
                f"not {len(blocks)}"
            )
        if not blocks:
            return
        with trace.current().span("kv.put") as span:
            span.n_tokens = bounds[-1][1]
            digest = key.digest
            chain: list[NewBlock] = []
            for (start, end), payload in zip(bounds, blocks, strict=True):
                digest = next_digest(digest, tokens[start:end])
                chain.append(NewBlock(digest, end - start, payload))
            self._memory.put_chain([(block.digest, block.payload) for block in chain])
            if self._disk is not None:
                span.note(on_disk=self._disk.write(key, chain))

    def groups(self) -> list[StoredPrefixGroup]:
        """What the disk holds, per key, the most recently used first."""
        if self._disk is None:
            return []
        by_folder: dict[Path, list[StoredBlock]] = {}
        for block in self._disk.folder.list():
            by_folder.setdefault(block.path.parent, []).append(block)
        groups = [
            StoredPrefixGroup(
                name=folder.name,
                key=self._disk.folder.describe(folder),
                n_blocks=len(found),
                n_bytes=sum(block.n_bytes for block in found),
                last_used_unix_s=max(block.last_used_ns for block in found) / 1e9,
            )
            for folder, found in by_folder.items()
        ]
        return sorted(groups, key=lambda group: -group.last_used_unix_s)

    def stats(self) -> StoreStats:
        """Fill of both tiers and what happened so far."""
        memory = self._memory.use()
        stored = self._disk.folder.list() if self._disk is not None else []
        counts = self._disk.counts if self._disk is not None else None
        with self._lock:
            return StoreStats(
                n_memory_blocks=memory.n_blocks,
                memory_bytes=memory.n_bytes,
                memory_budget_bytes=self._memory_budget_bytes,
                n_disk_blocks=len(stored),
                disk_bytes=sum(block.n_bytes for block in stored),
                disk_budget_bytes=self._disk_budget_bytes if self._disk is not None else 0,
                n_lookups=self._n_lookups,
                n_hits=self._n_hits,
                n_hit_tokens=self._n_hit_tokens,
                n_damaged=counts.n_damaged if counts else 0,
                n_evicted_memory=memory.n_evicted,
                n_evicted_disk=counts.n_evicted if counts else 0,
                n_failed_writes=counts.n_failed_writes if counts else 0,
                disk_problem=self.disk_problem,
            )

    def verify(self) -> VerifyReport:
        """Read and check every block on disk, delete damaged ones and abandoned files."""
        if self._disk is None:
            return VerifyReport(0, 0, (), 0)
        n_blocks = n_bytes = 0
        damaged: list[tuple[str, str]] = []
        for block in self._disk.folder.list():
            problem = self._disk.check(block)
            if problem is None:
                n_blocks += 1
                n_bytes += block.n_bytes
            else:
                damaged.append((f"{block.path.parent.name}/{block.path.name}", problem))
                self._disk.remove(block)
        return VerifyReport(n_blocks, n_bytes, tuple(damaged), self._disk.remove_abandoned())

    def clear(self) -> int:
        """Delete all blocks of both tiers; returns the bytes freed on disk."""
        self._memory.clear()
        if self._disk is None:
            return 0
        n_bytes = 0
        for block in self._disk.folder.list():
            if self._disk.remove(block):
                n_bytes += block.n_bytes
        self._disk.remove_abandoned(older_than_s=0.0)
        return n_bytes

    def _match(self, key_digest: bytes, tokens: Sequence[int]) -> _Match:
        match = _Match()
        size = self.block_tokens
        parent = key_digest
        while match.n_tokens + size <= len(tokens):
            start = match.n_tokens
            digest = next_digest(parent, tokens[start : start + size])
            if not self._take(key_digest, digest, size, match):
                break
            parent = digest
        # A stored prefix may end in a shorter block; the longest that fits is wanted.
        start = match.n_tokens
        for n in range(min(size - 1, len(tokens) - start), 0, -1):
            digest = next_digest(parent, tokens[start : start + n])
            if self._take(key_digest, digest, n, match):
                break
        self._memory.put_chain(list(zip(match.chain, match.blocks, strict=True)))
        if self._disk is not None:
            self._disk.touch(key_digest, match.chain)
        return match

    def _take(self, key_digest: bytes, digest: bytes, n_tokens: int, match: _Match) -> bool:
        found = self._read(key_digest, digest)
        if found is None:
            return False
        payload, place = found
        match.chain.append(digest)
        match.blocks.append(payload)
        match.places.add(place)
        match.n_tokens += n_tokens
        return True

    def _read(self, key_digest: bytes, digest: bytes) -> tuple[bytes, str] | None:
        payload = self._memory.get(digest)
        if payload is not None:
            return payload, "memory"
        if self._disk is None:
            return None
        payload = self._disk.read(key_digest, digest)
        return None if payload is None else (payload, "disk")


def _source(places: set[str]) -> Source:
    if not places:
        return "none"
    if len(places) == 2:
        return "mixed"
    return "memory" if "memory" in places else "disk"
