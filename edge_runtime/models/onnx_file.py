"""Whether a file is an ONNX model that is all there, seen without loading it.

ONNX is one protobuf message (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). The fields
of the model, its graph and its weights are walked; the contents of nodes and weights are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NoReturn

from edge_runtime.errors import ModelFileError, ModelNotFound

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
MAX_TEXT_BYTES = 16 * 2**20
MAX_FIELDS = 4_000_000

# Field numbers of onnx.proto
MODEL_IR_VERSION, MODEL_PRODUCER, MODEL_GRAPH, MODEL_OPSET, MODEL_METADATA = 1, 2, 7, 8, 14
GRAPH_NODE, GRAPH_NAME, GRAPH_INITIALIZER, GRAPH_INPUT, GRAPH_OUTPUT = 1, 2, 5, 11, 12
VALUE_NAME = 1
ENTRY_KEY, ENTRY_VALUE = 1, 2
OPSET_DOMAIN, OPSET_VERSION = 1, 2
TENSOR_NAME, TENSOR_EXTERNAL_DATA = 8, 13


@dataclass(slots=True)
class OnnxSummary:
    """What the file says of itself."""

    ir_version: int = 0
    producer: str = ""
    opset: int = 0
    graph_name: str = ""
    n_nodes: int = 0
    n_initializers: int = 0
    inputs: list[str] = field(default_factory=list[str])
    outputs: list[str] = field(default_factory=list[str])
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    external_files: list[str] = field(default_factory=list[str])
    file_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Field:
    number: int
    wire_type: int
    value: int  # of a varint
    start: int  # of the content, for the other wire types
    end: int


class _Message:
    """Reads protobuf fields at given places of a file, never past its end."""

    def __init__(self, stream: BinaryIO, path: Path, file_bytes: int) -> None:
        self._stream = stream
        self._path = path
        self.file_bytes = file_bytes
        self._n_fields = 0

    def fail(self, message: str) -> NoReturn:
        raise ModelFileError(
            f"{self._path.name}: {message}",
            hint="fetch the file again; `edge-run models verify` checks models of the catalogue",
            details={"path": str(self._path), "file_bytes": self.file_bytes},
        )

    def _varint(self, end: int) -> int:
        value = 0
        for shift in range(0, 70, 7):
            if self._stream.tell() >= end:
                self.fail("the file ends in the middle of a number: it is cut short or damaged")
            byte = self._stream.read(1)
            if not byte:
                self.fail("the file became shorter while it was read")
            value |= (byte[0] & 0x7F) << shift
            if not byte[0] & 0x80:
                return value
        return self.fail(f"a number is longer than 10 bytes (near byte {self._stream.tell()})")

    def fields(self, start: int, end: int, what: str) -> Iterator[_Field]:
        """The fields of the message that lies at `start`..`end`."""
        position = start
        while position < end:
            self._n_fields += 1
            if self._n_fields > MAX_FIELDS:
                self.fail(f"there are more than {MAX_FIELDS} fields")
            self._stream.seek(position)
            tag = self._varint(end)
            number, wire_type = tag >> 3, tag & 7
            if number == 0 or number >= 2**29 or wire_type not in {0, 1, 2, 5}:
                self.fail(f"this is not an ONNX file ({what} has no valid field at {position})")
            value = 0
            if wire_type == VARINT:
                value = self._varint(end)
                first = position = self._stream.tell()
            else:
                size = {FIXED64: 8, FIXED32: 4}.get(wire_type)
                if size is None:
                    size = self._varint(end)
                first = self._stream.tell()
                position = first + size
                if position > end:
                    self.fail(
                        f"{position - end} bytes are missing in {what} (field {number}): the "
                        "file is cut short or damaged"
                    )
            yield _Field(number, wire_type, value, first, position)

    def text(self, part: _Field, what: str) -> str:
        n_bytes = part.end - part.start
        if part.wire_type != LENGTH or n_bytes > MAX_TEXT_BYTES:
            self.fail(f"{what} is not a text of reasonable length")
        self._stream.seek(part.start)
        return self._stream.read(n_bytes).decode("utf-8", errors="replace")

    def text_field(self, part: _Field, number: int, what: str) -> str:
        """Text of one field of the message that `part` holds, '' if absent."""
        for inner in self.fields(part.start, part.end, what):
            if inner.number == number:
                return self.text(inner, what)
        return ""


def check_onnx(path: str | Path) -> OnnxSummary:
    """Raise unless `path` is an ONNX model that is all there; return what it says of itself.

    Raises:
        ModelNotFound: There is no such file.
        ModelFileError: Not ONNX, cut short, a Git-LFS pointer, or weights kept in another file
            that is missing or outside the model's folder.
    """
    path = Path(path)
    if not path.exists():
        raise ModelNotFound(
            f"There is no file {path}",
            hint="`edge-run models list` shows what can be pulled",
            details={"path": str(path)},
        )
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not an ONNX file", details={"path": str(path)})
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(0)
            message = _Message(stream, path, size)
            _check_start(message, stream.read(256))
            summary = _read_model(message)
    except OSError as err:
        raise ModelFileError(f"{path} cannot be read: {err.strerror or err}") from err
    _check_summary(message, summary)
    _check_external(message, path, summary)
    return summary


def _check_start(message: _Message, head: bytes) -> None:
    if not head:
        message.fail("the file is empty")
    if head.startswith(b"version https://git-lfs"):
        message.fail("this is a Git-LFS pointer, not the model itself (`git lfs pull` fetches it)")
    if head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
        message.fail("this is a web page, not a model: the download went to a login or error page")


def _read_model(message: _Message) -> OnnxSummary:
    summary = OnnxSummary(file_bytes=message.file_bytes)
    for part in message.fields(0, message.file_bytes, "the model"):
        if part.number == MODEL_IR_VERSION and part.wire_type == VARINT:
            summary.ir_version = part.value
        elif part.wire_type != LENGTH:
            continue
        elif part.number == MODEL_PRODUCER:
            summary.producer = message.text(part, "the producer's name")
        elif part.number == MODEL_GRAPH:
            _read_graph(message, part, summary)
        elif part.number == MODEL_OPSET:
            _read_opset(message, part, summary)
        elif part.number == MODEL_METADATA:
            key = message.text_field(part, ENTRY_KEY, "a metadata key")
            summary.metadata[key] = message.text_field(part, ENTRY_VALUE, "a metadata value")
    return summary


def _read_graph(message: _Message, graph: _Field, summary: OnnxSummary) -> None:
    for part in message.fields(graph.start, graph.end, "the graph"):
        if part.wire_type != LENGTH:
            continue
        if part.number == GRAPH_NODE:
            summary.n_nodes += 1
        elif part.number == GRAPH_NAME:
            summary.graph_name = message.text(part, "the graph's name")
        elif part.number == GRAPH_INPUT:
            summary.inputs.append(message.text_field(part, VALUE_NAME, "an input"))
        elif part.number == GRAPH_OUTPUT:
            summary.outputs.append(message.text_field(part, VALUE_NAME, "an output"))
        elif part.number == GRAPH_INITIALIZER:
            summary.n_initializers += 1
            _read_initializer(message, part, summary)


def _read_initializer(message: _Message, tensor: _Field, summary: OnnxSummary) -> None:
    for part in message.fields(tensor.start, tensor.end, "a weight"):
        if part.number != TENSOR_EXTERNAL_DATA or part.wire_type != LENGTH:
            continue
        if message.text_field(part, ENTRY_KEY, "a weight's place") == "location":
            location = message.text_field(part, ENTRY_VALUE, "a weight's place")
            if location not in summary.external_files:
                summary.external_files.append(location)


def _read_opset(message: _Message, opset: _Field, summary: OnnxSummary) -> None:
    domain, version = "", 0
    for part in message.fields(opset.start, opset.end, "the operator set"):
        if part.number == OPSET_DOMAIN:
            domain = message.text(part, "an operator domain")
        elif part.number == OPSET_VERSION and part.wire_type == VARINT:
            version = part.value
    if domain in {"", "ai.onnx"}:
        summary.opset = max(summary.opset, version)


def _check_summary(message: _Message, summary: OnnxSummary) -> None:
    if not 1 <= summary.ir_version <= 100:
        message.fail("this is not an ONNX file (it states no format version)")
    if not summary.n_nodes or not summary.outputs:
        message.fail("the ONNX graph is missing or empty")


def _check_external(message: _Message, path: Path, summary: OnnxSummary) -> None:
    """Weights may lie in other files, but only beside or below the model."""
    for location in summary.external_files:
        target = Path(location)
        if target.is_absolute() or ".." in target.parts or not location:
            message.fail(f"weights are said to lie outside the model's folder: {location!r}")
        if not (path.parent / target).is_file():
            message.fail(f"the weights file {location!r} is missing beside the model")
