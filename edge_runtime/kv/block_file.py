"""One stored block as a file: a fixed header, then the payload.

Little endian, 128 bytes of header:

    8s magic, u16 version, u16 header bytes, u32 tokens per full block, u32 tokens in this block,
    u32 zero, u64 payload bytes, 32s key digest, 32s chain digest,
    16s payload checksum, 16s checksum of all header bytes before it

A file is only ever replaced whole, so a reader sees a complete block or none.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MAGIC = b"ERKVBLK\x00"
VERSION = 1
_LAYOUT = struct.Struct("<8sHHIIIQ32s32s16s")
_CHECK_BYTES = 16
HEADER_BYTES = _LAYOUT.size + _CHECK_BYTES
_ROW_WORDS = 512


class BlockFileError(Exception):
    """A file that is not the block it should be; never leaves this package."""


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """What a block file says about itself."""

    block_tokens: int
    n_tokens: int
    payload_bytes: int
    key_digest: bytes
    digest: bytes
    checksum: bytes

    def pack(self) -> bytes:
        """The header's bytes with their own checksum."""
        head = _LAYOUT.pack(
            MAGIC,
            VERSION,
            HEADER_BYTES,
            self.block_tokens,
            self.n_tokens,
            0,
            self.payload_bytes,
            self.key_digest,
            self.digest,
            self.checksum,
        )
        return head + _check(head)

    @classmethod
    def unpack(cls, raw: bytes) -> BlockHeader:
        """Read a header.

        Raises:
            BlockFileError: when it is short, damaged, or of another version.
        """
        if len(raw) < HEADER_BYTES:
            raise BlockFileError("shorter than a header")
        head, check = raw[: _LAYOUT.size], raw[_LAYOUT.size : HEADER_BYTES]
        magic, version, size, full, n, zero, payload, key, digest, payload_check = _LAYOUT.unpack(
            head
        )
        if magic != MAGIC:
            raise BlockFileError("not a block file")
        if version != VERSION or size != HEADER_BYTES:
            raise BlockFileError(f"format version {version}")
        if check != _check(head) or zero or not 0 < n <= full:
            raise BlockFileError("damaged header")
        return cls(full, n, payload, key, digest, payload_check)


def checksum(payload: bytes) -> bytes:
    """16 bytes that change with any changed, moved or swapped stretch of the payload.

    The payload is laid out as rows of 512 eight-byte words; all row sums and all column sums are
    hashed. That runs at memory speed, where a byte-wise hash would cost more than reading the
    file. It guards against damage, not against an attacker.
    """
    n_words = len(payload) // 8
    words = np.frombuffer(payload, "<u8", n_words)
    n_rows = n_words // _ROW_WORDS
    grid = words[: n_rows * _ROW_WORDS].reshape(n_rows, _ROW_WORDS)
    digest = hashlib.blake2b(digest_size=_CHECK_BYTES)
    digest.update(len(payload).to_bytes(8, "little"))
    digest.update(grid.sum(axis=0, dtype=np.uint64).tobytes())
    digest.update(grid.sum(axis=1, dtype=np.uint64).tobytes())
    digest.update(payload[n_rows * _ROW_WORDS * 8 :])
    return digest.digest()


def read_header(path: Path) -> BlockHeader:
    """The header alone.

    Raises:
        BlockFileError: when the file is not an intact block as far as the header and size tell.
        OSError: when it cannot be read.
    """
    with path.open("rb", buffering=0) as file:
        return _read_header(file.fileno())


def read_block(path: Path) -> tuple[BlockHeader, bytes]:
    """Header and checked payload; the payload is read straight into its final bytes.

    Raises:
        BlockFileError: when anything does not match.
        OSError: when the file cannot be read.
    """
    with path.open("rb", buffering=0) as file:
        header = _read_header(file.fileno())
        payload = file.read(header.payload_bytes)
    if len(payload) != header.payload_bytes:
        raise BlockFileError("truncated payload")
    if checksum(payload) != header.checksum:
        raise BlockFileError("payload checksum does not match")
    return header, payload


def write_block(path: Path, header: BlockHeader, payload: bytes) -> None:
    """Write a block so that it appears whole or not at all, also after a crash.

    The temporary file is locked while it is written, so that `remove_if_abandoned` can tell a
    slow writer from a dead one. The caller syncs the folder.

    Raises:
        OSError: when there is no room or no permission; no temporary file is left behind.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        _write_all(fd, header.pack(), payload)
        os.fsync(fd)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)


def remove_if_abandoned(partial: Path) -> bool:
    """Delete a temporary file whose writer is gone; False while somebody writes it."""
    try:
        fd = os.open(partial, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        partial.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _read_header(fd: int) -> BlockHeader:
    header = BlockHeader.unpack(os.read(fd, HEADER_BYTES))
    # Checked before the payload is read: a damaged length must not become an allocation.
    if os.fstat(fd).st_size != HEADER_BYTES + header.payload_bytes:
        raise BlockFileError("file size does not match the header")
    return header


def _write_all(fd: int, *parts: bytes) -> None:
    for part in parts:
        view = memoryview(part)
        while view:
            view = view[os.write(fd, view) :]


def _check(head: bytes) -> bytes:
    return hashlib.blake2b(head, digest_size=_CHECK_BYTES).digest()
