"""Writing results so that nothing half-written is ever taken for a result."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from edge_runtime.cli.error_report import NO_SPACE
from edge_runtime.errors import EdgeRuntimeError, ResourceError, UsageError


@contextlib.contextmanager
def translated(path: Path) -> Generator[None]:
    """Turn the system's refusals to write `path` into errors with a hint."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as err:
        raise _write_error(path, err) from err


def _write_error(path: Path, err: OSError) -> EdgeRuntimeError:
    reason = err.strerror or str(err)
    if err.errno in NO_SPACE:
        return ResourceError(f"{path} cannot be written: {reason}.", hint="make room on that disk")
    return UsageError(f"{path} cannot be written: {reason}.", hint="choose another place with -o")


def write_atomically(path: Path, content: str | bytes) -> None:
    """Make `path` hold `content`, or leave it as it was.

    A link stays a link and what it names is replaced; a device or a pipe is written to.

    Raises:
        UsageError: the place cannot be written to.
        ResourceError: the disk is full.
    """
    data = _encoded(content) if isinstance(content, str) else content
    with translated(path):
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # a device or a pipe such as /dev/stdout
            return
        if path.is_symlink():
            path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


class ResultFile:
    """A file that results are added to as they come; each is on disk before `add` returns.

    A process killed at any moment leaves every finished result, and at most one torn last line.
    The file is locked against a second writer.

    Args:
        path: JSON Lines when `resume` is set.
        header: Text at the top of a new file.
        separator: Text between two results.
        resume: Go on after the results that are there (see `finished`).

    Raises:
        UsageError: the file is there and `resume` is not set; or it holds something else than
            results; or another process writes to it.
    """

    def __init__(self, path: Path, *, header: str, separator: str, resume: bool) -> None:
        self._path = path
        self._separator = separator
        self.finished: dict[str, str] = {}
        """Status of each source that has a result already."""
        with translated(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b" if path.is_file() or not path.exists() else "wb")
        try:
            self._lock()
            self._is_fresh = not path.is_file() or self._file.seek(0, os.SEEK_END) == 0
            if not self._is_fresh:
                self.finished = self._read_finished(resume=resume)
            elif header:
                self._put(header)
        except BaseException:
            self._file.close()
            raise

    def add(self, text: str) -> None:
        """Append one result's text and wait until the disk has it."""
        self._put(text if self._is_fresh else self._separator + text)
        self._is_fresh = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _put(self, text: str) -> None:
        with translated(self._path):
            self._file.write(_encoded(text))
            self._file.flush()
            if self._path.is_file():
                os.fsync(self._file.fileno())

    def _read_finished(self, *, resume: bool) -> dict[str, str]:
        """Read what is there; complete a last line without its newline, or cut it off if torn."""
        if not resume:
            raise UsageError(
                f"{self._path} already holds something.",
                hint="--resume to go on, --overwrite to begin again",
            )
        found: dict[str, str] = {}
        end_of_whole = 0
        self._file.seek(0)
        for number, line in enumerate(self._file, start=1):
            record = _parsed(line)
            if record is not None:
                found[record["source"]] = str(record.get("status"))
            elif not line.endswith(b"\n"):
                break
            elif line.strip():
                raise UsageError(
                    f"Line {number} of {self._path} is not a result of edge-run.",
                    hint="choose another file with -o",
                )
            end_of_whole += len(line)
        with translated(self._path):
            self._file.truncate(end_of_whole)
            self._file.seek(max(0, end_of_whole - 1))
            if end_of_whole and self._file.read(1) != b"\n":
                self._put("\n")
        return found

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:
            return  # no such lock on this system
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            raise UsageError(
                f"Another process is writing to {self._path}.", hint="choose another file with -o"
            ) from err
        except OSError:
            return  # a file system or device without locks


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    is_result = isinstance(record, dict) and isinstance(record.get("source"), str)
    return record if is_result else None


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="backslashreplace")
