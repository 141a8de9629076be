"""Requantise a language model into the format that prefills fastest on this device.

llama.cpp has kernels for repacked weights only in some formats: a Q4_1 file runs at a fraction of
the speed of the same weights in Q8_0 or Q4_0. Which is fastest depends on the device, and what it
costs in quality depends on the model, so both are measured before a copy is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from edge_runtime.errors import EdgeRuntimeError, ModelFileError, UsageError
from edge_runtime.models.atomic_files import disk_errors, exclusive, publish
from edge_runtime.models.digests import digest_file
from edge_runtime.models.gguf import check_gguf
from edge_runtime.models.optimize_measuring import (
    Comparison,
    OptimizeOptions,
    QualityGate,
    build_name,
    compare,
    median,
    processor_name,
    quantise,
)
from edge_runtime.models.resolving import ResolvedModel
from edge_runtime.models.store import ModelStore
from edge_runtime.models.variants import (
    Marker,
    VariantRecord,
    chosen_variant,
    read_marker,
    variants_folder,
    write_marker,
)

__all__ = ["FORMATS", "Comparison", "OptimizeOptions", "QualityGate", "optimize"]

FORMATS = ("q4_0", "q8_0")


Quantise: TypeAlias = Callable[[Path, Path, str, OptimizeOptions], None]
Compare: TypeAlias = Callable[[Path, Path, OptimizeOptions], Comparison]
Tell: TypeAlias = Callable[[str], None]


def optimize(
    resolved: ResolvedModel,
    *,
    store: ModelStore,
    formats: Sequence[str] = FORMATS,
    options: OptimizeOptions | None = None,
    force: bool = False,
    quantise: Quantise = quantise,
    compare: Compare = compare,
    tell: Tell | None = None,
) -> Marker:
    """Make copies in `formats`, keep the fastest that is good enough, and record the figures.

    A model that was optimised before on this device with this build is left as it is.

    Args:
        resolved: The original, from `resolve(..., variant="original")`.
        store: Where copies are kept.
        formats: Weight formats to try.
        options: How to measure and what to accept.
        force: Do it again in any case.
        quantise: Writes a copy; the default uses llama.cpp.
        compare: Compares copy and original; the default uses llama.cpp.
        tell: Hears what is being done, a line at a time.

    Raises:
        UsageError: Not a language model, a copy itself, or an unknown format.
        ModelLoadError: llama.cpp refused every format.
        ResourceError: Not enough memory or disk.
    """
    options = options or OptimizeOptions()
    say = tell or _ignore
    _check_request(resolved, formats)
    folder = variants_folder(store.root, resolved.sha256)
    with disk_errors(store.root):
        folder.mkdir(parents=True, exist_ok=True)
        waiting = "another process optimises this model; waiting for it"
        with exclusive(folder / ".lock", on_wait=lambda: say(waiting)):
            if not force:
                known = _known(store.root, resolved.sha256, formats, options)
                if known is not None:
                    return known
            for stale in folder.glob("*.partial"):
                stale.unlink()
            marker = _measure_all(
                _Job(resolved, folder, options, quantise, compare, say), tuple(formats)
            )
            write_marker(store.root, marker)
            for copy in folder.glob("*.gguf"):
                chosen = marker.variant(marker.chosen) if marker.chosen else None
                if chosen is None or copy.name != chosen.file:
                    copy.unlink()
    return marker


@dataclass(frozen=True, slots=True)
class _Job:
    resolved: ResolvedModel
    folder: Path
    options: OptimizeOptions
    quantise: Quantise
    compare: Compare
    say: Tell


def _measure_all(job: _Job, formats: tuple[str, ...]) -> Marker:
    header = check_gguf(job.resolved.path)
    records: list[VariantRecord] = []
    comparisons: list[Comparison] = []
    failures: list[EdgeRuntimeError] = []
    for weights in formats:
        if weights == header.weight_type.lower():
            job.say(f"{weights}: the original already has it")
            continue
        try:
            record, comparison = _measure_one(job, weights)
        except EdgeRuntimeError as err:
            job.say(f"{weights}: {err.message}")
            failures.append(err)
            continue
        records.append(record)
        comparisons.append(comparison)
        job.say(f"{weights}: {record.reason}")
    if failures and not records:
        raise failures[-1]
    usable = [record for record in records if record.passed]
    best = max(usable, key=lambda record: record.speedup, default=None)
    notes = [f"{type(err).__name__}: {err.message}" for err in failures]
    notes += [note for comparison in comparisons for note in comparison.notes]
    return Marker(
        original_name=job.resolved.name,
        original_sha256=job.resolved.sha256,
        original_weights=header.weight_type,
        original_prefill_tokens_per_s=median([v for c in comparisons for v in c.original_prefill]),
        original_decode_tokens_per_s=median([v for c in comparisons for v in c.original_decode]),
        processor=processor_name(),
        build=build_name(),
        n_threads=job.options.threads,
        max_kl_mean=job.options.gate.max_kl_mean,
        min_same_top1=job.options.gate.min_same_top1,
        n_tokens=max((c.n_tokens for c in comparisons), default=0),
        use_extra_bufts=all(c.use_extra_bufts for c in comparisons),
        notes=tuple(dict.fromkeys(notes)),
        variants=tuple(records),
        chosen=best.format if best else None,
    )


def _measure_one(job: _Job, weights: str) -> tuple[VariantRecord, Comparison]:
    target = job.folder / f"{job.resolved.path.stem}.{weights}.gguf"
    partial = target.with_name(f"{target.name}.partial")
    job.say(f"{weights}: requantising {job.resolved.path.name}")
    try:
        return _try_copy(job, weights, partial, target)
    finally:
        partial.unlink(missing_ok=True)


def _try_copy(
    job: _Job, weights: str, partial: Path, target: Path
) -> tuple[VariantRecord, Comparison]:
    job.quantise(job.resolved.path, partial, weights, job.options)
    check_gguf(partial)
    job.say(f"{weights}: comparing speed and predictions with the original")
    found = job.compare(job.resolved.path, partial, job.options)
    passed, reason = _judge(found, job.options)
    record = VariantRecord(
        format=weights,
        file=target.name,
        size_bytes=partial.stat().st_size,
        sha256=digest_file(partial),
        prefill_tokens_per_s=median(found.candidate_prefill),
        decode_tokens_per_s=median(found.candidate_decode),
        speedup=found.speedup,
        decode_speedup=found.decode_speedup,
        kl_mean=found.kl_mean if math.isfinite(found.kl_mean) else None,
        same_top1=found.same_top1,
        passed=passed,
        reason=reason,
    )
    if passed:
        publish(partial, target)
    return record, found


def _judge(found: Comparison, options: OptimizeOptions) -> tuple[bool, str]:
    gate = options.gate
    figures = (
        f"prefill x{found.speedup:.2f}, decoding x{found.decode_speedup:.2f}, "
        f"KL {found.kl_mean:.4f}, same best token {found.same_top1:.1%}"
    )
    # Not `>`: a NaN, from a copy that is broken outright, must not pass.
    if not found.kl_mean <= gate.max_kl_mean:
        return False, f"refused, KL is above {gate.max_kl_mean:g} ({figures})"
    if not found.same_top1 >= gate.min_same_top1:
        return False, f"refused, same best token below {gate.min_same_top1:.0%} ({figures})"
    if not found.speedup >= options.min_speedup:
        return False, f"not faster than the original ({figures})"
    return True, f"good enough ({figures})"


def _known(
    root: Path, sha256: str, formats: Sequence[str], options: OptimizeOptions
) -> Marker | None:
    """The marker of an earlier run, if it answers the same question and its copy is whole."""
    try:
        marker = read_marker(root, sha256)
        if marker is None:
            return None
        chosen_variant(root, sha256)
    except ModelFileError:
        return None
    done = {record.format for record in marker.variants} | {marker.original_weights.lower()}
    is_same = (
        (marker.processor, marker.build) == (processor_name(), build_name())
        and (marker.max_kl_mean, marker.min_same_top1)
        == (options.gate.max_kl_mean, options.gate.min_same_top1)
        and done.issuperset(formats)
    )
    return marker if is_same else None


def _ignore(_: str) -> None:
    return None


def _check_request(resolved: ResolvedModel, formats: Sequence[str]) -> None:
    if resolved.role != "llm":
        raise UsageError(f"{resolved.name} is not a language model and cannot be optimised")
    if resolved.variant != "original":
        raise UsageError(f"{resolved.name} is resolved to a copy; the original is needed")
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        raise UsageError(
            f"No such weight format: {', '.join(unknown) or 'none given'}",
            hint=f"one or more of {', '.join(FORMATS)}",
        )
