"""States of the real llama.cpp: cut in two, joined, restored, and compared bit for bit."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge_runtime.errors import CapabilityError
from edge_runtime.kv.state_blob import join, parse
from tools.make_tiny_gguf import write_tiny_gguf

llama = pytest.importorskip("llama_cpp")

F16, Q8_0 = 1, 8
# (type of K, type of V, flash attention): a quantised V needs flash attention.
FORMATS = [(F16, F16, 1), (F16, F16, 0), (Q8_0, Q8_0, 1), (Q8_0, F16, 0)]


class Model:
    """The bare library: one model, no engine of ours in between."""

    def __init__(self, path: Path) -> None:
        params = llama.llama_model_default_params()
        # Builds with AMX crash on some virtual machines; plain buffers avoid those kernels.
        params.use_extra_bufts = False
        self.handle = llama.llama_model_load_from_file(os.fsencode(path), params)
        assert self.handle
        self.n_vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.handle))

    @contextmanager
    def context(self, type_k: int, type_v: int, flash: int) -> Iterator[Context]:
        params = llama.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = 1024, 512, 512
        params.type_k, params.type_v, params.flash_attn_type = type_k, type_v, flash
        params.kv_unified, params.n_seq_max = True, 2
        params.n_threads = params.n_threads_batch = 1
        handle = llama.llama_init_from_model(self.handle, params)
        assert handle
        try:
            yield Context(handle, self.n_vocab)
        finally:
            llama.llama_free(handle)


class Context:
    def __init__(self, handle: Any, n_vocab: int) -> None:
        self.handle = handle
        self.n_vocab = n_vocab

    def decode(self, tokens: Sequence[int], first_position: int, seq: int = 0) -> np.ndarray:
        batch = llama.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i] = token, first_position + i
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, seq
            batch.logits[i] = i == len(tokens) - 1
        status = llama.llama_decode(self.handle, batch)
        llama.llama_batch_free(batch)
        assert status == 0
        row = llama.llama_get_logits_ith(self.handle, -1)
        return np.ctypeslib.as_array(row, (self.n_vocab,)).copy()

    def state(self, seq: int = 0) -> bytes:
        size = llama.llama_state_seq_get_size(self.handle, seq)
        buffer = (ctypes.c_uint8 * size)()
        assert llama.llama_state_seq_get_data(self.handle, buffer, size, seq) == size
        return bytes(buffer)

    def load(self, state: bytes, seq: int = 0) -> bool:
        buffer = (ctypes.c_uint8 * len(state)).from_buffer_copy(state)
        return llama.llama_state_seq_set_data(self.handle, buffer, len(state), seq) == len(state)


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    callback = llama.llama_log_callback(lambda _level, _text, _data: None)
    llama.llama_log_set(callback, ctypes.c_void_p(0))
    llama.llama_backend_init()
    yield
    llama.llama_log_set(llama.llama_log_callback(0), ctypes.c_void_p(0))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return Model(write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf"))


def check_cut_at_128(model: Model, type_k: int, type_v: int, flash: int) -> None:
    tokens = [(i * 37 + 11) % min(250, model.n_vocab) for i in range(300)]
    with model.context(type_k, type_v, flash) as context:
        context.decode(tokens[:-1], 0)
        blob = context.state()
        expected = context.decode(tokens[-1:], 299)
    state = parse(blob)
    assert state.v_transposed == (not flash)
    assert state.positions.tolist() == list(range(299))
    parts = [state.slice_cells(0, 128).to_bytes(), state.slice_cells(128, 299).to_bytes()]
    joined = join(parts)
    assert joined == blob
    with model.context(type_k, type_v, flash) as context:
        assert context.load(joined)
        assert np.array_equal(context.decode(tokens[-1:], 299), expected)
    with model.context(type_k, type_v, flash) as context:
        # A part alone is the state of the shorter text.
        assert context.load(parts[0])
        context.decode(tokens[128:-1], 128)
        assert parse(context.state()).slice_cells(0, 128).to_bytes() == parts[0]


@pytest.mark.parametrize(("type_k", "type_v", "flash"), FORMATS)
def test_cut_and_joined_state_continues_bit_for_bit(tiny, type_k, type_v, flash):
    check_cut_at_128(tiny, type_k, type_v, flash)


@pytest.mark.models
@pytest.mark.parametrize(("type_k", "type_v", "flash"), FORMATS)
def test_the_default_model_continues_bit_for_bit(real_models, type_k, type_v, flash):
    from edge_runtime.models.store import resolve

    model = resolve("smollm2-135m-instruct", role="llm", variant="original")
    check_cut_at_128(Model(model.path), type_k, type_v, flash)


def test_a_state_restored_into_another_sequence_parses(tiny):
    with tiny.context(F16, F16, 1) as context:
        context.decode(list(range(20)), 0)
        assert context.load(context.state(), seq=1)
        other = parse(context.state(seq=1))
    assert other.seq_id == 1
    assert other.n_cells == 20


def test_the_library_refuses_a_state_of_the_other_attention(tiny):
    with tiny.context(F16, F16, 1) as context:
        context.decode(list(range(20)), 0)
        blob = context.state()
    with tiny.context(F16, F16, 0) as context:
        assert not context.load(blob)


def test_separate_streams_are_read_or_refused_never_misread(tiny):
    params = llama.llama_context_default_params()
    params.n_ctx, params.kv_unified, params.n_seq_max = 1024, False, 2
    handle = llama.llama_init_from_model(tiny.handle, params)
    try:
        context = Context(handle, tiny.n_vocab)
        context.decode(list(range(20)), 0, seq=1)
        blob = context.state(seq=1)
        try:
            state = parse(blob)
        except CapabilityError:
            return
        assert state.to_bytes() == blob
        assert state.positions.tolist() == list(range(20))
    finally:
        llama.llama_free(handle)
