"""Blocks held on disk, shared by processes, least recently used out first.

Files are immutable and named by content, so readers take no lock; a reader that loses a race
against eviction sees a miss.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edge_runtime.kv.block_file import (
    HEADER_BYTES,
    BlockFileError,
    BlockHeader,
    checksum,
    read_block,
    sync_folder,
    write_block,
)
from edge_runtime.kv.disk_folder import DiskFolder, StoredBlock
from edge_runtime.kv.prefix_key import PrefixKey

_log = logging.getLogger("edge_runtime.kv")

_RETRY_AFTER_S = 60.0
_TOUCH_AFTER_S = 30.0
_ABANDONED_AFTER_S = 60.0
_LOW_WATER = 0.9
_WRITES_PER_SCAN = 32
_MAX_TOUCHED = 4096


@dataclass(frozen=True, slots=True)
class NewBlock:
    """A block on its way to disk."""

    digest: bytes
    n_tokens: int
    payload: bytes


@dataclass(slots=True)
class DiskCounts:
    """What happened since this process opened the tier."""

    n_written: int = 0
    n_damaged: int = 0
    n_evicted: int = 0
    n_failed_writes: int = 0


class DiskTier:
    """A byte-bounded folder of blocks. Trouble with the disk is reported, not raised.

    `problem` says why the disk is not written to at present; it is tried again a minute later.
    """

    def __init__(self, root: Path, budget_bytes: int, block_tokens: int) -> None:
        self.folder = DiskFolder(root)
        self.problem: str | None = None
        self.counts = DiskCounts()
        self._budget_bytes = budget_bytes
        self._block_tokens = block_tokens
        self._lock = threading.Lock()
        self._retry_at_s = 0.0
        self._known_bytes: int | None = None
        self._writes_since_scan = 0
        self._touched: dict[bytes, float] = {}

    def read(self, key_digest: bytes, digest: bytes) -> bytes | None:
        """The checked payload, or None when there is none. A damaged file is deleted."""
        path = self.folder.path(key_digest, digest)
        try:
            header, payload = read_block(path)
            self._check_identity(header, key_digest, digest)
        except FileNotFoundError:
            return None
        except BlockFileError as err:
            _log.warning("Damaged block %s dropped: %s", path.name, err)
            with self._lock:
                self.counts.n_damaged += 1
            self._remove(path)
            return None
        except OSError as err:
            self._report(f"reading failed: {err.strerror or err}")
            return None
        return payload

    def touch(self, key_digest: bytes, chain: Sequence[bytes]) -> None:
        """Mark a chain as used now; at most every half minute for the same chain."""
        if not chain:
            return
        now_s = time.monotonic()
        with self._lock:
            last_s = self._touched.get(chain[-1])
            if last_s is not None and now_s - last_s < _TOUCH_AFTER_S:
                return
            if len(self._touched) >= _MAX_TOUCHED:
                self._touched.clear()
            self._touched[chain[-1]] = now_s
        self.folder.stamp([self.folder.path(key_digest, digest) for digest in chain])

    def write(self, key: PrefixKey, blocks: Sequence[NewBlock]) -> bool:
        """Store the blocks of one chain that are not there yet; False when the disk refused."""
        with self._lock:
            if self.problem is not None and time.monotonic() < self._retry_at_s:
                return False
        try:
            n_bytes = self._write_chain(key, blocks)
        except OSError as err:
            with self._lock:
                self.counts.n_failed_writes += 1
            full = err.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            what = "no room for blocks" if full else "writing failed"
            self._report(f"{what}: {err.strerror or err}")
            return False
        with self._lock:
            self.problem = None
        self._account(n_bytes)
        return True

    def evict(self) -> None:
        """Delete the least recently used blocks until the budget holds, and abandoned files."""
        try:
            with self.folder.eviction_lock() as held:
                if held:
                    self._evict_locked()
        except OSError as err:
            self._report(f"eviction failed: {err.strerror or err}")

    def remove_abandoned(self, *, older_than_s: float = _ABANDONED_AFTER_S) -> int:
        """Delete temporary files whose writer died; returns how many."""
        return self.folder.remove_abandoned(older_than_s=older_than_s)

    def check(self, block: StoredBlock) -> str | None:
        """Read a listed block; what is wrong with it, or None. A block that vanished is fine."""
        try:
            header, _ = read_block(block.path)
        except FileNotFoundError:
            return None
        except (BlockFileError, OSError) as err:
            return str(err)
        if self.folder.path(header.key_digest, header.digest) != block.path:
            return "stored under another name"
        return None

    def remove(self, block: StoredBlock) -> bool:
        """Delete a listed block; False when the disk refused."""
        with self._lock:
            self._known_bytes = None
        return self._remove(block.path)

    def _write_chain(self, key: PrefixKey, blocks: Sequence[NewBlock]) -> int:
        key_digest = key.digest
        n_bytes = 0
        paths = [self.folder.path(key_digest, block.digest) for block in blocks]
        for path, block in zip(paths, blocks, strict=True):
            if path.exists():
                continue
            header = BlockHeader(
                block_tokens=self._block_tokens,
                n_tokens=block.n_tokens,
                payload_bytes=len(block.payload),
                key_digest=key_digest,
                digest=block.digest,
                checksum=checksum(block.payload),
            )
            self._write_one(key, path, header, block.payload)
            n_bytes += HEADER_BYTES + len(block.payload)
        if n_bytes:
            sync_folder(self.folder.key_folder(key_digest))
        self.folder.stamp(paths)
        return n_bytes

    def _write_one(self, key: PrefixKey, path: Path, header: BlockHeader, payload: bytes) -> None:
        for last_try in (False, True):
            self.folder.prepare(key, header.key_digest)
            try:
                write_block(path, header, payload)
            except FileNotFoundError:
                # Another process emptied and removed the folder between the two calls.
                if last_try:
                    raise
            else:
                with self._lock:
                    self.counts.n_written += 1
                return

    def _account(self, n_bytes: int) -> None:
        if n_bytes == 0:
            return
        with self._lock:
            known = self._known_bytes
            self._known_bytes = known = None if known is None else known + n_bytes
            self._writes_since_scan += 1
            # Other processes write too, so what is known has to be checked now and then.
            due = self._writes_since_scan >= _WRITES_PER_SCAN
        if known is None or known > self._budget_bytes or due:
            self.evict()

    def _evict_locked(self) -> None:
        self.remove_abandoned()
        blocks = self.folder.list()
        total = sum(block.n_bytes for block in blocks)
        if total > self._budget_bytes:
            target = int(self._budget_bytes * _LOW_WATER)
            for block in sorted(blocks, key=lambda block: block.last_used_ns):
                if total <= target:
                    break
                if self._remove(block.path):
                    total -= block.n_bytes
                    with self._lock:
                        self.counts.n_evicted += 1
        with self._lock:
            self._known_bytes = total
            self._writes_since_scan = 0

    def _remove(self, path: Path) -> bool:
        try:
            self.folder.remove(path)
        except OSError as err:
            self._report(f"deleting failed: {err.strerror or err}")
            return False
        return True

    def _check_identity(self, header: BlockHeader, key_digest: bytes, digest: bytes) -> None:
        if header.key_digest != key_digest or header.digest != digest:
            raise BlockFileError("block of another model or prefix")
        if header.block_tokens != self._block_tokens:
            raise BlockFileError(f"blocks of {header.block_tokens} tokens")

    def _report(self, problem: str) -> None:
        with self._lock:
            known = self.problem
            self.problem = problem
            self._retry_at_s = time.monotonic() + _RETRY_AFTER_S
        if known != problem:
            _log.warning("Prefix store keeps to memory: %s (%s)", problem, self.folder.root)
