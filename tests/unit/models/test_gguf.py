"""The bounded GGUF reader accepts real files and refuses everything else in words."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge_runtime.errors import ModelFileError, ModelNotFound
from edge_runtime.models.gguf import check_gguf, read_gguf_header
from edge_runtime.models.gguf_reader import LongArray, read_front
from edge_runtime.models.gguf_types import TENSOR_TYPES
from tools.make_tiny_gguf import CHATML, write_tiny_gguf

UINT32, STRING, ARRAY, UINT64, BOOL = 4, 8, 9, 10, 7


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def uint32(key: str, value: int) -> bytes:
    return pair(key, UINT32, struct.pack("<I", value))


def tensor(
    name: str = "t", shape: tuple[int, ...] = (32,), kind: int = 0, offset: int = 0
) -> bytes:
    shape_bytes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + shape_bytes + struct.pack("<IQ", kind, offset)


LLAMA = [
    pair("general.architecture", STRING, text("llama")),
    uint32("llama.block_count", 2),
    uint32("llama.embedding_length", 64),
    uint32("llama.attention.head_count", 4),
]


def build(
    pairs: list[bytes],
    tensors: list[bytes],
    *,
    data: int = 128,
    version: int = 3,
    n_pairs: int | None = None,
    n_tensors: int | None = None,
) -> bytes:
    counts = (
        len(tensors) if n_tensors is None else n_tensors,
        len(pairs) if n_pairs is None else n_pairs,
    )
    front = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(pairs) + b"".join(tensors)
    return front + bytes(-len(front) % 32) + bytes(data)


def write(tmp_path: Path, content: bytes, name: str = "m.gguf") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def refused(tmp_path: Path, content: bytes, match: str) -> ModelFileError:
    with pytest.raises(ModelFileError, match=match) as caught:
        check_gguf(write(tmp_path, content))
    assert caught.value.hint
    return caught.value


def test_header_of_the_tiny_model(tiny_gguf: Path) -> None:
    header = check_gguf(tiny_gguf)
    shape = (header.n_layers, header.n_embd, header.n_head, header.n_head_kv, header.head_dim)
    assert shape == (2, 128, 2, 1, 64)
    assert header.architecture == "llama"
    assert header.vocab_size == 267
    assert header.n_ctx_train == 4096
    assert header.chat_template == CHATML
    assert header.weight_type == "F32"
    assert header.file_bytes == tiny_gguf.stat().st_size
    assert header.n_missing_bytes == 0


def test_reader_agrees_with_the_reference_reader(tiny_gguf: Path) -> None:
    reference = gguf.GGUFReader(tiny_gguf)
    raw = read_front(tiny_gguf)
    assert [t.name for t in raw.tensors] == [t.name for t in reference.tensors]
    assert [raw.data_start + t.offset for t in raw.tensors] == [
        int(t.data_offset) for t in reference.tensors
    ]
    assert [t.n_bytes for t in raw.tensors] == [int(t.n_bytes) for t in reference.tensors]
    assert set(raw.metadata) == {k for k in reference.fields if not k.startswith("GGUF.")}


def test_type_table_agrees_with_the_reference() -> None:
    for kind, sizes in gguf.GGML_QUANT_SIZES.items():
        if kind.name == "Q8_1":  # never stored; ggml's C struct is smaller than the package says
            continue
        known = TENSOR_TYPES[int(kind)]
        assert (known.name, known.block_values, known.block_bytes) == (kind.name, *sizes)


def test_head_dim_other_than_the_quotient_is_read(tmp_path: Path) -> None:
    header = check_gguf(write_tiny_gguf(tmp_path / "m.gguf", head_dim=96, chat_template=None))
    assert header.head_dim == 96
    assert header.chat_template is None


def test_long_array_is_not_kept(tiny_gguf: Path, tmp_path: Path) -> None:
    many = pair("a.numbers", ARRAY, struct.pack("<IQ", UINT32, 5000) + bytes(20000))
    words = pair("a.words", ARRAY, struct.pack("<IQ", STRING, 2000) + text("word") * 2000)
    raw = read_front(write(tmp_path, build([*LLAMA, many, words], [tensor()])))
    assert raw.metadata["a.numbers"] == LongArray(UINT32, 5000)
    assert raw.metadata["a.words"] == LongArray(STRING, 2000)


def test_long_strings_around_the_read_buffer(tmp_path: Path) -> None:
    sizes = [2**20 - 9, 3, 2**20 + 17, 0, 2**21] + [5] * 1100
    words = b"".join(text(b"x" * size) for size in sizes)
    array = pair("a.words", ARRAY, struct.pack("<IQ", STRING, len(sizes)) + words)
    raw = read_front(write(tmp_path, build([*LLAMA, array, uint32("z", 7)], [tensor()])))
    assert raw.metadata["a.words"] == LongArray(STRING, len(sizes))
    assert raw.metadata["z"] == 7


def test_every_cut_of_the_header_is_refused(tiny_bytes: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    for size in [*range(200), *range(200, 6272, 37), 6272, len(tiny_bytes) - 1]:
        path.write_bytes(tiny_bytes[:size])
        with pytest.raises(ModelFileError):
            check_gguf(path)


def test_cut_in_the_weights_says_how_much_is_missing(tiny_bytes: bytes, tmp_path: Path) -> None:
    refused(tmp_path, tiny_bytes[:-1000], "1000 bytes are missing")


def test_37_bytes_with_an_empty_key(tmp_path: Path) -> None:
    content = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("") + struct.pack("<IB", BOOL, 1)
    assert len(content) == 37
    refused(tmp_path, content, "key is empty|cannot be in a file")


def test_empty_key_in_a_larger_file(tmp_path: Path) -> None:
    refused(tmp_path, build([*LLAMA, uint32("", 1)], [tensor()]), "key is empty")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 98362432\n", "Git-LFS"),
        (b"<!DOCTYPE html><html>Sign in</html>", "web page"),
        (b"PK\x03\x04" + bytes(100), "not a GGUF file"),
        (b"GGUF\x00\x00\x00\x03" + bytes(64), "big-endian"),
        (b"FUGG" + bytes(64), "big-endian"),
        (b"tjgg" + bytes(64), "before GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
        (b"GGUF" + struct.pack("<IQQ", 99, 0, 0), "version 99"),
        (build(LLAMA, [], n_pairs=2**63), "cannot be in a file"),
        (build(LLAMA, [tensor()], n_tensors=2**62), "cannot be in a file"),
        (build([*LLAMA, LLAMA[0]], [tensor()]), "twice"),
        (build([*LLAMA, pair("k", 77, b"")], [tensor()]), "unknown value type 77"),
        (build([*LLAMA, pair("k", BOOL, b"\x02")], [tensor()]), "neither true nor false"),
        (build([*LLAMA, pair("k", STRING, struct.pack("<Q", 2**60))], [tensor()]), "claims"),
        (
            build([*LLAMA, pair("k", STRING, struct.pack("<Q", 5000))], [tensor()]),
            "damaged or not complete",
        ),
        (
            build([*LLAMA, pair("k", ARRAY, struct.pack("<IQ", UINT64, 2**61))], [tensor()]),
            "damaged or not complete",
        ),
        (
            build([*LLAMA, pair("k", ARRAY, struct.pack("<IQ", STRING, 2**59))], [tensor()]),
            "damaged or not complete",
        ),
        (
            build([*LLAMA, pair("k", ARRAY, struct.pack("<IQ", ARRAY, 1) * 40)], [tensor()]),
            "nested too deeply",
        ),
        (build([*LLAMA, uint32("general.alignment", 0)], [tensor()]), "alignment 0"),
        (build([*LLAMA, uint32("general.alignment", 24)], [tensor()]), "alignment 24"),
        (build(LLAMA, [tensor(shape=(1,) * 5)]), "5 dimensions"),
        (build(LLAMA, [text("t") + struct.pack("<I", 10**6) + bytes(64)]), "1000000 dimensions"),
        (build(LLAMA, [tensor(shape=(0,))]), "impossible shape"),
        (build(LLAMA, [tensor(shape=(2**32, 2**32))]), "impossible shape"),
        (build(LLAMA, [tensor(shape=(2**40,))]), "bytes are missing"),
        (build(LLAMA, [tensor(shape=(33,), kind=2)]), "not a multiple of 32"),
        (build(LLAMA, [tensor(kind=1000)]), "impossible type"),
        (build(LLAMA, [tensor(kind=200, offset=2**40)]), "bytes are missing"),
        (build(LLAMA, [tensor(offset=7)]), "multiple of 32"),
        (build(LLAMA, [tensor(offset=2**63)]), "bytes are missing"),
        (build(LLAMA, [tensor(), tensor()]), "two tensors"),
        (build(LLAMA, [tensor(name="n" * 64)]), "claims 64 bytes"),
        (build(LLAMA, []), "no tensors"),
        (build(LLAMA[1:], [tensor()]), "general.architecture is missing"),
        (build(LLAMA[:1] + LLAMA[2:], [tensor()]), "block_count is None"),
        (build([*LLAMA[:3], uint32("llama.attention.head_count", 0)], [tensor()]), "head_count"),
        (build([*LLAMA[:1], uint32("llama.block_count", 2**31)], [tensor()]), "block_count"),
    ],
)
def test_malformed_file_is_refused(tmp_path: Path, content: bytes, match: str) -> None:
    refused(tmp_path, content, match)


def test_well_formed_small_file_passes(tmp_path: Path) -> None:
    header = check_gguf(write(tmp_path, build(LLAMA, [tensor()])))
    assert header.head_dim == 16
    assert header.n_head_kv == 4


def vocabulary(*tokens: str) -> bytes:
    array = struct.pack("<IQ", STRING, len(tokens)) + b"".join(text(t) for t in tokens)
    return pair("tokenizer.ggml.tokens", ARRAY, array)


def test_token_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    good = check_gguf(write(tmp_path, build([*LLAMA, vocabulary("a", "b", "c")], [tensor()])))
    assert good.vocab_size == 3
    refused(tmp_path, build([*LLAMA, vocabulary("a", "b", "a")], [tensor()]), "1 tokens .* twice")
    # llama.cpp renames empty tokens, so that several of them are no harm.
    assert check_gguf(write(tmp_path, build([*LLAMA, vocabulary("", "b", "")], [tensor()])))


def test_vocabulary_of_long_and_many_tokens(tmp_path: Path) -> None:
    tokens = [f"token {i}" for i in range(5000)] + ["x" * (2**20 + 5), "y" * 2**21, "z"]
    content = build([*LLAMA, vocabulary(*tokens)], [tensor()])
    assert check_gguf(write(tmp_path, content)).vocab_size == 5003
    refused(tmp_path, build([*LLAMA, vocabulary(*tokens, "token 7")], [tensor()]), "twice")


def test_weight_type_is_that_of_the_layers(tmp_path: Path) -> None:
    embedding = tensor(name="token_embd.weight", shape=(32, 64), kind=8)
    layer = tensor(name="blk.0.attn_q.weight", shape=(32, 32), kind=2, offset=64 * 34 + 32 - 64)
    path = write(tmp_path, build(LLAMA, [embedding, layer], data=4096))
    assert check_gguf(path).weight_type == "Q4_0"


def test_adapter_needs_no_shape(tmp_path: Path) -> None:
    pairs = [LLAMA[0], pair("general.type", STRING, text("adapter"))]
    assert check_gguf(write(tmp_path, build(pairs, [tensor()]))).kind == "adapter"


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound):
        read_gguf_header(tmp_path / "none.gguf")
    with pytest.raises(ModelFileError, match="folder"):
        read_gguf_header(tmp_path)


def split_part(index: int, count: int) -> bytes:
    pairs = [uint32("split.no", index), uint32("split.count", count)]
    return build((LLAMA if index == 0 else []) + pairs, [tensor(name=f"t{index}")])


def test_split_model_with_all_parts(tmp_path: Path) -> None:
    write(tmp_path, split_part(1, 2), "m-00002-of-00002.gguf")
    first = write(tmp_path, split_part(0, 2), "m-00001-of-00002.gguf")
    assert check_gguf(first).n_splits == 2


def test_split_model_names_its_missing_part(tmp_path: Path) -> None:
    first = write(tmp_path, split_part(0, 2), "m-00001-of-00002.gguf")
    with pytest.raises(ModelFileError, match=r"missing: m-00002-of-00002\.gguf"):
        check_gguf(first)


def test_split_model_with_a_broken_part(tmp_path: Path) -> None:
    write(tmp_path, split_part(1, 2)[:-100], "m-00002-of-00002.gguf")
    first = write(tmp_path, split_part(0, 2), "m-00001-of-00002.gguf")
    with pytest.raises(ModelFileError, match=r"m-00002-of-00002\.gguf: 100 bytes are missing"):
        check_gguf(first)


def test_later_part_of_a_split_model_is_not_a_model(tmp_path: Path) -> None:
    second = write(tmp_path, split_part(1, 2), "m-00002-of-00002.gguf")
    with pytest.raises(ModelFileError, match="part 2 of 2") as caught:
        check_gguf(second)
    assert "first part" in str(caught.value.hint)


def test_renamed_part_of_a_split_model(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="not named"):
        check_gguf(write(tmp_path, split_part(0, 2), "renamed.gguf"))


def outcome(path: Path, content: bytes) -> None:
    """Anything but a return or a `ModelFileError` fails the test."""
    path.write_bytes(content)
    try:
        header = check_gguf(path)
    except ModelFileError:
        return
    assert header.n_tensors > 0


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_damaged_bytes_never_surprise(data: Any, tiny_bytes: bytes, tmp_path: Path) -> None:
    content = bytearray(tiny_bytes[: 6272 + 64])
    # The front is where damage matters: counts, lengths and types lie there.
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, 6271))
        content[at : at + 8] = data.draw(st.binary(min_size=1, max_size=8))
    outcome(tmp_path / "m.gguf", bytes(content))


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rest=st.binary(max_size=400), counts=st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_random_bytes_after_the_magic(rest: bytes, counts: tuple[int, int], tmp_path: Path) -> None:
    outcome(tmp_path / "m.gguf", b"GGUF" + struct.pack("<IQQ", 3, *counts) + rest)
