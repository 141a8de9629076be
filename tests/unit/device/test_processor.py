"""Containers' limits count, and files that are not there do not."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from edge_runtime.device.processor import (
    available_memory_bytes,
    n_compute_threads,
    n_usable_cpus,
    processor_id,
)


@pytest.mark.parametrize(("text", "expected"), [("100000 100000", 1), ("50000 100000", 1)])
def test_a_cpu_quota_bounds_the_processors(tmp_path: Path, text: str, expected: int) -> None:
    (tmp_path / "cpu.max").write_text(text, encoding="ascii")
    assert n_usable_cpus(cgroup=tmp_path) == expected


@pytest.mark.parametrize("text", ["max 100000", "", "nonsense 1", "5 0"])
def test_no_quota_or_an_odd_one_changes_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "cpu.max").write_text(text, encoding="ascii")
    assert n_usable_cpus(cgroup=tmp_path) == n_usable_cpus(cgroup=tmp_path / "absent")


def test_threads_are_at_least_one_and_not_more_than_processors() -> None:
    assert 1 <= n_compute_threads() <= n_usable_cpus()


def test_a_memory_limit_bounds_what_is_available(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000000\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("900000\n", encoding="ascii")
    assert available_memory_bytes(cgroup=tmp_path) == 100_000
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 50000\n", encoding="ascii")
    assert available_memory_bytes(cgroup=tmp_path) == 150_000


def test_no_memory_limit_gives_that_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("900000\n", encoding="ascii")
    total = psutil.virtual_memory().total
    assert 0 < available_memory_bytes(cgroup=tmp_path) <= total


def test_a_processor_has_a_stable_short_name() -> None:
    assert processor_id() == processor_id()
    assert len(processor_id()) == 16
