"""The llama.cpp library at hand: loading it, naming its build, and living with AMX.

Builds for recent Xeons contain AMX kernels that die with a signal on some virtual machines
(llama.cpp issue 20824). A crash cannot be caught, so a build with AMX decodes a few tokens in a
child process first; the verdict is cached per build, processor and weight format.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from edge_runtime import resources
from edge_runtime.device.processor import processor_id
from edge_runtime.errors import MissingDependency
from edge_runtime.llm.native_log import capture

PROBE_TIMEOUT_S = 120.0
# Exit status of the probe when the file itself does not load: says nothing about the build.
PROBE_EXIT_NOT_LOADED = 3


@dataclass(frozen=True, slots=True)
class Build:
    """One build of the native library on this processor.

    `fingerprint` changes with version, compile options and library files; `identity` is a string
    for cache keys.
    """

    binding_version: str
    library_version: str
    system_info: str
    fingerprint: str
    has_gpu: bool

    @property
    def has_amx(self) -> bool:
        """Whether AMX kernels were compiled in."""
        return "AMX_INT8 = 1" in self.system_info

    @property
    def identity(self) -> str:
        """Equal exactly when caches of two processes are interchangeable."""
        return f"llama.cpp {self.library_version} {self.fingerprint}"


@dataclass(frozen=True, slots=True)
class ProbeVerdict:
    """Outcome of trying the build in a child; `is_safe` None means that it could not be told."""

    is_safe: bool | None
    reason: str


@cache
def load_library() -> Any:
    """Import the low-level binding, with its log captured and its thread pool tamed.

    Raises:
        MissingDependency: llama-cpp-python is absent or its library does not load.
    """
    _tame_openmp()
    try:
        library: Any = importlib.import_module("llama_cpp")
    except (ImportError, OSError, RuntimeError) as err:
        raise MissingDependency(
            f"llama-cpp-python cannot be loaded: {err}",
            hint="pip install 'llama-cpp-python>=0.3.36,<0.4'",
            details={"module": "llama_cpp"},
        ) from err
    capture(library)
    library.llama_backend_init()
    return library


def _tame_openmp() -> None:
    """Set how OpenMP threads wait, unless the user did; read when the library is loaded.

    Threads that spin for long starve OCR on the same cores: a 17-token prefill was seen to take
    700 ms instead of 0.2. Threads that never spin pay a system call at each of a token's hundreds
    of barriers: two of them decoded 50 tokens/s where one decoded 110, and 150 with this spin
    count (some tens of microseconds).
    """
    policy = os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if policy.lower() == "passive":
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


@cache
def current_build() -> Build:
    """The build that `load_library` loads."""
    library = load_library()
    info = bytes(library.llama_print_system_info()).decode("utf-8", errors="replace").strip()
    version = bytes(library.llama_version()).decode("utf-8", errors="replace")
    binding = str(library.__version__)
    facts = [binding, version, info]
    folder = Path(str(library.__file__)).parent / "lib"
    if folder.is_dir():
        # Sizes tell two builds of one version apart at no cost.
        facts += [f"{p.name}:{p.stat().st_size}" for p in sorted(folder.glob("*")) if p.is_file()]
    return Build(
        binding_version=binding,
        library_version=version,
        system_info=info,
        fingerprint=hashlib.sha256("|".join(facts).encode()).hexdigest()[:16],
        has_gpu=bool(library.llama_supports_gpu_offload()),
    )


def probe_command(model: Path) -> list[str]:
    """The child process that decodes a few tokens with all kernels on."""
    return [sys.executable, "-m", "edge_runtime.llm.llama_cpp_probe", str(model)]


def run_probe(command: Sequence[str], *, timeout_s: float = PROBE_TIMEOUT_S) -> ProbeVerdict:
    """Run the child and say whether it survived."""
    try:
        done = subprocess.run(
            list(command),
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        return ProbeVerdict(None, f"the probe did not finish within {timeout_s:.0f} s")
    except OSError as err:
        return ProbeVerdict(None, f"the probe could not be started: {err}")
    if done.returncode == 0:
        return ProbeVerdict(True, "the probe decoded")
    if done.returncode < 0:
        number = -done.returncode
        known = number in set(signal.Signals)
        name = signal.Signals(number).name if known else f"signal {number}"
        return ProbeVerdict(False, f"the probe was killed by {name}")
    return ProbeVerdict(None, f"the probe ended with status {done.returncode}")


def amx_verdict(build: Build, model: Path, weight_type: str) -> ProbeVerdict:
    """Whether the AMX kernels of `build` work here: from the cache, or probed with `model`."""
    cached = _verdict_path(build, weight_type)
    verdict = _read_verdict(cached)
    if verdict is None:
        verdict = run_probe(probe_command(model))
        if verdict.is_safe is not None:
            _write_verdict(cached, verdict)
    return verdict


def _verdict_path(build: Build, weight_type: str) -> Path:
    tag = f"{build.fingerprint}|{processor_id()}|{weight_type}"
    name = hashlib.sha256(tag.encode()).hexdigest()[:24]
    return resources.cache_dir() / "amx" / f"{name}.json"


def _read_verdict(path: Path) -> ProbeVerdict | None:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        verdict = ProbeVerdict(is_safe=known["is_safe"], reason=str(known["reason"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return verdict if isinstance(verdict.is_safe, bool) else None


def _write_verdict(path: Path, verdict: ProbeVerdict) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, delete=False
        ) as file:
            json.dump(asdict(verdict), file)
        Path(file.name).replace(path)
    except OSError:
        # Without a writable cache the next start probes again, nothing worse.
        return
