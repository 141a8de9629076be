"""Which copy is chosen, what is kept, and that the native part may crash."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from edge_runtime.errors import DeadlineExceeded, ModelLoadError, ResourceError, UsageError
from edge_runtime.models import native_child, optimize_measuring
from edge_runtime.models.comparison_text import TEXT
from edge_runtime.models.gguf import check_gguf
from edge_runtime.models.native_child import NativeCrash, ask
from edge_runtime.models.optimize import (
    Comparison,
    OptimizeOptions,
    QualityGate,
    optimize,
)
from edge_runtime.models.optimize_measuring import compare, quantise
from edge_runtime.models.resolving import ResolvedModel
from edge_runtime.models.store import ModelStore, resolve
from edge_runtime.models.variants import read_marker, variants_folder
from tests.unit.models.serving import catalogue

OPTIONS = OptimizeOptions(n_threads=1, n_tokens=48, chunk_tokens=16, n_repetitions=3, timeout_s=120)


def figures(speed: float = 2.0, kl: float = 0.001, top1: float = 0.99) -> Comparison:
    base = (100.0, 90.0, 110.0)
    return Comparison(
        n_tokens=48,
        original_prefill=base,
        candidate_prefill=tuple(speed * value for value in base),
        original_decode=base,
        candidate_decode=base,
        kl_mean=kl,
        same_top1=top1,
    )


class Bench:
    """Stands for llama.cpp: copies instead of requantising, and states figures by format."""

    def __init__(self, **found: Comparison | BaseException) -> None:
        self.found = found
        self.calls: list[str] = []

    def quantise(self, source: Path, target: Path, weights: str, _: OptimizeOptions) -> None:
        self.calls.append(weights)
        shutil.copy(source, target)

    def compare(self, _: Path, candidate: Path, __: OptimizeOptions) -> Comparison:
        found = self.found[candidate.name.split(".")[1]]
        if isinstance(found, BaseException):
            raise found
        return found


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store", catalogue=catalogue())


@pytest.fixture
def original(tiny_gguf: Path, store: ModelStore) -> ResolvedModel:
    return resolve(tiny_gguf, role="llm", variant="original", store=store)


def run(original: ResolvedModel, store: ModelStore, bench: Bench, **more: object):
    return optimize(
        original,
        store=store,
        quantise=bench.quantise,
        compare=bench.compare,
        **{"options": OPTIONS, **more},
    )


def copies(original: ResolvedModel, store: ModelStore) -> list[str]:
    folder = variants_folder(store.root, original.sha256)
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))


@pytest.mark.parametrize(
    ("q4", "q8", "chosen"),
    [
        (figures(3.0), figures(2.0), "q4_0"),
        (figures(2.0), figures(3.0), "q8_0"),
        (figures(3.0, kl=0.2), figures(2.0), "q8_0"),
        (figures(3.0, top1=0.5), figures(2.0), "q8_0"),
        (figures(3.0, kl=float("nan")), figures(2.0), "q8_0"),
        (figures(1.01), figures(0.5), None),
        (figures(3.0, kl=9.0), figures(2.0, kl=9.0), None),
    ],
)
def test_fastest_that_is_good_enough(
    original: ResolvedModel, store: ModelStore, q4: Comparison, q8: Comparison, chosen: str | None
) -> None:
    marker = run(original, store, Bench(q4_0=q4, q8_0=q8))
    assert marker.chosen == chosen
    assert [v.format for v in marker.variants] == ["q4_0", "q8_0"]
    assert read_marker(store.root, original.sha256) is not None
    kept = [f"tiny.{chosen}.gguf"] if chosen else []
    assert copies(original, store) == ["optimized.json", *kept]
    assert resolve(original.path, role="llm", store=store).variant == (chosen or "original")
    assert original.path.is_file()


def test_speedup_is_the_median_of_pairs() -> None:
    found = figures()
    noisy = Comparison(
        **{
            **{name: getattr(found, name) for name in found.__slots__},
            "original_prefill": (100.0, 50.0, 100.0),
            "candidate_prefill": (200.0, 100.0, 20.0),
        }
    )
    assert noisy.speedup == 2.0


def test_second_run_changes_nothing(original: ResolvedModel, store: ModelStore) -> None:
    bench = Bench(q4_0=figures(3.0), q8_0=figures(2.0))
    first = run(original, store, bench)
    assert run(original, store, bench) == first
    assert bench.calls == ["q4_0", "q8_0"]
    run(original, store, bench, force=True)
    assert bench.calls == ["q4_0", "q8_0"] * 2


def test_damaged_copy_is_made_again(original: ResolvedModel, store: ModelStore) -> None:
    bench = Bench(q4_0=figures(3.0), q8_0=figures(2.0))
    run(original, store, bench)
    copy = resolve(original.path, role="llm", store=store).path
    copy.write_bytes(b"damaged")
    run(original, store, bench)
    assert resolve(original.path, role="llm", variant="optimized", store=store).path == copy


@pytest.mark.parametrize("what", ["processor_name", "build_name"])
def test_other_device_or_build_is_measured_again(
    original: ResolvedModel, store: ModelStore, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    bench = Bench(q4_0=figures(3.0), q8_0=figures(2.0))
    run(original, store, bench)
    monkeypatch.setattr(f"edge_runtime.models.optimize.{what}", lambda: "another")
    run(original, store, bench)
    assert len(bench.calls) == 4


def test_stricter_gate_is_measured_again(original: ResolvedModel, store: ModelStore) -> None:
    bench = Bench(q4_0=figures(3.0, kl=0.04), q8_0=figures(2.0))
    assert run(original, store, bench).chosen == "q4_0"
    strict = OptimizeOptions(n_threads=1, gate=QualityGate(max_kl_mean=0.01))
    assert run(original, store, bench, options=strict).chosen == "q8_0"


def test_one_format_that_fails_is_noted(original: ResolvedModel, store: ModelStore) -> None:
    crash = NativeCrash("llama.cpp crashed (SIGSEGV)")
    marker = run(original, store, Bench(q4_0=crash, q8_0=figures(2.0)))
    assert marker.chosen == "q8_0"
    assert marker.notes == ("NativeCrash: llama.cpp crashed (SIGSEGV)",)
    assert copies(original, store) == ["optimized.json", "tiny.q8_0.gguf"]


def test_all_formats_that_fail_are_an_error(original: ResolvedModel, store: ModelStore) -> None:
    crash = NativeCrash("llama.cpp crashed (SIGILL)")
    with pytest.raises(NativeCrash, match="SIGILL"):
        run(original, store, Bench(q4_0=crash, q8_0=crash))
    assert copies(original, store) == []
    assert resolve(original.path, role="llm", store=store).notes == ()


def test_interrupted_run_leaves_no_half_copy(original: ResolvedModel, store: ModelStore) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(original, store, Bench(q4_0=KeyboardInterrupt()))
    assert copies(original, store) == []


def test_copy_that_is_no_model_is_refused(original: ResolvedModel, store: ModelStore) -> None:
    bench = Bench(q8_0=figures())

    def cut(source: Path, target: Path, *_: object) -> None:
        target.write_bytes(source.read_bytes()[:-64])

    with pytest.raises(Exception, match="64 bytes are missing"):
        optimize(
            original,
            store=store,
            formats=["q8_0"],
            options=OPTIONS,
            quantise=cut,
            compare=bench.compare,
        )
    assert copies(original, store) == []


def test_requests_that_make_no_sense(original: ResolvedModel, store: ModelStore) -> None:
    bench = Bench(q4_0=figures(), q8_0=figures())
    with pytest.raises(UsageError, match="No such weight format: q9_9"):
        run(original, store, bench, formats=["q9_9"])
    with pytest.raises(UsageError, match="none given"):
        run(original, store, bench, formats=[])
    run(original, store, bench)
    copy = resolve(original.path, role="llm", store=store)
    with pytest.raises(UsageError, match="resolved to a copy"):
        run(copy, store, bench)


def test_memory_is_checked_first(original: ResolvedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    memory = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory._replace(available=2**20))
    with pytest.raises(ResourceError, match="MB are available"):
        compare(original.path, original.path, OPTIONS)


def test_llama_cpp_requantises_and_compares(tiny_gguf: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.gguf"
    quantise(tiny_gguf, copy, "q8_0", OPTIONS)
    assert check_gguf(copy).weight_type == "Q8_0"
    found = compare(tiny_gguf, copy, OPTIONS)
    assert found.n_tokens == 48
    assert len(found.original_prefill) == len(found.candidate_decode) == 3
    assert min(found.original_prefill + found.candidate_prefill + found.candidate_decode) > 0
    assert 0 < found.kl_mean < 0.5
    assert 0.5 < found.same_top1 <= 1


def test_llama_cpp_finds_no_difference_to_itself(tiny_gguf: Path) -> None:
    found = compare(tiny_gguf, tiny_gguf, OPTIONS)
    assert found.kl_mean == pytest.approx(0.0, abs=1e-9)
    assert found.same_top1 == 1.0


def test_llama_cpp_sees_another_model_as_different(tiny_gguf: Path, tmp_path: Path) -> None:
    from tools.make_tiny_gguf import write_tiny_gguf

    found = compare(tiny_gguf, write_tiny_gguf(tmp_path / "o.gguf", seed=5), OPTIONS)
    assert found.kl_mean > 1
    assert found.same_top1 < 0.5


def test_whole_run_with_llama_cpp(original: ResolvedModel, store: ModelStore) -> None:
    # Whichever is faster here: the gate and the least speed-up are opened for both.
    options = OptimizeOptions(
        n_threads=1,
        n_tokens=48,
        chunk_tokens=16,
        n_repetitions=2,
        min_speedup=0.0,
        gate=QualityGate(max_kl_mean=100.0, min_same_top1=0.0),
    )
    said: list[str] = []
    marker = optimize(original, store=store, options=options, tell=said.append)
    assert marker.chosen in {"q4_0", "q8_0"}
    found = resolve(original.path, role="llm", variant="optimized", store=store)
    assert check_gguf(found.path).architecture == "llama"
    assert any("requantising" in line for line in said)


def test_original_that_has_the_format_already(tmp_path: Path, store: ModelStore) -> None:
    from tools.make_tiny_gguf import write_tiny_gguf

    copy = tmp_path / "q.gguf"
    quantise(write_tiny_gguf(tmp_path / "m.gguf"), copy, "q8_0", OPTIONS)
    q8 = resolve(copy, role="llm", variant="original", store=store)
    bench = Bench(q4_0=figures(3.0))
    marker = run(q8, store, bench)
    assert bench.calls == ["q4_0"]
    assert marker.original_weights == "Q8_0"
    run(q8, store, bench)
    assert bench.calls == ["q4_0"]


def test_file_that_llama_cpp_refuses_quotes_its_log(tmp_path: Path, tiny_bytes: bytes) -> None:
    broken = tmp_path / "m.gguf"
    broken.write_bytes(tiny_bytes.replace(b"blk.1.attn_q.weight", b"blk.1.attn_X.weight"))
    with pytest.raises(ModelLoadError, match="cannot be optimised") as caught:
        compare(broken, broken, OPTIONS)
    assert "attn_q" in caught.value.details["native_log"]


def in_python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


CRASH = "import os, signal, sys; sys.stderr.write('ggml: boom\\n'); os.kill(os.getpid(), {})"


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGILL", "SIGABRT"])
def test_native_crash_is_an_error_with_its_log(name: str) -> None:
    code = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0));"
    command = in_python(code + CRASH.format(f"signal.{name}"))
    with pytest.raises(NativeCrash, match=name) as caught:
        ask({"action": "compare"}, timeout_s=60, command=command)
    assert caught.value.details["native_log"] == "ggml: boom"
    assert "AMX" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("code", "match"),
    [
        ("raise SystemExit(3)", "status 3"),
        ("print('not json'); raise SystemExit(1)", "status 1"),
        ('print(\'{"error": "no"}\')', "optimised: no"),
        ("print('[1]'); raise SystemExit(1)", "status 1"),
    ],
)
def test_worker_that_misbehaves(code: str, match: str) -> None:
    with pytest.raises(ModelLoadError, match=match):
        ask({"action": "compare"}, timeout_s=60, command=in_python(code))


def test_worker_that_hangs() -> None:
    command = in_python("import time; time.sleep(60)")
    with pytest.raises(DeadlineExceeded, match="compare took longer"):
        ask({"action": "compare"}, timeout_s=0.3, command=command)


@pytest.fixture
def crashing_repack(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A build that dies when weights are repacked, as AMX builds do on some machines."""
    tried: list[bool] = []
    real: Callable[..., dict[str, object]] = native_child.ask

    def crash_with_repack(request: dict[str, object], **more: object) -> dict[str, object]:
        tried.append(bool(request["use_extra_bufts"]))
        if request["use_extra_bufts"]:
            raise NativeCrash("llama.cpp crashed (SIGSEGV) while it tried to compare the model")
        return real(request, **more)

    monkeypatch.setattr(optimize_measuring.native_child, "ask", crash_with_repack)
    return tried


def test_crash_with_repacked_weights_is_tried_without(
    tiny_gguf: Path, crashing_repack: list[bool]
) -> None:
    found = compare(tiny_gguf, tiny_gguf, OPTIONS)
    assert crashing_repack == [True, False]
    assert not found.use_extra_bufts
    assert "without repacked weights" in found.notes[0]


def test_explicit_setting_is_not_changed(tiny_gguf: Path, crashing_repack: list[bool]) -> None:
    insists = OptimizeOptions(n_threads=1, n_tokens=16, use_extra_bufts=True)
    with pytest.raises(NativeCrash):
        compare(tiny_gguf, tiny_gguf, insists)
    declines = OptimizeOptions(
        n_threads=1, n_tokens=16, chunk_tokens=16, n_repetitions=1, use_extra_bufts=False
    )
    assert compare(tiny_gguf, tiny_gguf, declines).notes == ()
    assert crashing_repack == [True, False]


def test_text_of_the_comparison_is_long_enough_and_plain() -> None:
    assert len(TEXT.split()) > 250
    assert TEXT.isascii()
