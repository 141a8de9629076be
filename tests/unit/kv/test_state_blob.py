import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_runtime.errors import CapabilityError
from edge_runtime.kv.state_blob import MAGIC, join, parse

N_LAYERS = 3
ROW_BYTES = 8
N_EMBD = 4


def make_blob(
    n_cells: int,
    *,
    transposed: bool = False,
    first_position: int = 0,
    seq_id: int = 0,
    k_type: int = 1,
    seed: int = 0,
) -> bytes:
    """A state in llama.cpp's layout, written out independently of the code under test."""
    rng = np.random.default_rng([seed, first_position])
    out = struct.pack("<IiII", MAGIC, seq_id, 1, n_cells)
    for i in range(n_cells):
        out += struct.pack("<iIi", first_position + i, 1, seq_id)
    out += struct.pack("<II", int(transposed), N_LAYERS)
    for _ in range(N_LAYERS):
        out += struct.pack("<iQ", k_type, ROW_BYTES) + rng.bytes(n_cells * ROW_BYTES)
    for _ in range(N_LAYERS):
        if transposed:
            out += struct.pack("<iII", 1, 2, N_EMBD) + rng.bytes(N_EMBD * n_cells * 2)
        else:
            out += struct.pack("<iQ", 1, ROW_BYTES) + rng.bytes(n_cells * ROW_BYTES)
    return out


@pytest.mark.parametrize("transposed", [False, True])
def test_parsing_and_writing_gives_the_same_bytes(transposed):
    blob = make_blob(7, transposed=transposed)
    state = parse(blob)
    assert state.n_cells == 7
    assert state.n_layers == N_LAYERS
    assert state.keys[0].type_name == "f16"
    assert state.to_bytes() == blob


@pytest.mark.parametrize("transposed", [False, True])
@given(cuts=st.lists(st.integers(0, 13), max_size=5))
def test_any_way_of_cutting_joins_to_the_original(transposed, cuts):
    blob = make_blob(13, transposed=transposed)
    state = parse(blob)
    edges = [0, *sorted(cuts), 13]
    parts = [state.slice_cells(a, b) for a, b in pairwise(edges)]
    assert join(parts) == blob
    assert join([part.to_bytes() for part in parts]) == blob


def test_slices_keep_positions_and_data_of_their_cells():
    state = parse(make_blob(6, transposed=True, first_position=10))
    part = parse(state.slice_cells(2, 5).to_bytes())
    assert part.positions.tolist() == [12, 13, 14]
    assert np.array_equal(part.keys[1].data, state.keys[1].data[2:5])
    assert np.array_equal(part.values[2].data, state.values[2].data[:, 2:5])


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (2, 1), (0, 8)])
def test_a_slice_outside_the_cells_is_refused(start, end):
    with pytest.raises(CapabilityError, match="not within 7 cells"):
        parse(make_blob(7)).slice_cells(start, end)


def test_an_empty_state_survives():
    blob = struct.pack("<IiII", MAGIC, 0, 1, 0)
    state = parse(blob)
    assert state.n_cells == 0
    assert state.to_bytes() == blob
    assert join([state, make_blob(2)]) == make_blob(2)


def test_joining_nothing_is_refused():
    with pytest.raises(CapabilityError, match="no cells"):
        join([])


def test_states_of_different_formats_are_not_joined():
    with pytest.raises(CapabilityError, match="different models"):
        join([make_blob(2), make_blob(2, transposed=True, first_position=2)])
    with pytest.raises(CapabilityError, match="different models"):
        join([make_blob(2), make_blob(2, k_type=30, first_position=2)])


def test_overlapping_positions_are_not_joined():
    with pytest.raises(CapabilityError, match="share a position"):
        join([make_blob(3), make_blob(3, first_position=2)])


def test_the_joined_state_belongs_to_the_first_sequence():
    joined = parse(join([make_blob(2, seq_id=0), make_blob(2, seq_id=3, first_position=2)]))
    assert joined.seq_id == 0
    assert joined.positions.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("n_missing", [1, 5, 40, 200])
def test_a_truncated_state_is_refused(n_missing):
    blob = make_blob(7)
    with pytest.raises(CapabilityError, match="early"):
        parse(blob[:-n_missing])


def test_an_unknown_magic_is_refused():
    with pytest.raises(CapabilityError, match="magic"):
        parse(b"\0\0\0\0" + make_blob(7)[4:])


def test_a_second_cache_of_a_sliding_window_model_is_refused():
    blob = make_blob(7)
    with pytest.raises(CapabilityError, match="follow the first attention cache"):
        parse(blob + blob[8:])


def test_cells_with_extra_coordinates_are_refused():
    head = struct.pack("<IiII", MAGIC, 0, 1, 2)
    cells = b"".join(struct.pack("<iIiii", i, 1, 0, 0, 0) for i in range(2))
    with pytest.raises(CapabilityError):
        parse(head + cells + make_blob(2)[40:])


def test_several_streams_are_refused():
    blob = bytearray(make_blob(3))
    struct.pack_into("<I", blob, 8, 2)
    with pytest.raises(CapabilityError, match="streams"):
        parse(blob)


def test_an_unknown_tensor_type_is_refused():
    with pytest.raises(CapabilityError, match="type 39"):
        parse(make_blob(3, k_type=39))


def test_rows_that_do_not_fit_their_type_are_refused():
    with pytest.raises(CapabilityError, match="bytes per row"):
        parse(make_blob(3, k_type=8))


@given(
    transposed=st.booleans(),
    edits=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_structure_is_refused_or_read_within_bounds(transposed, edits):
    blob = bytearray(make_blob(4, transposed=transposed))
    for at, value in edits:
        blob[at % len(blob)] = value
    try:
        state = parse(blob)
    except CapabilityError:
        return
    assert state.to_bytes() == bytes(blob)


@given(st.binary(max_size=400))
def test_arbitrary_bytes_never_do_worse_than_a_refusal(blob):
    # Four hundred bytes of noise cannot hold a consistent non-empty state.
    with pytest.raises(CapabilityError, match="cannot be taken apart"):
        parse(struct.pack("<I", MAGIC) + blob[:8] + b"\1" + blob[8:])
