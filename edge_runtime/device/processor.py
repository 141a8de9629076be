"""How many processors and how much memory this process may use, containers included."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")


def n_usable_cpus(*, cgroup: Path = _CGROUP) -> int:
    """Processors that this process may run on: affinity, cut to the container's CPU quota."""
    if hasattr(os, "sched_getaffinity"):
        n_cpus = len(os.sched_getaffinity(0))
    else:
        n_cpus = os.cpu_count() or 1
    quota = _cpu_quota(cgroup)
    if quota is not None:
        n_cpus = min(n_cpus, max(1, int(quota)))
    return max(1, n_cpus)


def n_compute_threads() -> int:
    """Threads that pay for dense arithmetic: usable processors without their hyper-threads."""
    n_physical = psutil.cpu_count(logical=False)
    n_usable = n_usable_cpus()
    return min(n_usable, n_physical) if n_physical else n_usable


def available_memory_bytes(*, cgroup: Path = _CGROUP) -> int:
    """Memory that can still be taken without swapping, cut to the container's limit."""
    available = int(psutil.virtual_memory().available)
    limit = _read_number(cgroup / "memory.max")
    used = _read_number(cgroup / "memory.current")
    if limit is not None and used is not None:
        # Cached file pages count as used but are given back under pressure.
        available = min(available, max(0, limit - used + _inactive_file_bytes(cgroup)))
    return available


def processor_id() -> str:
    """A short digest of the processor's model and features, for caches of what works on it."""
    facts = [platform.machine(), platform.processor()]
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in {"model name", "flags", "Features", "CPU part"}:
            facts.append(value.strip())
        if not line.strip():  # the first processor speaks for all
            break
    return hashlib.sha256("|".join(facts).encode()).hexdigest()[:16]


def _cpu_quota(cgroup: Path) -> float | None:
    try:
        quota, _, period = (cgroup / "cpu.max").read_text(encoding="ascii").strip().partition(" ")
        return int(quota) / int(period) if quota != "max" else None
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _read_number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max" means no limit
        return None


def _inactive_file_bytes(cgroup: Path) -> int:
    try:
        text = (cgroup / "memory.stat").read_text(encoding="ascii")
    except OSError:
        return 0
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file" and value.isdigit():
            return int(value)
    return 0
