"""ONNX files are recognised, and cut or foreign ones refused, without onnx or onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from edge_runtime.errors import ModelFileError, ModelNotFound
from edge_runtime.models.onnx_file import check_onnx


def small_model(**metadata: str) -> onnx.ModelProto:
    weight = numpy_helper.from_array(np.arange(64, dtype=np.float32).reshape(8, 8), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 8])],
        [weight],
    )
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, opset_imports=[opset], producer_name="tests", ir_version=10)
    helper.set_model_props(model, metadata)
    return model


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "m.onnx"
    target.write_bytes(small_model(character="a\nb").SerializeToString())
    return target


def test_summary_of_a_model(path: Path) -> None:
    summary = check_onnx(path)
    assert (summary.ir_version, summary.opset, summary.producer) == (10, 17, "tests")
    assert (summary.n_nodes, summary.n_initializers, summary.graph_name) == (1, 1, "small")
    assert (summary.inputs, summary.outputs) == (["x"], ["y"])
    assert summary.metadata == {"character": "a\nb"}


def test_every_cut_is_refused(path: Path) -> None:
    content = path.read_bytes()
    reasons: set[str] = set()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        # Cutting off only the trailing metadata leaves a whole model.
        try:
            check_onnx(path)
        except ModelFileError as err:
            reasons.add(err.message.partition(": ")[2][:20])
        else:
            onnx.load_model_from_string(content[:size])
    assert len(reasons) >= 3


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git-LFS"),
        (b"<html><body>404</body></html>", "web page"),
        (b"GGUF\x03\x00\x00\x00", "not an ONNX file|missing"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), "not an ONNX file|missing"),
        (b"\x08\x0a", "graph is missing or empty"),
        (b"\x08" + b"\xff" * 12, "longer than 10 bytes"),
        (b"\x3a\xff\xff\xff\x7f", "bytes are missing"),
    ],
)
def test_foreign_file_is_refused(path: Path, content: bytes, match: str) -> None:
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=match):
        check_onnx(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound):
        check_onnx(tmp_path / "none.onnx")
    with pytest.raises(ModelFileError, match="folder"):
        check_onnx(tmp_path)


def external(tmp_path: Path, location: str) -> Path:
    model = small_model()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", "256")):
        tensor.external_data.add(key=key, value=value)
    target = tmp_path / "m.onnx"
    target.write_bytes(model.SerializeToString())
    return target


def test_weights_in_a_second_file(tmp_path: Path) -> None:
    path = external(tmp_path, "m.bin")
    with pytest.raises(ModelFileError, match=r"'m\.bin' is missing"):
        check_onnx(path)
    (tmp_path / "m.bin").write_bytes(bytes(256))
    assert check_onnx(path).external_files == ["m.bin"]


@pytest.mark.parametrize("location", ["/etc/passwd", "../../secret", ""])
def test_weights_outside_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    with pytest.raises(ModelFileError, match="outside the model's folder"):
        check_onnx(external(tmp_path, location))


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_damaged_bytes_never_surprise(data: Any, tmp_path: Path) -> None:
    content = bytearray(small_model().SerializeToString())
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "m.onnx"
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    try:
        summary = check_onnx(path)
    except ModelFileError:
        return
    assert summary.n_nodes >= 1
