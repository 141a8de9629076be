"""Write a tiny text detector and a tiny text recogniser, so that tests run the real ONNX Runtime.

Both have the inputs, outputs and metadata of PP-OCR models and no learned weights. The detector
marks everything that is not white. The recogniser reads blocks of colour: the four letters
A, B, C, D and the space are the inks of `INKS`, white is the gap between them. `draw_line` draws
such text. What it reads is exact, so tests can compare whole pages.

    python tools/make_tiny_onnx.py FOLDER

Needs the packages `onnx` and `numpy`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 13
INKS = {
    "A": (0, 255, 255),  # dark in red only
    "B": (255, 0, 255),
    "C": (255, 255, 0),
    "D": (0, 0, 0),
    " ": (0, 0, 255),  # dark in red and green
}
CHARACTERS = ("A", "B", "C", "D")
CHARACTER_PX = 24
GAP_PX = 12
LINE_PX = 24
_SHARPNESS = 30.0


def write_models(folder: Path) -> dict[str, Path]:
    """Write `det.onnx`, `rec.onnx` and `keys.txt`; the keys of the result are det, rec, keys."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {role: folder / f"{role}.onnx" for role in ("det", "rec")}
    onnx.save(detector(), files["det"])
    onnx.save(recogniser(), files["rec"])
    files["keys"] = folder / "keys.txt"
    files["keys"].write_text("\n".join(CHARACTERS) + "\n", encoding="utf-8")
    return files


def detector() -> onnx.ModelProto:
    """(n, 3, h, w) in -1..1 to a map (n, 1, h, w): dark runs, joined sideways, cores only."""
    nodes = [
        helper.make_node("ReduceMin", ["x"], ["darkest"], axes=[1], keepdims=1),
        helper.make_node("Neg", ["darkest"], ["ink"]),
        # close the gaps between letters and words, but not the space between lines
        _pool("ink", "wide", height=1, width=31),
        # keep the middle of the line, as a real detector does
        helper.make_node("Neg", ["wide"], ["paper"]),
        _pool("paper", "spread", height=11, width=23),
        helper.make_node("Mul", ["spread", "minus_k"], ["scaled"]),
        helper.make_node("Sigmoid", ["scaled"], ["map"]),
    ]
    return _model(
        "tiny_detector",
        nodes,
        [("minus_k", np.array(-_SHARPNESS, np.float32))],
        inputs=["n", 3, "h", "w"],
        output=("map", ["n", 1, "h", "w"]),
    )


def recogniser(*, with_characters: bool = True) -> onnx.ModelProto:
    """(n, 3, 48, w) in -1..1 to probabilities (n, w/8, 6): blank, A, B, C, D, space."""
    # rows: darkness of blue, green, red (the input is BGR), then a constant
    weights = np.array(
        [
            # blank    A     B     C     D   space
            [0.00, -1.0, -1.0, 1.0, 0.4, -1.0],
            [0.00, -1.0, 1.0, -1.0, 0.4, 0.5],
            [0.00, 1.0, -1.0, -1.0, 0.4, 0.5],
        ],
        np.float32,
    )
    bias = np.array([0.65, 0, 0, 0, 0, 0], np.float32)
    nodes = [
        helper.make_node("Sub", ["one", "x"], ["dark2"]),
        helper.make_node("Mul", ["dark2", "half"], ["dark"]),
        helper.make_node("ReduceMax", ["dark"], ["column"], axes=[2], keepdims=1),
        helper.make_node("AveragePool", ["column"], ["cells"], kernel_shape=[1, 8], strides=[1, 8]),
        helper.make_node("Squeeze", ["cells", "axis_2"], ["steps_last"]),
        helper.make_node("Transpose", ["steps_last"], ["steps"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["steps", "weights"], ["raw"]),
        helper.make_node("Add", ["raw", "bias"], ["logits"]),
        helper.make_node("Mul", ["logits", "sharpness"], ["sharp"]),
        helper.make_node("Softmax", ["sharp"], ["probabilities"], axis=2),
    ]
    model = _model(
        "tiny_recogniser",
        nodes,
        [
            ("one", np.array(1, np.float32)),
            ("half", np.array(0.5, np.float32)),
            ("axis_2", np.array([2], np.int64)),
            ("weights", weights),
            ("bias", bias),
            ("sharpness", np.array(_SHARPNESS, np.float32)),
        ],
        inputs=["n", 3, 48, "w"],
        output=("probabilities", ["n", "t", 6]),
    )
    if with_characters:
        helper.set_model_props(model, {"character": "\n".join(CHARACTERS)})
    return model


def draw_line(canvas: np.ndarray, text: str, x: int, y: int) -> tuple[int, int, int, int]:
    """Draw `text` on an RGB canvas with its top left at (x, y); return its box."""
    at = x
    for character in text:
        canvas[y : y + LINE_PX, at : at + CHARACTER_PX] = INKS[character]
        at += CHARACTER_PX + GAP_PX
    return x, y, at - GAP_PX, y + LINE_PX


def _pool(source: str, target: str, *, height: int, width: int) -> Any:
    return helper.make_node(
        "MaxPool",
        [source],
        [target],
        kernel_shape=[height, width],
        pads=[height // 2, width // 2, height // 2, width // 2],
        strides=[1, 1],
    )


def _model(
    name: str,
    nodes: list[Any],
    constants: list[tuple[str, np.ndarray]],
    *,
    inputs: list[int | str],
    output: tuple[str, list[int | str]],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, inputs)],
        [helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])],
        [numpy_helper.from_array(value, key) for key, value in constants],
    )
    model = helper.make_model(
        graph,
        producer_name="edge-runtime",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=8,
    )
    onnx.checker.check_model(model)
    return model


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    for role, path in write_models(arguments.folder).items():
        print(f"{role}: {path} ({path.stat().st_size} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
