"""Checksums of files, remembered for files that have not changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edge_runtime.models.atomic_files import write_atomically
from edge_runtime.resources import cache_dir

_CHUNK_BYTES = 2**20
# A file written within the clock's grain of being hashed could change again unnoticed.
_SETTLED_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Checksum:
    """An expected digest. `git-sha1` is what a hub states for files outside its large storage:
    the SHA-1 of git's blob header and the content."""

    algorithm: str
    value: str

    def __str__(self) -> str:
        return f"{self.algorithm} {self.value}"


def digest_file(
    path: Path, algorithm: str = "sha256", on_bytes: Callable[[int], None] | None = None
) -> str:
    """Hex digest of a file's content; `on_bytes` hears how many bytes were read so far."""
    with path.open("rb") as stream:
        if algorithm == "git-sha1":
            digest = hashlib.sha1(usedforsecurity=False)
            digest.update(b"blob %d\0" % os.fstat(stream.fileno()).st_size)
        else:
            digest = hashlib.new(algorithm)
        n_read = 0
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
            n_read += len(chunk)
            if on_bytes is not None:
                on_bytes(n_read)
    return digest.hexdigest()


def cached_sha256(path: Path) -> str:
    """The sha256 of `path`, computed again only when size, time or inode have changed."""
    path = path.resolve()
    state = path.stat()
    stamp = [str(path), state.st_size, state.st_mtime_ns, state.st_ino]
    name = hashlib.sha256(str(path).encode()).hexdigest()[:32]
    record = cache_dir() / "digests" / f"{name}.json"
    # A damaged or missing record only means that the file is read again.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        known = json.loads(record.read_text(encoding="utf-8"))
        value = known.get("sha256")
        if known.get("stamp") == stamp and isinstance(value, str) and len(value) == 64:
            return value
    value = digest_file(path)
    if time.time_ns() - state.st_mtime_ns > _SETTLED_NS:
        text = json.dumps({"stamp": stamp, "sha256": value})
        # A cache folder that cannot be written to costs time, not correctness.
        with contextlib.suppress(OSError):
            record.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(record, text.encode())
    return value


def combined_sha256(digests: dict[str, str]) -> str:
    """One digest for a model of several files; of one file, its own."""
    if len(digests) == 1:
        return next(iter(digests.values()))
    lines = "".join(f"{key}:{value}\n" for key, value in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
