"""Files that are either complete or not there, and locks between processes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

from edge_runtime.errors import ResourceError


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` beside `path` and rename it there once it is on disk."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def publish(partial: Path, target: Path) -> None:
    """Make a finished partial file visible under its real name, durably."""
    with partial.open("rb") as stream:
        os.fsync(stream.fileno())
    partial.replace(target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut, where the file system can."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        # Some network file systems cannot sync a folder.
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def exclusive(lock: Path, *, on_wait: Callable[[], None] | None = None) -> Generator[None]:
    """Hold `lock` against all other processes; the system releases it if this one dies.

    The lock file stays: removing it would let two processes hold locks on different files.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait is not None:
                on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def disk_errors(folder: Path) -> Generator[None]:
    """Turn a full disk, a quota or an impossible folder into a `ResourceError`."""
    try:
        yield
    except OSError as err:
        reasons = {
            errno.ENOSPC: "the disk is full",
            errno.EDQUOT: "the disk quota is used up",
            errno.EROFS: "the file system is read-only",
            errno.EACCES: "permission is denied",
            errno.EPERM: "permission is denied",
            errno.ENOTDIR: "a part of the path is a file",
            errno.EEXIST: "a file of that name is in the way",
            errno.ENAMETOOLONG: "the name is too long",
            errno.ELOOP: "its links go round in a circle",
            errno.EFBIG: "the file system does not take files this large",
        }
        reason = reasons.get(err.errno or 0)
        if reason is None:
            raise
        raise ResourceError(
            f"Cannot write to {folder}: {reason}",
            hint="free some space, or set EDGE_RUNTIME_MODELS to another folder",
            details={"folder": str(folder)},
        ) from err
