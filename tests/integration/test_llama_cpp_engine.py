"""Loading, refusing and freeing with the real llama.cpp."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import gguf
import numpy as np
import psutil
import pytest

from edge_runtime.errors import (
    Cancelled,
    CapabilityError,
    ModelFileError,
    ModelLoadError,
    ModelNotFound,
    ResourceError,
    SessionPoisoned,
    StageError,
)
from edge_runtime.llm import llama_cpp_engine
from edge_runtime.llm.engine import SessionOptions
from edge_runtime.llm.llama_cpp_engine import LlamaCppEngine
from edge_runtime.llm.llama_cpp_options import LlamaOptions
from edge_runtime.llm.open_engine import open_engine
from tests.support.llama_models import write_recurrent_gguf, write_sentencepiece_gguf
from tools.make_tiny_gguf import write_tiny_gguf

ONE_THREAD = LlamaOptions(n_ctx=512, n_threads=1, chunk_tokens=64)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def in_child(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter, because a crash of native code takes everything along."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=Path(__file__).resolve().parents[2],
    )


# --- files ---


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound):
        LlamaCppEngine.load(tmp_path / "none.gguf")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GGUF",
        b"not a model at all, but longer than a header would be" * 4,
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n",
    ],
    ids=["empty", "magic-only", "noise", "lfs-pointer"],
)
def test_a_damaged_file_never_reaches_native_code(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable() -> None:
        raise AssertionError("native code was reached")

    monkeypatch.setattr(llama_cpp_engine, "load_library", unreachable)
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        LlamaCppEngine.load(path)


def test_a_truncated_file_is_refused(tmp_path: Path, tiny: Path) -> None:
    path = tmp_path / "half.gguf"
    path.write_bytes(tiny.read_bytes()[: tiny.stat().st_size // 2])
    with pytest.raises(ModelFileError):
        LlamaCppEngine.load(path)


def test_an_unknown_architecture_quotes_the_native_log(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "odd.gguf", "no-such-architecture")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_head_count(1)
    writer.add_tensor("token_embd.weight", np.zeros((4, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelLoadError, match="no-such-architecture") as caught:
        LlamaCppEngine.load(tmp_path / "odd.gguf")
    assert "unknown model architecture" in caught.value.details["native_log"]


def test_other_formats_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match=r"model\.onnx"):
        open_engine(tmp_path / "model.onnx")


# --- options ---


def test_quantised_values_without_flash_attention_say_why(tiny: Path) -> None:
    with pytest.raises(CapabilityError, match="need flash attention"):
        LlamaCppEngine.load(tiny, LlamaOptions(type_v="q8_0", flash_attn=False))


def test_quantised_values_turn_flash_attention_on(tiny: Path) -> None:
    with LlamaCppEngine.load(tiny, LlamaOptions(type_v="q8_0", n_threads=1)) as engine:
        assert engine.capabilities.flash_attn


def test_quantised_keys_alone_need_no_flash_attention(tiny: Path) -> None:
    options = LlamaOptions(type_k="q8_0", flash_attn=False, n_ctx=256, n_threads=1)
    with LlamaCppEngine.load(tiny, options) as engine, engine.open_session() as session:
        session.sync([1, 2, 3])
        assert not engine.capabilities.flash_attn


def test_a_head_that_blocks_do_not_divide_is_refused(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "odd.gguf", head_dim=48)
    with pytest.raises(CapabilityError, match="48"):
        LlamaCppEngine.load(path, LlamaOptions(type_k="q8_0"))
    with LlamaCppEngine.load(path, ONE_THREAD) as engine, engine.open_session() as session:
        assert session.sync([1, 2]).n_prefilled == 2


def test_what_llama_cpp_refuses_itself_quotes_its_log(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_rule(options: LlamaOptions, *, has_gpu: bool) -> bool:
        del options, has_gpu
        return False

    monkeypatch.setattr(llama_cpp_engine, "decide_flash_attn", no_rule)
    with (
        LlamaCppEngine.load(tiny, LlamaOptions(type_v="q8_0", n_threads=1)) as engine,
        pytest.raises(CapabilityError, match="flash"),
    ):
        engine.open_session()


def test_a_context_beyond_memory_is_refused_with_what_would_fit(tiny: Path) -> None:
    with (
        LlamaCppEngine.load(tiny, LlamaOptions(n_ctx=2**31 - 1024, n_threads=1)) as engine,
        pytest.raises(ResourceError) as caught,
    ):
        engine.open_session()
    assert "n_ctx=" in (caught.value.hint or "")


def test_the_default_context_is_bounded_by_training(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "short.gguf", n_ctx_train=512)
    with LlamaCppEngine.load(path, LlamaOptions(n_threads=1)) as engine:
        assert engine.capabilities.n_ctx == 512
        with engine.open_session() as session:
            assert session.n_ctx == 512


def test_a_session_may_have_another_context_and_chunk(tiny: Path) -> None:
    with (
        LlamaCppEngine.load(tiny, ONE_THREAD) as engine,
        engine.open_session(SessionOptions(n_ctx=1024, chunk_tokens=256)) as session,
    ):
        assert session.n_ctx == 1024
        assert session.sync([1] * 1024).n_prefilled == 1024


# --- models that cannot roll back, other tokenizers, broken weights ---


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recurrent_gguf(tmp_path_factory.mktemp("gguf") / "recurrent.gguf")


def test_a_recurrent_model_recomputes_and_says_so(recurrent: Path) -> None:
    with LlamaCppEngine.load(recurrent, ONE_THREAD) as engine:
        assert not engine.capabilities.can_rollback
        with engine.open_session() as session, engine.open_session() as fresh:
            session.sync([1, 2, 3, 4, 5])
            assert session.sync([1, 2, 3, 4, 5, 6]).n_reused == 5
            report = session.sync([1, 2, 3, 9])
            assert report.recomputed == "this model cannot roll back"
            assert (report.n_reused, report.n_prefilled) == (0, 4)
            fresh.sync([1, 2, 3, 9])
            np.testing.assert_allclose(session.logits(), fresh.logits(), atol=1e-3)
            session.truncate(2)
            fresh.sync([1, 2])
            np.testing.assert_allclose(session.logits(), fresh.logits(), atol=1e-3)


def test_a_recurrent_model_scores_one_by_one_and_is_unchanged(recurrent: Path) -> None:
    with LlamaCppEngine.load(recurrent, ONE_THREAD) as engine, engine.open_session() as session:
        session.sync([1, 2, 3])
        before = session.logits().copy()
        scored = session.score([[7, 8, 9], [7], []])
        np.testing.assert_array_equal(session.logits(), before)
        values: list[float] = []
        for token in (7, 8, 9):
            row = session.logits().astype(np.float64)
            values.append(float(row[token] - row.max() - np.log(np.exp(row - row.max()).sum())))
            session.append([token])
        np.testing.assert_allclose(scored[0].token_logprobs, values, atol=1e-3)
        assert scored[1].token_logprobs[0] == scored[0].token_logprobs[0]


def test_a_recurrent_model_restores_snapshots(recurrent: Path) -> None:
    with LlamaCppEngine.load(recurrent, ONE_THREAD) as engine, engine.open_session() as session:
        session.sync([1, 2, 3])
        snapshot = session.snapshot()
        first = [session.next() for _ in range(3)]
        session.restore(snapshot)
        assert [session.next() for _ in range(3)] == first


def test_no_tokenizer_adds_a_space_of_its_own(tmp_path: Path) -> None:
    path = write_sentencepiece_gguf(tmp_path / "spm.gguf")
    with LlamaCppEngine.load(path, LlamaOptions(n_threads=1)) as engine:
        assert engine.bos == 1
        assert engine.detokenize(engine.tokenize("hi")) == b"hi"
        assert engine.detokenize(engine.tokenize(" hi")) == b" hi"
        assert len(engine.tokenize(" hi")) == 1
        parts = [*engine.tokenize("hi"), *engine.tokenize("hi")]
        assert engine.detokenize(parts) == b"hihi"


def test_markers_that_a_file_declares_as_ordinary_stay_text(tmp_path: Path) -> None:
    path = write_sentencepiece_gguf(tmp_path / "spm.gguf", user_defined=("<|user|>", "[INST]"))
    with LlamaCppEngine.load(path, LlamaOptions(n_threads=1)) as engine:
        markers = {engine.tokenize(text, special=True)[0] for text in ("<|user|>", "[INST]")}
        for text in ("<|user|>", "hi<|user|>hi", "[INST][INST]", "<<|user|>", "a < b [1]"):
            tokens = engine.tokenize(text)
            assert markers.isdisjoint(tokens)
            assert engine.detokenize(tokens) == text.encode()


def test_nan_scores_are_an_error_and_poison(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "nan.gguf")
    content = bytearray(path.read_bytes())
    # The last tensor's values end the file: a NaN there reaches every score.
    content[-4096:] = np.full(1024, np.nan, np.float32).tobytes()
    path.write_bytes(content)
    with LlamaCppEngine.load(path, ONE_THREAD) as engine, engine.open_session() as session:
        with pytest.raises(StageError, match="NaN"):
            session.sync([1, 2, 3])
        with pytest.raises(SessionPoisoned):
            session.logits()
        session.reset()
        assert list(session.tokens) == []


# --- cancelling inside native code ---


def test_a_running_chunk_is_abandoned_and_what_is_held_is_valid(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "slow.gguf", n_heads=8, n_layers=8)
    options = LlamaOptions(n_ctx=4096, n_threads=1, chunk_tokens=2048)
    caller = threading.get_ident()
    with LlamaCppEngine.load(path, options) as engine, engine.open_session() as session:
        tokens = [1 + i % 200 for i in range(2048)]
        with pytest.raises(Cancelled, match="inside a chunk"):
            # Asked by the caller between chunks it says no; only a running chunk hears the yes.
            session.sync(tokens, cancel=lambda: threading.get_ident() != caller)
        held = list(session.tokens)
        assert len(held) < len(tokens)
        assert held == tokens[: len(held)]
        report = session.sync(tokens[:100])
        assert report.n_reused + report.n_prefilled == 100


def test_a_recurrent_model_forgets_when_a_chunk_is_abandoned(
    recurrent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LlamaCppEngine.load(recurrent, ONE_THREAD) as engine, engine.open_session() as session:
        session.sync([1, 2, 3])
        # The flag that a watching thread would set in the middle of a chunk.
        monkeypatch.setattr(session._context, "request_abort", lambda *, on: None)
        session._context._abort[0] = b"\x01"
        with pytest.raises(Cancelled):
            session.sync([1, 2, 3, 4, 5])
        assert list(session.tokens) == []
        session._context._abort[0] = b"\x00"
        assert session.sync([1, 2, 3, 4, 5]).n_prefilled == 5


# --- memory ---


def test_many_sessions_leave_no_memory_behind(tiny: Path) -> None:
    process = psutil.Process()
    with LlamaCppEngine.load(tiny, ONE_THREAD) as engine:

        def use_sessions(n: int) -> int:
            for _ in range(n):
                with engine.open_session() as session:
                    session.sync([1, 2, 3] * 20)
                    session.score([[4, 5], [6]])
                    session.next()
            gc.collect()
            return process.memory_info().rss

        warm = use_sessions(40)
        after = use_sessions(200)
    # One leaked session would be about 2 MB (cache, batch, compute buffers).
    assert after - warm < 20 << 20


def test_many_engines_leave_no_memory_behind(tiny: Path) -> None:
    process = psutil.Process()

    def use_engines(n: int) -> int:
        for _ in range(n):
            with LlamaCppEngine.load(tiny, ONE_THREAD) as engine:
                engine.open_session().sync([1, 2, 3])
        gc.collect()
        return process.memory_info().rss

    warm = use_engines(10)
    after = use_engines(60)
    assert after - warm < 20 << 20


def test_closing_frees_at_once(tiny: Path) -> None:
    engine = LlamaCppEngine.load(tiny, ONE_THREAD)
    session, other = engine.open_session(), engine.open_session()
    session.close()
    assert not session._context._free.alive
    engine.close()
    assert not other._context._free.alive
    assert not engine._model.is_open


def test_a_dropped_session_frees_its_context(tiny: Path) -> None:
    with LlamaCppEngine.load(tiny, ONE_THREAD) as engine:
        session = engine.open_session()
        session.sync([1, 2, 3])
        free = session._context._free
        assert free.alive
        del session
        gc.collect()
        assert not free.alive


def test_weights_beyond_memory_are_refused(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_cpp_engine, "available_memory_bytes", lambda: 1000)
    with pytest.raises(ResourceError, match="weights"):
        LlamaCppEngine.load(tiny, ONE_THREAD)


def test_a_context_beyond_training_is_said(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "short.gguf", n_ctx_train=256)
    with LlamaCppEngine.load(path, LlamaOptions(n_ctx=512, n_threads=1)) as engine:
        assert "trained on 256" in engine.notices[0]


# --- whole processes ---


def test_a_process_that_closes_nothing_ends_quietly(tiny: Path) -> None:
    done = in_child(
        """
        import sys
        from edge_runtime.llm.llama_cpp_engine import LlamaCppEngine
        from edge_runtime.llm.llama_cpp_options import LlamaOptions
        engine = LlamaCppEngine.load(sys.argv[1], LlamaOptions(n_threads=1))
        session = engine.open_session()
        session.sync([1, 2, 3])
        print(session.next())
        """,
        str(tiny),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.strip().isdigit()


@pytest.mark.parametrize("head_dim", [32, 96])
def test_heads_that_crash_a_cache_shift_work_quantised(tmp_path: Path, head_dim: int) -> None:
    path = write_tiny_gguf(tmp_path / "narrow.gguf", head_dim=head_dim)
    done = in_child(
        """
        import sys
        from edge_runtime.llm.llama_cpp_engine import LlamaCppEngine
        from edge_runtime.llm.llama_cpp_options import LlamaOptions
        options = LlamaOptions(n_ctx=256, n_threads=1, type_k="q4_0", type_v="q4_0")
        with LlamaCppEngine.load(sys.argv[1], options) as engine, engine.open_session() as session:
            session.sync(list(range(60)))
            session.sync(list(range(30)) + [200, 201])
            session.score([[1, 2, 3], [1, 2, 4], [9]])
            snapshot = session.snapshot()
            session.truncate(10)
            session.restore(snapshot)
            print([session.next() for _ in range(4)])
        """,
        str(path),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[")


def test_the_thread_pool_spins_briefly_unless_the_user_said_otherwise() -> None:
    code = """
        import os, sys
        for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
            os.environ.pop(name, None)
        for assignment in sys.argv[1:]:
            name, value = assignment.split("=")
            os.environ[name] = value
        from edge_runtime.llm.llama_cpp_build import load_library
        load_library()
        print(os.environ["OMP_WAIT_POLICY"], os.environ.get("GOMP_SPINCOUNT"))
        """
    assert in_child(code).stdout.split() == ["passive", "1000"]
    assert in_child(code, "OMP_WAIT_POLICY=active").stdout.split() == ["active", "None"]
    chosen = in_child(code, "OMP_WAIT_POLICY=PASSIVE", "GOMP_SPINCOUNT=5")
    assert chosen.stdout.split() == ["PASSIVE", "5"]


def test_a_tiny_context_is_refused_before_native_code_aborts(tiny: Path) -> None:
    code = """
        import sys
        from edge_runtime.errors import UsageError
        from edge_runtime.llm.engine import SessionOptions
        from edge_runtime.llm.llama_cpp_engine import LlamaCppEngine
        from edge_runtime.llm.llama_cpp_options import LlamaOptions
        refused = 0
        for n_ctx in (1, 2, 17, 255):
            try:
                LlamaOptions(n_ctx=n_ctx)
            except UsageError:
                refused += 1
            with LlamaCppEngine.load(sys.argv[1]) as engine:
                try:
                    engine.open_session(SessionOptions(n_ctx=n_ctx))
                except UsageError:
                    refused += 1
        print(refused)
    """
    done = in_child(code, str(tiny))
    assert (done.returncode, done.stdout.strip()) == (0, "8"), done.stderr[-500:]
