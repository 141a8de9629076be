"""Stored prefixes: the same tokens as without, less work, and never wrong ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edge_runtime.kv.prefix_store import PrefixStore
from edge_runtime.kv.state_blob import Plane, parse
from edge_runtime.llm.llama_cpp_context import NativeContext
from edge_runtime.llm.llama_cpp_engine import LlamaCppEngine
from edge_runtime.llm.llama_cpp_options import LlamaOptions
from tests.support.llama_models import write_recurrent_gguf, write_sliding_window_gguf
from tools.make_tiny_gguf import write_tiny_gguf

PINNED = [1 + (7 * i) % 250 for i in range(150)]  # two full blocks and a short one
TAIL = [60, 61, 62, 63]
FORMATS = {
    "f16": LlamaOptions(n_ctx=512, n_threads=1, flash_attn=False),
    "f16-flash-attention": LlamaOptions(n_ctx=512, n_threads=1, flash_attn=True),
    "q8_0": LlamaOptions(n_ctx=512, n_threads=1, type_k="q8_0", type_v="q8_0"),
    "q8_0-f16": LlamaOptions(n_ctx=512, n_threads=1, type_k="q8_0", flash_attn=False),
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def fill(path: Path, options: LlamaOptions, store: PrefixStore) -> np.ndarray:
    """Compute and store the pinned tokens; the logits after the whole prompt."""
    with (
        LlamaCppEngine.load(path, options, prefix_store=store) as engine,
        engine.open_session() as session,
    ):
        session.sync(PINNED, keep_logits=False)
        assert session.store_prefix(len(PINNED)) == len(PINNED)
        session.sync(PINNED + TAIL)
        return session.logits().copy()


@pytest.mark.parametrize("options", FORMATS.values(), ids=list(FORMATS))
def test_a_restart_takes_the_prefix_from_disk_and_answers_alike(
    tiny: Path, tmp_path: Path, options: LlamaOptions
) -> None:
    before = fill(tiny, options, PrefixStore(tmp_path))
    again = PrefixStore(tmp_path)
    with (
        LlamaCppEngine.load(tiny, options, prefix_store=again) as engine,
        engine.open_session() as session,
    ):
        report = session.sync(PINNED + TAIL)
        assert (report.n_reused, report.n_restored) == (0, len(PINNED))
        assert report.n_prefilled == len(TAIL)
        np.testing.assert_array_equal(session.logits(), before)


def test_a_prompt_that_is_stored_whole_decodes_only_its_last_token(
    tiny: Path, tmp_path: Path
) -> None:
    store = PrefixStore(tmp_path)
    fill(tiny, FORMATS["f16"], store)
    with LlamaCppEngine.load(tiny, FORMATS["f16"], prefix_store=store) as engine:
        with engine.open_session() as session:
            report = session.sync(PINNED)
            assert (report.n_restored, report.n_prefilled) == (len(PINNED) - 1, 1)
        with engine.open_session() as session:
            report = session.sync(PINNED, keep_logits=False)
            assert (report.n_restored, report.n_prefilled) == (len(PINNED), 0)


def test_a_new_document_keeps_the_prefix_without_asking_the_store(
    tiny: Path, tmp_path: Path
) -> None:
    store = PrefixStore(tmp_path)
    fill(tiny, FORMATS["f16"], store)
    with (
        LlamaCppEngine.load(tiny, FORMATS["f16"], prefix_store=store) as engine,
        engine.open_session() as session,
    ):
        session.sync(PINNED + TAIL)
        report = session.sync([*PINNED, 99, 98])
        assert (report.n_reused, report.n_restored) == (len(PINNED), 0)


def test_only_the_part_that_is_missing_counts_as_restored(tiny: Path, tmp_path: Path) -> None:
    store = PrefixStore(tmp_path)
    fill(tiny, FORMATS["f16"], store)
    with (
        LlamaCppEngine.load(tiny, FORMATS["f16"], prefix_store=store) as engine,
        engine.open_session() as session,
    ):
        session.sync([*PINNED[:70], 5])
        report = session.sync(PINNED + TAIL)
        assert report.n_reused + report.n_restored == len(PINNED)
        assert report.n_prefilled == len(TAIL)


def shuffled(state: np.ndarray) -> np.ndarray:
    """The same state with its cells in another order, as after rollbacks."""
    blob = parse(state.tobytes())
    order = np.random.default_rng(0).permutation(blob.n_cells)

    def mixed(plane: Plane) -> Plane:
        return replace(plane, data=plane.data[:, order] if plane.transposed else plane.data[order])

    changed = replace(
        blob,
        positions=blob.positions[order],
        keys=tuple(mixed(plane) for plane in blob.keys),
        values=tuple(mixed(plane) for plane in blob.values),
    )
    return np.frombuffer(changed.to_bytes(), np.uint8)


@pytest.mark.parametrize("options", FORMATS.values(), ids=list(FORMATS))
def test_cells_out_of_order_are_stored_in_order(
    tiny: Path, options: LlamaOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight, mixed = PrefixStore(None), PrefixStore(None)
    fill(tiny, options, straight)
    real = NativeContext.save_state
    monkeypatch.setattr(NativeContext, "save_state", lambda context: shuffled(real(context)))
    fill(tiny, options, mixed)
    with LlamaCppEngine.load(tiny, options, prefix_store=mixed) as engine:
        key = engine._stored_prefixes().key
    assert mixed.lookup(key, PINNED).blocks == straight.lookup(key, PINNED).blocks


def test_a_cache_that_was_rolled_back_and_refilled_is_stored_right(
    tiny: Path, tmp_path: Path
) -> None:
    store = PrefixStore(tmp_path)
    options = FORMATS["q8_0"]
    with (
        LlamaCppEngine.load(tiny, options, prefix_store=store) as engine,
        engine.open_session() as session,
    ):
        # Scored candidates take cells behind the history; rolling back leaves holes before them.
        session.sync(PINNED[:100], keep_logits=False)
        session.score([[i, i + 1, i + 2] for i in range(30)])
        session.sync(PINNED[:40], keep_logits=False)
        session.score([[i, i + 1] for i in range(9)])
        session.sync(PINNED, keep_logits=False)
        assert session.store_prefix(len(PINNED)) == len(PINNED)
        session.sync(PINNED + TAIL)
        before = session.logits().copy()
    with (
        LlamaCppEngine.load(tiny, options, prefix_store=store) as engine,
        engine.open_session() as session,
    ):
        assert session.sync(PINNED + TAIL).n_restored == len(PINNED)
        np.testing.assert_allclose(session.logits(), before, atol=0.05)


@pytest.mark.parametrize("changed", ["weights", "format", "flash-attention"])
def test_what_another_model_or_format_stored_is_not_used(
    tiny: Path, tmp_path: Path, changed: str
) -> None:
    store = PrefixStore(tmp_path / "store")
    fill(tiny, FORMATS["f16"], store)
    path, options = tiny, FORMATS["f16"]
    if changed == "weights":
        path = write_tiny_gguf(tmp_path / "other.gguf", seed=5)
    else:
        options = FORMATS["q8_0-f16" if changed == "format" else "f16-flash-attention"]
    with (
        LlamaCppEngine.load(path, options, prefix_store=store) as engine,
        engine.open_session() as session,
    ):
        assert session.sync(PINNED + TAIL).n_restored == 0


def test_a_damaged_block_is_computed_again(tiny: Path, tmp_path: Path) -> None:
    before = fill(tiny, FORMATS["f16"], PrefixStore(tmp_path))
    for file in tmp_path.rglob("*"):
        if file.is_file() and file.stat().st_size > 4096:
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 0xFF
            file.write_bytes(content)
    store = PrefixStore(tmp_path)
    with (
        LlamaCppEngine.load(tiny, FORMATS["f16"], prefix_store=store) as engine,
        engine.open_session() as session,
    ):
        report = session.sync(PINNED + TAIL)
        assert report.n_restored == 0
        assert store.stats().n_damaged > 0
        np.testing.assert_allclose(session.logits(), before, atol=0.02)


def test_a_state_that_the_library_refuses_is_computed_again(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PrefixStore(tmp_path)
    before = fill(tiny, FORMATS["f16"], store)
    with (
        LlamaCppEngine.load(tiny, FORMATS["f16"], prefix_store=store) as engine,
        engine.open_session() as session,
    ):
        load = session._context.load_state
        monkeypatch.setattr(session._context, "load_state", lambda state: load(state[:-8]))
        report = session.sync(PINNED + TAIL)
        assert report.n_restored == 0
        assert report.recomputed == "the library refused a stored prefix"
        np.testing.assert_allclose(session.logits(), before, atol=0.02)
        assert [session.next() for _ in range(3)]


def test_models_whose_state_cannot_be_cut_store_nothing(tmp_path: Path) -> None:
    for write in (write_recurrent_gguf, write_sliding_window_gguf):
        path = write(tmp_path / f"{write.__name__}.gguf")
        store = PrefixStore(None)
        with (
            LlamaCppEngine.load(path, FORMATS["f16"], prefix_store=store) as engine,
            engine.open_session() as session,
        ):
            session.sync(PINNED)
            assert session.store_prefix(len(PINNED)) == 0
            assert store.stats().n_memory_blocks == 0
