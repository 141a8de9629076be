"""One `llama_context`: batches, decoding, logits, sequences and state, without policy.

Not safe for several threads at once; a session owns it and holds the lock.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edge_runtime.errors import CapabilityError, ContextOverflow, StageError
from edge_runtime.llm.llama_cpp_model import NativeModel
from edge_runtime.llm.llama_cpp_options import KV_TYPES
from edge_runtime.llm.native_log import NATIVE_LOG

Rows = NDArray[np.float32]
Outputs = Literal["none", "last", "all"]


class DecodeStatus(IntEnum):
    """What `llama_decode` returns; anything below zero is an error."""

    OK = 0
    NO_CELLS = 1
    ABORTED = 2


@dataclass(frozen=True, slots=True)
class ContextShape:
    """Sizes and types of a context."""

    n_ctx: int
    n_batch: int
    n_seq_max: int
    n_threads: int
    n_threads_batch: int
    type_k: str
    type_v: str
    flash_attn: bool


class NativeContext:
    """Owns a `llama_context`; freed by `close` or when it is collected.

    Raises:
        CapabilityError: llama.cpp refused the context; its log is quoted.
    """

    def __init__(self, model: NativeModel, shape: ContextShape) -> None:
        self._library = library = model.library
        params = library.llama_context_default_params()
        params.n_ctx = shape.n_ctx
        params.n_batch = params.n_ubatch = shape.n_batch
        params.n_seq_max = shape.n_seq_max
        params.kv_unified = True
        params.n_threads = shape.n_threads
        params.n_threads_batch = shape.n_threads_batch
        params.type_k = KV_TYPES[shape.type_k][0]
        params.type_v = KV_TYPES[shape.type_v][0]
        params.flash_attn_type = int(shape.flash_attn)
        mark = NATIVE_LOG.mark()
        context = library.llama_init_from_model(model.handle, params)
        if not context:
            log = NATIVE_LOG.quote(mark)
            raise CapabilityError(
                f"llama.cpp refused a context of {shape.n_ctx} tokens: {log or 'no reason given'}",
                hint="plainer cache types (type_k='f16', type_v='f16') or a smaller n_ctx",
                details={"native_log": log},
            )
        self._context = context
        # The model stays referenced, so that it is never freed before its context.
        self._free = weakref.finalize(self, _free_context, library, context, model)
        self._memory = library.llama_get_memory(context)
        self.n_ctx = int(library.llama_n_ctx(context))
        self.n_batch = int(library.llama_n_batch(context))
        self.n_seq_max = int(library.llama_n_seq_max(context))
        self.n_vocab = model.n_vocab
        self._batch = _Batch(library, self.n_batch, self.n_seq_max)
        self._abort = ctypes.create_string_buffer(2)
        self._abort_callback = _native_flag_reader(library)
        if self._abort_callback is not None:
            library.llama_set_abort_callback(
                context, self._abort_callback, ctypes.cast(self._abort, ctypes.c_void_p)
            )

    def decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int] | range,
        *,
        outputs: Outputs,
        sequences: Sequence[Sequence[int]] | None = None,
    ) -> int:
        """Run one batch of at most `n_batch` tokens; a `DecodeStatus` or a negative error.

        `sequences` gives for each token the sequences it belongs to; None is sequence 0.
        """
        batch = self._batch.fill(tokens, positions, sequences, outputs)
        return int(self._library.llama_decode(self._context, batch))

    def last_row(self) -> Rows:
        """Logits of the last output, shape (n_vocab,); a view until the next decode."""
        pointer = self._library.llama_get_logits_ith(self._context, -1)
        return np.ctypeslib.as_array(pointer, (self.n_vocab,))

    def rows(self, n_rows: int) -> Rows:
        """Logits of all outputs in batch order, shape (n_rows, n_vocab); a view likewise."""
        pointer = self._library.llama_get_logits(self._context)
        return np.ctypeslib.as_array(pointer, (n_rows, self.n_vocab))

    def clear(self) -> None:
        """Forget all sequences."""
        self._library.llama_memory_clear(self._memory, False)

    def remove_from(self, position: int) -> bool:
        """Drop sequence 0 from `position` on; False where the model cannot roll back."""
        return bool(self._library.llama_memory_seq_rm(self._memory, 0, position, -1))

    def share_history(self, n_sequences: int) -> None:
        """Let sequences 1..n see all cells of sequence 0 (nothing is copied)."""
        for sequence in range(1, n_sequences + 1):
            self._library.llama_memory_seq_cp(self._memory, 0, sequence, -1, -1)

    def remove_sequences(self, n_sequences: int) -> None:
        """Forget sequences 1..n; cells shared with sequence 0 stay."""
        for sequence in range(1, n_sequences + 1):
            self._library.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def n_positions(self) -> int:
        """One more than the highest position of sequence 0; 0 when it is empty."""
        return int(self._library.llama_memory_seq_pos_max(self._memory, 0)) + 1

    def save_state(self) -> NDArray[np.uint8]:
        """The state of sequence 0 as bytes, shape (n_bytes,)."""
        size = int(self._library.llama_state_seq_get_size(self._context, 0))
        state = np.empty(size, np.uint8)
        n_written = int(
            self._library.llama_state_seq_get_data(self._context, _u8_pointer(state), size, 0)
        )
        return state[:n_written]

    def load_state(self, state: bytes | NDArray[np.uint8]) -> bool:
        """Replace sequence 0 by a saved state; False when it is refused, and then it is empty."""
        data = np.frombuffer(state, np.uint8)
        n_read = self._library.llama_state_seq_set_data(
            self._context, _u8_pointer(data), data.size, 0
        )
        return int(n_read) == data.size

    @property
    def can_abort(self) -> bool:
        """Whether `request_abort` reaches a running decode."""
        return self._abort_callback is not None

    def request_abort(self, *, on: bool) -> None:
        """Make a running decode stop between two graph nodes (CPU only); from any thread."""
        self._abort[0] = b"\x01" if on else b"\x00"

    def close(self) -> None:
        """Free the context. May be called twice."""
        self._free()


class _Batch:
    """A `llama_batch` over numpy arrays, filled without a Python loop per token."""

    def __init__(self, library: Any, n_tokens: int, n_seq_max: int) -> None:
        self._tokens = np.zeros(n_tokens, np.int32)
        self._positions = np.zeros(n_tokens, np.int32)
        self._n_seq = np.ones(n_tokens, np.int32)
        self._seq_ids = np.zeros((n_tokens, n_seq_max), np.int32)
        self._outputs = np.zeros(n_tokens, np.int8)
        row_bytes = self._seq_ids.strides[0]
        first = self._seq_ids.ctypes.data
        self._seq_rows = first + row_bytes * np.arange(n_tokens, dtype=np.uintp)
        i32 = ctypes.POINTER(ctypes.c_int32)
        self._batch = library.llama_batch()
        self._batch.token = self._tokens.ctypes.data_as(i32)
        self._batch.pos = self._positions.ctypes.data_as(i32)
        self._batch.n_seq_id = self._n_seq.ctypes.data_as(i32)
        self._batch.seq_id = self._seq_rows.ctypes.data_as(ctypes.POINTER(i32))
        self._batch.logits = self._outputs.ctypes.data_as(ctypes.POINTER(ctypes.c_int8))

    def fill(
        self,
        tokens: Sequence[int],
        positions: Sequence[int] | range,
        sequences: Sequence[Sequence[int]] | None,
        outputs: Outputs,
    ) -> Any:
        n = len(tokens)
        self._batch.n_tokens = n
        self._tokens[:n] = tokens
        self._positions[:n] = positions
        self._outputs[:n] = outputs == "all"
        self._outputs[n - 1] = outputs != "none"
        if sequences is None:
            self._n_seq[:n] = 1
            self._seq_ids[:n, 0] = 0
        else:
            for i, ids in enumerate(sequences):
                self._n_seq[i] = len(ids)
                self._seq_ids[i, : len(ids)] = ids
        return self._batch


def raise_for_status(status: int, log_mark: int) -> None:
    """Turn a failed decode into an error that quotes the native log."""
    if status == DecodeStatus.OK:
        return
    log = NATIVE_LOG.quote(log_mark)
    if status == DecodeStatus.NO_CELLS:
        raise ContextOverflow(
            "llama.cpp found no free KV cells for a batch", details={"native_log": log}
        )
    raise StageError(
        f"llama.cpp failed to decode (status {status}): {log or 'no reason given'}",
        details={"status": status, "native_log": log},
    )


def _u8_pointer(array: NDArray[np.uint8]) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))


def _native_flag_reader(library: Any) -> Any | None:
    """A C function that tells whether a flag byte is set, as llama.cpp's abort callback.

    The callback runs for every graph node on a compute thread. A Python function there would wait
    for the interpreter lock each time, up to 5 ms while other threads run Python code. `strlen`
    of a two-byte buffer is exactly "1 if the first byte is set, else 0" and needs no lock.
    """
    try:
        strlen = ctypes.CDLL(None).strlen
    except (AttributeError, OSError, TypeError):
        return None
    address = ctypes.cast(strlen, ctypes.c_void_p).value
    return library.ggml_abort_callback(address)


def _free_context(library: Any, context: Any, model: NativeModel) -> None:
    if model.is_open:
        library.llama_free(context)
