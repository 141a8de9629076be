"""Measuring a requantised copy against its original, through the native child process."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edge_runtime.errors import ResourceError
from edge_runtime.models import native_child
from edge_runtime.models.comparison_text import TEXT
from edge_runtime.models.native_child import NativeCrash


@dataclass(frozen=True, slots=True)
class QualityGate:
    """How far a copy may be from the original: mean KL divergence in nats, and the least share of
    positions with the same best token."""

    max_kl_mean: float = 0.05
    min_same_top1: float = 0.85


@dataclass(frozen=True, slots=True)
class OptimizeOptions:
    """How to measure and what to accept.

    `use_extra_bufts` None tries repacked weights and falls back to plain ones if that crashes.
    """

    n_threads: int | None = None
    n_tokens: int = 384
    chunk_tokens: int = 64
    n_repetitions: int = 5
    min_speedup: float = 1.05
    gate: QualityGate = field(default_factory=QualityGate)
    use_extra_bufts: bool | None = None
    timeout_s: float = 3600.0

    @property
    def threads(self) -> int:
        """Threads to use: all processors this process may run on, unless told."""
        if self.n_threads is not None:
            return self.n_threads
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """A copy against its original; speeds are tokens per second, one value per repetition."""

    n_tokens: int
    original_prefill: tuple[float, ...]
    candidate_prefill: tuple[float, ...]
    original_decode: tuple[float, ...]
    candidate_decode: tuple[float, ...]
    kl_mean: float
    same_top1: float
    use_extra_bufts: bool = True
    notes: tuple[str, ...] = ()

    @property
    def speedup(self) -> float:
        """Median of the paired ratios of prefill speed."""
        return _paired(self.candidate_prefill, self.original_prefill)

    @property
    def decode_speedup(self) -> float:
        """Median of the paired ratios of decoding speed."""
        return _paired(self.candidate_decode, self.original_decode)


def quantise(source: Path, target: Path, weights: str, options: OptimizeOptions) -> None:
    """Write a copy of `source` with its weights in another format, in a child process."""
    request = {
        "action": "quantise",
        "source": str(source),
        "target": str(target),
        "format": weights,
        "n_threads": options.threads,
    }
    native_child.ask(request, timeout_s=options.timeout_s)


def compare(original: Path, candidate: Path, options: OptimizeOptions) -> Comparison:
    """Measure speed and likeness in a child process that holds both models."""
    _check_memory(original, candidate)
    request = {
        "action": "compare",
        "original": str(original),
        "candidate": str(candidate),
        "n_threads": options.threads,
        "n_tokens": options.n_tokens,
        "chunk_tokens": options.chunk_tokens,
        "n_repetitions": options.n_repetitions,
        "use_extra_bufts": options.use_extra_bufts is not False,
        "text": TEXT,
    }
    notes: tuple[str, ...] = ()
    try:
        answer = native_child.ask(request, timeout_s=options.timeout_s)
    except NativeCrash as err:
        if options.use_extra_bufts is not None:
            raise
        notes = (f"{err.message}; measured again without repacked weights",)
        request["use_extra_bufts"] = False
        answer = native_child.ask(request, timeout_s=options.timeout_s)
    return Comparison(
        n_tokens=answer["n_tokens"],
        original_prefill=tuple(answer["original_prefill"]),
        candidate_prefill=tuple(answer["candidate_prefill"]),
        original_decode=tuple(answer["original_decode"]),
        candidate_decode=tuple(answer["candidate_decode"]),
        kl_mean=answer["kl_mean"],
        same_top1=answer["same_top1"],
        use_extra_bufts=bool(request["use_extra_bufts"]),
        notes=notes,
    )


def _check_memory(*models: Path) -> None:
    """Both models are in memory at once, and repacked weights are not shared with the file."""
    import psutil

    needed = sum(path.stat().st_size for path in models) * 5 // 4 + 256 * 2**20
    available = psutil.virtual_memory().available
    if needed > available:
        raise ResourceError(
            f"The comparison needs about {needed >> 20} MB of memory and {available >> 20} MB are "
            "available",
            hint="close other programs, or optimise a smaller model",
            details={"needed_bytes": needed, "available_bytes": available},
        )


def processor_name() -> str:
    """What tells one device from another, as far as speed goes."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{platform.machine()} {names[0] if names else platform.processor()}".strip()


def build_name() -> str:
    """Version of llama-cpp-python and a mark of its library files; nothing is loaded."""
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or not spec.submodule_search_locations:
        return "none"
    folder = Path(next(iter(spec.submodule_search_locations))) / "lib"
    sizes = [f"{p.name}:{p.stat().st_size}" for p in sorted(folder.glob("*")) if p.is_file()]
    mark = hashlib.sha256("|".join(sizes).encode()).hexdigest()[:12]
    return f"{importlib.metadata.version('llama-cpp-python')}+{mark}"


def _paired(upper: Sequence[float], lower: Sequence[float]) -> float:
    return median([a / b for a, b in zip(upper, lower, strict=True)])


def median(values: Sequence[float]) -> float:
    """The median, 0 of nothing."""
    return statistics.median(values) if values else 0.0
