"""Read the front of a GGUF file without trusting anything in it.

The layout is documented at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Every count
and length is checked against the bytes that are really there before it is used, long arrays are
walked but not kept, and nothing is allocated in proportion to a number from the file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from edge_runtime.errors import ModelFileError
from edge_runtime.models.gguf_types import (
    ARRAY,
    BOOL,
    MAX_TENSOR_TYPE,
    SCALARS,
    STRING,
    TENSOR_TYPES,
)

MAX_HEADER_BYTES = 512 * 2**20
MAX_KEY_BYTES = 2**16 - 1
MAX_TEXT_BYTES = 64 * 2**20
MAX_NAME_BYTES = 63  # ggml keeps tensor names in 64 bytes with a terminator
MAX_DIMENSIONS = 4
MAX_ELEMENTS = 2**63 - 1
MAX_NESTING = 4
MAX_KEPT_ARRAY = 1024
DEFAULT_ALIGNMENT = 32
TOKENS_KEY = "tokenizer.ggml.tokens"
# The least a metadata pair and a tensor description can take in the file.
MIN_PAIR_BYTES = 8 + 1 + 4 + 1
MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8

_CHUNK_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class LongArray:
    """Stands for an array of the metadata that is too long to keep."""

    item_type: int
    count: int


@dataclass(frozen=True, slots=True)
class Vocabulary(LongArray):
    """Stands for the texts of all tokens. llama.cpp gives empty ones a name of their own."""

    n_distinct: int
    has_empty: bool


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies: `offset` counts from the start of the data section."""

    name: str
    shape: tuple[int, ...]
    type_id: int
    offset: int

    @property
    def n_elements(self) -> int:
        """Product of the shape."""
        n = 1
        for size in self.shape:
            n *= size
        return n

    @property
    def n_bytes(self) -> int | None:
        """Size in the file, None for a type this version does not know."""
        known = TENSOR_TYPES.get(self.type_id)
        if known is None:
            return None
        return self.n_elements // known.block_values * known.block_bytes


@dataclass(slots=True)
class RawGguf:
    """The parsed front of a file."""

    version: int
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    tensors: list[TensorInfo] = field(default_factory=list[TensorInfo])
    alignment: int = DEFAULT_ALIGNMENT
    data_start: int = 0
    file_bytes: int = 0


class _Front:
    """A forward-only view of the file that fails when it would run past the end."""

    def __init__(self, stream: BinaryIO, path: Path, file_bytes: int) -> None:
        self._stream = stream
        self._path = path
        self._buffer = b""
        self._start = 0  # file position of the buffer's first byte
        self.position = 0
        self.file_bytes = file_bytes

    @property
    def remaining(self) -> int:
        return self.file_bytes - self.position

    def fail(self, message: str) -> NoReturn:
        raise ModelFileError(
            f"{self._path.name}: {message} (at byte {self.position})",
            hint="fetch the file again; `edge-run models verify` checks models of the catalogue",
            details={"path": str(self._path), "position": self.position},
        )

    def require(self, n_bytes: int, what: str) -> None:
        if n_bytes > self.remaining:
            self.fail(
                f"{what} needs {n_bytes} bytes but the file ends after {self.remaining}: "
                "it is damaged or not complete"
            )
        if self.position + n_bytes > MAX_HEADER_BYTES:
            self.fail(f"the header is larger than {MAX_HEADER_BYTES >> 20} MiB at {what}")

    def take(self, n_bytes: int, what: str) -> bytes:
        self.require(n_bytes, what)
        begin = self.position - self._start
        if begin + n_bytes > len(self._buffer):
            self._stream.seek(self.position)
            self._buffer = self._stream.read(max(_CHUNK_BYTES, n_bytes))
            self._start = self.position
            begin = 0
            if len(self._buffer) < n_bytes:
                self.fail(f"the file became shorter while {what} was read")
        self.position += n_bytes
        return self._buffer[begin : begin + n_bytes]

    def skip(self, n_bytes: int, what: str) -> None:
        self.require(n_bytes, what)
        self.position += n_bytes

    def uint32(self, what: str) -> int:
        return int.from_bytes(self.take(4, what), "little")

    def uint64(self, what: str) -> int:
        return int.from_bytes(self.take(8, what), "little")

    def text(self, what: str, limit: int = MAX_TEXT_BYTES) -> str:
        n_bytes = self.uint64(f"the length of {what}")
        if n_bytes > limit:
            self.fail(f"{what} claims {n_bytes} bytes, more than the {limit} allowed")
        return self.take(n_bytes, what).decode("utf-8", errors="replace")

    def skip_texts(self, count: int, what: str, seen: set[bytes] | None = None) -> None:
        """Walk over `count` strings (a vocabulary has hundreds of thousands), adding each to
        `seen` if that is given."""
        unpack = struct.Struct("<Q").unpack_from
        done = 0
        while done < count:
            self.take(8, what)  # fills the buffer, or fails at the end of the file
            self.position -= 8
            buffer, at = self._buffer, self.position - self._start
            begin, last = at, len(buffer) - 8
            while done < count and at <= last:
                following = at + 8 + unpack(buffer, at)[0]
                if following > len(buffer):
                    break
                if seen is not None:
                    seen.add(buffer[at + 8 : following])
                at = following
                done += 1
            self.position = self._start + at
            if at == begin and done < count:  # one string longer than the buffer, or not there
                n_bytes = self.uint64(what)
                if seen is None:
                    self.skip(n_bytes, what)
                elif n_bytes > MAX_TEXT_BYTES:
                    self.fail(
                        f"{what} claims {n_bytes} bytes, more than the {MAX_TEXT_BYTES} allowed"
                    )
                else:
                    seen.add(self.take(n_bytes, what))
                done += 1


