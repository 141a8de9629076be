"""A build with AMX is tried in a child process before this one trusts it."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from edge_runtime.llm import llama_cpp_build, llama_cpp_engine
from edge_runtime.llm.llama_cpp_build import (
    Build,
    amx_verdict,
    current_build,
    probe_command,
    run_probe,
)
from edge_runtime.llm.llama_cpp_engine import LlamaCppEngine
from edge_runtime.llm.llama_cpp_options import LlamaOptions
from tools.make_tiny_gguf import write_tiny_gguf

WITH_AMX = Build("0", "0", "CPU : AVX2 = 1 | AMX_INT8 = 1 | REPACK = 1", "f00d", has_gpu=False)


def dying(signal_number: int) -> list[str]:
    code = "import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
    return [sys.executable, "-c", f"{code}os.kill(os.getpid(), {signal_number})"]


def exiting(status: int) -> list[str]:
    return [sys.executable, "-c", f"raise SystemExit({status})"]


class Probes:
    """Stands in for the probe's command line and counts its runs."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.n_runs = 0

    def __call__(self, model: Path) -> list[str]:
        del model
        self.n_runs += 1
        return self.command


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny_gguf(tmp_path / "tiny.gguf")


def test_amx_is_read_from_what_the_build_says() -> None:
    assert WITH_AMX.has_amx
    assert not replace(WITH_AMX, system_info="CPU : AVX2 = 1 | AMX_INT8 = 0").has_amx


def test_a_child_that_dies_is_the_answer() -> None:
    verdict = run_probe(dying(signal.SIGSEGV))
    assert verdict.is_safe is False
    assert "SIGSEGV" in verdict.reason


def test_an_illegal_instruction_is_an_answer_too() -> None:
    assert run_probe(dying(signal.SIGILL)).is_safe is False


@pytest.mark.parametrize("command", [exiting(3), exiting(1), ["/no/such/program"]])
def test_a_child_that_fails_otherwise_says_nothing(command: list[str]) -> None:
    assert run_probe(command).is_safe is None


def test_a_child_that_hangs_says_nothing() -> None:
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert run_probe(sleeping, timeout_s=0.5).is_safe is None


def test_the_real_probe_decodes_the_given_model(tiny: Path) -> None:
    assert run_probe(probe_command(tiny)).is_safe is True


def test_the_real_probe_of_a_broken_file_says_nothing(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF")
    assert run_probe(probe_command(bad)).is_safe is None


@pytest.mark.parametrize("command", [dying(signal.SIGSEGV), exiting(0)])
def test_a_verdict_is_asked_for_once(
    monkeypatch: pytest.MonkeyPatch, tiny: Path, command: list[str]
) -> None:
    probes = Probes(command)
    monkeypatch.setattr(llama_cpp_build, "probe_command", probes)
    first = amx_verdict(WITH_AMX, tiny, "Q4_0")
    assert amx_verdict(WITH_AMX, tiny, "Q4_0") == first
    assert probes.n_runs == 1
    amx_verdict(WITH_AMX, tiny, "Q8_0")
    amx_verdict(replace(WITH_AMX, fingerprint="beef"), tiny, "Q4_0")
    assert probes.n_runs == 3


def test_no_verdict_is_not_remembered(monkeypatch: pytest.MonkeyPatch, tiny: Path) -> None:
    probes = Probes(exiting(3))
    monkeypatch.setattr(llama_cpp_build, "probe_command", probes)
    amx_verdict(WITH_AMX, tiny, "Q4_0")
    amx_verdict(WITH_AMX, tiny, "Q4_0")
    assert probes.n_runs == 2


def test_a_damaged_verdict_file_is_asked_again(monkeypatch: pytest.MonkeyPatch, tiny: Path) -> None:
    probes = Probes(exiting(0))
    monkeypatch.setattr(llama_cpp_build, "probe_command", probes)
    amx_verdict(WITH_AMX, tiny, "Q4_0")
    for path in (llama_cpp_build.resources.cache_dir() / "amx").iterdir():
        path.write_text("{", encoding="utf-8")
    assert amx_verdict(WITH_AMX, tiny, "Q4_0").is_safe is True
    assert probes.n_runs == 2


def test_an_unwritable_cache_only_costs_another_probe(
    monkeypatch: pytest.MonkeyPatch, tiny: Path, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    monkeypatch.setenv("EDGE_RUNTIME_CACHE", str(blocked / "below"))
    monkeypatch.setattr(llama_cpp_build, "probe_command", Probes(exiting(0)))
    assert amx_verdict(WITH_AMX, tiny, "Q4_0").is_safe is True


def used_repacking(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Records what the engine asks of the native loader."""
    asked: list[bool] = []
    real = llama_cpp_engine.NativeModel

    def recording(library: object, path: Path, **options: object) -> object:
        asked.append(bool(options["use_extra_bufts"]))
        return real(library, path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(llama_cpp_engine, "NativeModel", recording)
    return asked


def load_as_if_with_amx(
    monkeypatch: pytest.MonkeyPatch, tiny: Path, command: list[str], options: LlamaOptions
) -> tuple[list[bool], tuple[str, ...], int]:
    probes = Probes(command)
    asked = used_repacking(monkeypatch)
    monkeypatch.setattr(llama_cpp_build, "probe_command", probes)
    info = current_build().system_info + " AMX_INT8 = 1 |"
    with_amx = replace(current_build(), system_info=info)
    monkeypatch.setattr(llama_cpp_engine, "current_build", lambda: with_amx)
    with LlamaCppEngine.load(tiny, options) as engine, engine.open_session() as session:
        session.sync([1, 2, 3])
        return asked, engine.notices, probes.n_runs


def test_a_crashing_build_is_used_without_repacking_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    asked, notices, n_runs = load_as_if_with_amx(
        monkeypatch, tiny, dying(signal.SIGSEGV), LlamaOptions(n_threads=1)
    )
    assert (asked, n_runs) == ([False], 1)
    assert "SIGSEGV" in notices[0]


def test_a_build_that_survives_keeps_repacking(monkeypatch: pytest.MonkeyPatch, tiny: Path) -> None:
    asked, notices, _ = load_as_if_with_amx(
        monkeypatch, tiny, exiting(0), LlamaOptions(n_threads=1)
    )
    assert (asked, notices) == ([True], ())


@pytest.mark.parametrize("choice", [True, False])
def test_an_explicit_choice_needs_no_probe(
    monkeypatch: pytest.MonkeyPatch, tiny: Path, choice: bool
) -> None:
    asked, notices, n_runs = load_as_if_with_amx(
        monkeypatch,
        tiny,
        dying(signal.SIGSEGV),
        LlamaOptions(n_threads=1, use_extra_bufts=choice),
    )
    assert (asked, notices, n_runs) == ([choice], (), 0)


def test_a_build_without_amx_needs_no_probe(monkeypatch: pytest.MonkeyPatch, tiny: Path) -> None:
    probes = Probes(dying(signal.SIGSEGV))
    asked = used_repacking(monkeypatch)
    monkeypatch.setattr(llama_cpp_build, "probe_command", probes)
    plain = replace(current_build(), system_info="CPU : AVX2 = 1 |")
    monkeypatch.setattr(llama_cpp_engine, "current_build", lambda: plain)
    with LlamaCppEngine.load(tiny, LlamaOptions(n_threads=1)):
        pass
    assert (asked, probes.n_runs) == ([True], 0)
