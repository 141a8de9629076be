"""The folder of stored blocks: names, listing, times of use, and leftovers.

    <root>/v1/<32 hex digits of the key digest>/key.json
    <root>/v1/<32 hex digits of the key digest>/<64 hex digits of the block digest>.kvb

A file's modification time is when it was last used. Everything here tolerates other processes
that add and remove files at the same time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edge_runtime.kv.block_file import VERSION, remove_if_abandoned
from edge_runtime.kv.prefix_key import PrefixKey

_SUFFIX = ".kvb"
_PARTIAL = ".tmp"
_KEY_FILE = "key.json"
_LOCK_FILE = ".evict.lock"


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block file as listed, unread."""

    path: Path
    n_bytes: int
    last_used_ns: int


class DiskFolder:
    """Names and housekeeping below one root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._versioned = root / f"v{VERSION}"

    def key_folder(self, key_digest: bytes) -> Path:
        """Where blocks of a key are."""
        return self._versioned / key_digest.hex()[:32]

    def path(self, key_digest: bytes, digest: bytes) -> Path:
        """Where a block is."""
        return self.key_folder(key_digest) / (digest.hex() + _SUFFIX)

    def prepare(self, key: PrefixKey, key_digest: bytes) -> None:
        """Make the key's folder and its readable description.

        Raises:
            OSError: when that is not possible.
        """
        folder = self.key_folder(key_digest)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        description = folder / _KEY_FILE
        if not description.exists():
            owner = f"{os.getpid()}.{threading.get_ident()}"
            partial = folder / f".{_KEY_FILE}.{owner}{_PARTIAL}"
            partial.write_text(key.to_json(), encoding="utf-8")
            partial.replace(description)

    def describe(self, folder: Path) -> dict[str, object]:
        """The key fields of a key's folder, empty when its description is unreadable."""
        try:
            fields = json.loads((folder / _KEY_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return fields if isinstance(fields, dict) else {}

    def list(self) -> list[StoredBlock]:
        """All block files; those that vanish meanwhile are left out."""
        found: list[StoredBlock] = []
        for entry in self._entries():
            if not entry.name.endswith(_SUFFIX) or entry.name.startswith("."):
                continue
            with contextlib.suppress(FileNotFoundError):
                facts = entry.stat(follow_symlinks=False)
                found.append(StoredBlock(Path(entry.path), facts.st_size, facts.st_mtime_ns))
        return found

    def remove(self, path: Path) -> None:
        """Delete a block and, when it was the last one, its folder.

        Raises:
            OSError: when the block is there and cannot be deleted.
        """
        path.unlink(missing_ok=True)
        # A folder that another process writes into meanwhile stays, or is made again there.
        with contextlib.suppress(OSError):
            if [entry.name for entry in os.scandir(path.parent)] == [_KEY_FILE]:
                (path.parent / _KEY_FILE).unlink(missing_ok=True)
                path.parent.rmdir()

    def stamp(self, chain: Sequence[Path]) -> None:
        """Mark blocks as used now, the later ones in the chain a little earlier.

        The end of a chain is useless without its beginning, so it has to be evicted first.
        """
        now_ns = time.time_ns()
        for i, path in enumerate(chain):
            with contextlib.suppress(OSError):
                os.utime(path, ns=(now_ns - i, now_ns - i))

    def remove_abandoned(self, *, older_than_s: float) -> int:
        """Delete temporary files whose writer died; returns how many."""
        n = 0
        for entry in self._entries():
            if not (entry.name.startswith(".") and entry.name.endswith(_PARTIAL)):
                continue
            try:
                age_s = time.time() - entry.stat(follow_symlinks=False).st_mtime
            except FileNotFoundError:
                continue
            n += age_s >= older_than_s and remove_if_abandoned(Path(entry.path))
        return n

    @contextlib.contextmanager
    def eviction_lock(self) -> Generator[bool]:
        """Hold the right to evict; yields False when another process holds it.

        Raises:
            OSError: when the lock file cannot be made.
        """
        fd = os.open(self.root / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(fd)

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        try:
            folders = [entry.path for entry in os.scandir(self._versioned) if entry.is_dir()]
        except OSError:
            return
        for folder in folders:
            try:
                entries = list(os.scandir(folder))
            except OSError:
                continue
            yield from entries
