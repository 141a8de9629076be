"""Sequence state of llama.cpp as bytes: parse, slice by cells, join.

The blob is what `llama_state_seq_get_data` writes and `llama_state_seq_set_data` reads, little
endian (llama.cpp, `src/llama-context.cpp` and `src/llama-kv-cache.cpp`):

    u32 magic, i32 sequence id                      once
    u32 n_stream, u32 n_cells                       one attention cache, unified
    n_cells x (i32 position, u32 n_seq = 1, i32 sequence id)
    u32 v_transposed, u32 n_layer
    n_layer x (i32 type, u64 row_bytes, n_cells rows)                    keys
    n_layer x (i32 type, u64 row_bytes, n_cells rows)                    values, flash attention
    n_layer x (i32 type, u32 element_bytes, u32 n_embd, [n_embd][n_cells])   values, transposed

Nothing in it says which model it belongs to: callers bind that themselves. Everything that does
not match this layout to the last byte (two caches of sliding-window models, cells with extra
coordinates, recurrent state, a newer magic) is refused with `CapabilityError`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edge_runtime.errors import CapabilityError

MAGIC = 0xAF143CD8
_MAX_LAYERS = 4096
_CELL = np.dtype([("position", "<i4"), ("n_seq", "<u4"), ("seq_id", "<i4")])

# ggml type number -> (name, bytes of one block, values in one block)
_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("f32", 4, 1),
    1: ("f16", 2, 1),
    2: ("q4_0", 18, 32),
    3: ("q4_1", 20, 32),
    6: ("q5_0", 22, 32),
    7: ("q5_1", 24, 32),
    8: ("q8_0", 34, 32),
    20: ("iq4_nl", 18, 32),
    30: ("bf16", 2, 1),
}

Buffer: TypeAlias = bytes | bytearray | memoryview
_Bytes: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Keys or values of one layer.

    `data` has shape `(n_cells, row_bytes)`, and `(n_embd, n_cells, element_bytes)` for transposed
    values.
    """

    ggml_type: int
    data: _Bytes
    transposed: bool = False

    @property
    def type_name(self) -> str:
        """Name of the ggml type, such as `f16`."""
        return _TYPES[self.ggml_type][0]

    def cells(self, i0: int, i1: int) -> Plane:
        """The cells `[i0, i1)` as a view."""
        part = self.data[:, i0:i1] if self.transposed else self.data[i0:i1]
        return replace(self, data=part)

    def shape_key(self) -> tuple[int, ...]:
        """What must be equal for two planes to be joined."""
        d = self.data
        return (
            (self.ggml_type, d.shape[0], d.shape[2])
            if self.transposed
            else (
                self.ggml_type,
                d.shape[1],
            )
        )

    def header(self) -> bytes:
        """What precedes the data in the blob."""
        if self.transposed:
            return struct.pack("<iII", self.ggml_type, self.data.shape[2], self.data.shape[0])
        return struct.pack("<iQ", self.ggml_type, self.data.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class StateBlob:
    """A parsed state; the arrays are views into the parsed bytes.

    `positions` has shape `(n_cells,)`: the position of each cell's token, in cell order.
    """

    seq_id: int
    positions: NDArray[np.int32]
    keys: tuple[Plane, ...]
    values: tuple[Plane, ...]
    v_transposed: bool

    @property
    def n_cells(self) -> int:
        """Number of cells, that is of tokens."""
        return int(self.positions.shape[0])

    @property
    def n_layers(self) -> int:
        """Number of layers with keys and values."""
        return len(self.keys)

    @property
    def format_key(self) -> tuple[Any, ...]:
        """What must be equal for two states to be parts of one."""
        return (
            self.v_transposed,
            tuple(p.shape_key() for p in self.keys),
            tuple(p.shape_key() for p in self.values),
        )

    def slice_cells(self, i0: int, i1: int) -> StateBlob:
        """The cells `[i0, i1)` as views; positions stay what they are.

        Raises:
            CapabilityError: when the range is not within the cells.
        """
        if not 0 <= i0 <= i1 <= self.n_cells:
            raise CapabilityError(f"Cells [{i0}, {i1}) are not within {self.n_cells} cells")
        return StateBlob(
            seq_id=self.seq_id,
            positions=self.positions[i0:i1],
            keys=tuple(p.cells(i0, i1) for p in self.keys),
            values=tuple(p.cells(i0, i1) for p in self.values),
            v_transposed=self.v_transposed,
        )

    def to_bytes(self) -> bytes:
        """The state in llama.cpp's layout."""
        return _serialise([self])


def parse(blob: Buffer) -> StateBlob:
    """Read a sequence state without copying it.

    Raises:
        CapabilityError: for anything but one unified attention cache in the known layout.
    """
    reader = _Reader(blob)
    magic, seq_id, n_stream, n_cells = reader.unpack("<IiII")
    if magic != MAGIC:
        raise _refused(f"magic 0x{magic:08x} is not 0x{MAGIC:08x}")
    if n_stream != 1:
        raise _refused(f"{n_stream} streams, expected one unified cache")
    if n_cells == 0:
        reader.expect_end()
        return StateBlob(seq_id, np.empty(0, np.int32), (), (), v_transposed=False)
    cells = reader.take(n_cells * _CELL.itemsize).view(_CELL)
    if not (np.all(cells["n_seq"] == 1) and np.all(cells["position"] >= 0)):
        raise _refused("cells carry more than a position and one sequence")
    if not np.all(cells["seq_id"] == seq_id):
        raise _refused("cells of another sequence")
    v_transposed, n_layer = reader.unpack("<II")
    if v_transposed > 1 or not 0 < n_layer <= _MAX_LAYERS:
        raise _refused(f"{n_layer} layers, transposition flag {v_transposed}")
    keys = tuple(reader.rows(n_cells) for _ in range(n_layer))
    read_values = reader.columns if v_transposed else reader.rows
    values = tuple(read_values(n_cells) for _ in range(n_layer))
    reader.expect_end()
    return StateBlob(
        seq_id=seq_id,
        positions=np.ascontiguousarray(cells["position"]),
        keys=keys,
        values=values,
        v_transposed=bool(v_transposed),
    )


def join(parts: Sequence[StateBlob | Buffer]) -> bytes:
    """Put the cells of several states one after the other into one state's bytes.

    Empty states are skipped. Each payload byte is copied once (twice for transposed values).

    Raises:
        CapabilityError: when there is nothing to join, formats differ, or a position repeats.
    """
    blobs = [part if isinstance(part, StateBlob) else parse(part) for part in parts]
    filled = [blob for blob in blobs if blob.n_cells]
    if not filled:
        raise CapabilityError("There are no cells to join")
    if any(blob.format_key != filled[0].format_key for blob in filled[1:]):
        raise CapabilityError("States of different models or cache formats cannot be joined")
    positions = np.concatenate([blob.positions for blob in filled])
    if np.unique(positions).size != positions.size:
        raise CapabilityError("States that share a position cannot be joined")
    return _serialise(filled)


def _serialise(blobs: Sequence[StateBlob]) -> bytes:
    first = blobs[0]
    n_cells = sum(blob.n_cells for blob in blobs)
    cells = np.empty(n_cells, _CELL)
    cells["n_seq"] = 1
    cells["seq_id"] = first.seq_id
    cells["position"] = np.concatenate([blob.positions for blob in blobs])
    chunks: list[Any] = [struct.pack("<IiII", MAGIC, first.seq_id, 1, n_cells)]
    if n_cells == 0:
        return chunks[0]
    chunks += [cells.tobytes(), struct.pack("<II", first.v_transposed, first.n_layers)]
    for planes in (
        [blob.keys for blob in blobs],
        [blob.values for blob in blobs],
    ):
        for layer in range(first.n_layers):
            parts = [plane[layer] for plane in planes]
            chunks.append(parts[0].header())
            if parts[0].transposed:
                columns = np.concatenate([part.data for part in parts], axis=1)
                chunks.append(columns.reshape(-1).data)
            else:
                chunks.extend(np.ascontiguousarray(part.data).reshape(-1).data for part in parts)
    return b"".join(chunks)


class _Reader:
    """A cursor that never reads past the end."""

    def __init__(self, blob: Buffer) -> None:
        self._bytes: _Bytes = np.frombuffer(blob, np.uint8)
        self._at = 0

    def take(self, n_bytes: int) -> _Bytes:
        end = self._at + n_bytes
        if n_bytes < 0 or end > self._bytes.size:
            raise _refused(f"it ends {end - self._bytes.size} bytes early")
        part = self._bytes[self._at : end]
        self._at = end
        return part

    def unpack(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)).tobytes())

    def rows(self, n_cells: int) -> Plane:
        ggml_type, row_bytes = self.unpack("<iQ")
        _check_type(ggml_type)
        if row_bytes == 0 or row_bytes % _TYPES[ggml_type][1]:
            raise _refused(f"{row_bytes} bytes per row of {_TYPES[ggml_type][0]}")
        data = self.take(n_cells * row_bytes)
        return Plane(ggml_type, data.reshape(n_cells, row_bytes))

    def columns(self, n_cells: int) -> Plane:
        ggml_type, element_bytes, n_embd = self.unpack("<iII")
        _check_type(ggml_type)
        _, block_bytes, block_values = _TYPES[ggml_type]
        if block_values != 1 or element_bytes != block_bytes or n_embd == 0:
            raise _refused(f"transposed values of {element_bytes} bytes, {n_embd} wide")
        data = self.take(n_embd * n_cells * element_bytes)
        return Plane(ggml_type, data.reshape(n_embd, n_cells, element_bytes), transposed=True)

    def expect_end(self) -> None:
        left = self._bytes.size - self._at
        if left:
            raise _refused(f"{left} bytes follow the first attention cache")


def _check_type(ggml_type: int) -> None:
    if ggml_type not in _TYPES:
        raise _refused(f"tensor type {ggml_type} is unknown")


def _refused(reason: str) -> CapabilityError:
    return CapabilityError(
        f"This sequence state cannot be taken apart: {reason}",
        hint="the state of sliding-window, recurrent or newer models is kept only whole",
        details={"reason": reason},
    )