def read_front(path: Path) -> RawGguf:
    """Parse metadata and tensor descriptions.

    Raises:
        ModelFileError: Anything in the file that is not a well-formed little-endian GGUF 2 or 3.
    """
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(0)
            return _parse(_Front(stream, path, size), stream.read(256))
    except OSError as err:
        raise ModelFileError(f"{path} cannot be read: {err.strerror or err}") from err


def _parse(front: _Front, head: bytes) -> RawGguf:
    _check_magic(front, head)
    front.skip(4, "the magic number")
    version = front.uint32("the version")
    if version not in {2, 3}:
        if int.from_bytes(version.to_bytes(4, "little"), "big") in {1, 2, 3}:
            front.fail("the file is a big-endian GGUF; this runtime reads little-endian ones")
        front.fail(f"GGUF version {version} is not known (2 and 3 are)")
    raw = RawGguf(version=version, file_bytes=front.file_bytes)
    n_tensors = front.uint64("the number of tensors")
    n_pairs = front.uint64("the number of metadata pairs")
    if n_pairs * MIN_PAIR_BYTES + n_tensors * MIN_TENSOR_BYTES > front.remaining:
        front.fail(
            f"{n_pairs} metadata pairs and {n_tensors} tensors cannot be in a file of "
            f"{front.file_bytes} bytes"
        )
    for _ in range(n_pairs):
        _read_pair(front, raw.metadata)
    raw.alignment = _alignment(front, raw.metadata)
    names: set[str] = set()
    for _ in range(n_tensors):
        tensor = _read_tensor(front, raw.alignment)
        if tensor.name in names:
            front.fail(f"two tensors are called {tensor.name!r}")
        names.add(tensor.name)
        raw.tensors.append(tensor)
    raw.data_start = -(-front.position // raw.alignment) * raw.alignment
    return raw


def _check_magic(front: _Front, head: bytes) -> None:
    if not head:
        front.fail("the file is empty")
    if head.startswith(b"version https://git-lfs"):
        front.fail("this is a Git-LFS pointer, not the model itself (`git lfs pull` fetches it)")
    if head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
        front.fail("this is a web page, not a model: the download went to a login or error page")
    if head.startswith(b"FUGG"):
        front.fail("the file is a big-endian GGUF; this runtime reads little-endian ones")
    if head[:4] in {b"tjgg", b"lmgg", b"fmgg"}:
        front.fail("this is a GGML file from before GGUF; it has to be converted")
    if not head.startswith(b"GGUF"):
        front.fail("this is not a GGUF file (its first four bytes are not 'GGUF')")


def _read_pair(front: _Front, metadata: dict[str, Any]) -> None:
    key = front.text("a metadata key", MAX_KEY_BYTES)
    if not key:
        front.fail("a metadata key is empty")
    if key in metadata:
        front.fail(f"the metadata key {key!r} is there twice")
    metadata[key] = _read_value(front, front.uint32(f"the type of {key!r}"), key, depth=0)


def _read_value(front: _Front, value_type: int, key: str, *, depth: int) -> Any:
    if value_type == STRING:
        return front.text(f"the text of {key!r}")
    if value_type == ARRAY:
        return _read_array(front, key, depth=depth)
    if value_type not in SCALARS:
        front.fail(f"{key!r} has the unknown value type {value_type}")
    width, code = SCALARS[value_type]
    value = struct.unpack("<" + code, front.take(width, f"the value of {key!r}"))[0]
    if value_type == BOOL:
        if value > 1:
            front.fail(f"{key!r} is neither true nor false")
        return bool(value)
    return value


def _read_array(front: _Front, key: str, *, depth: int) -> Any:
    if depth >= MAX_NESTING:
        front.fail(f"arrays in {key!r} are nested too deeply")
    item_type = front.uint32(f"the item type of {key!r}")
    count = front.uint64(f"the number of items of {key!r}")
    if item_type in SCALARS:
        width, code = SCALARS[item_type]
        if count > MAX_KEPT_ARRAY:
            front.skip(count * width, f"the {count} items of {key!r}")
            return LongArray(item_type, count)
        packed = front.take(count * width, f"the {count} items of {key!r}")
        return list(struct.unpack(f"<{count}{code}", packed))
    if item_type not in {STRING, ARRAY}:
        front.fail(f"{key!r} has items of the unknown type {item_type}")
    # A string takes at least its length, an array its item type and count.
    front.require(count * (8 if item_type == STRING else 12), f"the {count} items of {key!r}")
    if key == TOKENS_KEY and item_type == STRING:
        return _read_vocabulary(front, count)
    if count <= MAX_KEPT_ARRAY:
        return [_read_value(front, item_type, key, depth=depth + 1) for _ in range(count)]
    if item_type == STRING:
        front.skip_texts(count, f"the texts of {key!r}")
    else:
        for _ in range(count):
            _read_array(front, key, depth=depth + 1)
    return LongArray(item_type, count)


def _read_vocabulary(front: _Front, count: int) -> Vocabulary:
    seen: set[bytes] = set()
    front.skip_texts(count, "the vocabulary", seen)
    return Vocabulary(STRING, count, len(seen), b"" in seen)


def _alignment(front: _Front, metadata: dict[str, Any]) -> int:
    value = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(value, int) or value < 1 or value & (value - 1) or value > 2**20:
        front.fail(f"the alignment {value!r} is not a power of two")
    return value


def _read_tensor(front: _Front, alignment: int) -> TensorInfo:
    name = front.text("a tensor name", MAX_NAME_BYTES)
    n_dimensions = front.uint32(f"the number of dimensions of {name!r}")
    if not 1 <= n_dimensions <= MAX_DIMENSIONS:
        front.fail(f"the tensor {name!r} has {n_dimensions} dimensions (1 to 4 are possible)")
    shape = tuple(front.uint64(f"the shape of {name!r}") for _ in range(n_dimensions))
    type_id = front.uint32(f"the type of {name!r}")
    tensor = TensorInfo(name, shape, type_id, front.uint64(f"the offset of {name!r}"))
    if min(shape) < 1 or tensor.n_elements > MAX_ELEMENTS:
        front.fail(f"the tensor {name!r} has the impossible shape {shape}")
    if type_id > MAX_TENSOR_TYPE:
        front.fail(f"the tensor {name!r} has the impossible type {type_id}")
    known = TENSOR_TYPES.get(type_id)
    if known is not None and shape[0] % known.block_values:
        front.fail(
            f"rows of the tensor {name!r} have {shape[0]} values, which is not a multiple of "
            f"{known.block_values} as {known.name} needs"
        )
    if tensor.offset % alignment:
        front.fail(f"the tensor {name!r} does not start at a multiple of {alignment}")
    return tensor
