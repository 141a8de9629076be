"""What is there of a model, found out without reading whole files where that can be helped."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from edge_runtime.errors import ModelNotFound
from edge_runtime.models.catalogue import Entry, ModelFile, WheelSource
from edge_runtime.models.digests import cached_sha256
from edge_runtime.models.receipt import Receipt, ReceiptFile
from edge_runtime.models.wheel_source import installed_file


class FileState(StrEnum):
    """What is known of a file without reading all of it."""

    READY = "ready"
    INSTALLED = "installed"  # used where an installed package keeps it
    UNCHECKED = "unchecked"  # there, but nothing says what it should be
    DAMAGED = "damaged"
    PARTIAL = "partial"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class FileStatus:
    """State of one file; `path` is where it is or would be."""

    key: str
    path: Path
    state: FileState
    size_bytes: int | None
    sha256: str | None

    @property
    def is_usable(self) -> bool:
        """Whether the file may be handed to native code."""
        return self.state in {FileState.READY, FileState.INSTALLED}


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """State of all files of a model."""

    entry: Entry
    files: tuple[FileStatus, ...]

    @property
    def is_ready(self) -> bool:
        """Whether all files are there and of the right size."""
        return all(file.is_usable for file in self.files)

    @property
    def state(self) -> FileState:
        """The state of the file that is worst off."""
        return max((file.state for file in self.files), key=list(FileState).index)


def not_pulled(status: ModelStatus) -> ModelNotFound:
    """The error for a model that is in the catalogue but not (wholly) on disk."""
    name = status.entry.name
    bad = [f"{f.path.name} is {f.state.value}" for f in status.files if not f.is_usable]
    option = " --accept-licence" if status.entry.must_accept else ""
    return ModelNotFound(
        f"The model {name} is not ready: {', '.join(bad)}",
        hint=f"edge-run models pull {name}{option}",
        details={"name": name, "state": status.state.value},
    )


def file_status(folder: Path, file: ModelFile, receipt: Receipt) -> FileStatus:
    """State of one file of a model whose files belong in `folder`."""
    target = folder / file.name
    known = receipt.files.get(file.key)
    sha256 = file.sha256 or (known.sha256 if known else None)
    size = file.size_bytes or (known.size_bytes if known else None)
    if not target.is_file() and isinstance(file.source, WheelSource):
        installed = installed_file(file.source)
        if installed is not None and _is_same(installed, file.size_bytes, file.sha256):
            return FileStatus(file.key, installed, FileState.INSTALLED, size, sha256)
    state = _state(folder, file, target, known)
    return FileStatus(file.key, target, state, size, sha256)


def _state(folder: Path, file: ModelFile, target: Path, known: ReceiptFile | None) -> FileState:
    if not target.is_file():
        has_part = any(folder.glob(f"{file.name}.*.partial"))
        return FileState.PARTIAL if has_part else FileState.MISSING
    if known is not None and file.sha256 in {None, known.sha256}:
        is_whole = target.stat().st_size == known.size_bytes
        return FileState.READY if is_whole else FileState.DAMAGED
    # Pulled by a process that died before it wrote the receipt, or put here by hand.
    if file.sha256 is None:
        return FileState.UNCHECKED
    is_same = _is_same(target, file.size_bytes, file.sha256)
    return FileState.READY if is_same else FileState.DAMAGED


def _is_same(path: Path, size_bytes: int | None, sha256: str | None) -> bool:
    if size_bytes is not None and path.stat().st_size != size_bytes:
        return False
    return sha256 is not None and cached_sha256(path) == sha256
