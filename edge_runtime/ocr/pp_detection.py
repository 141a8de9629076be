"""PP-OCR text detection on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge_runtime.errors import Cancelled
from edge_runtime.ocr.onnx_session import FloatArray, OnnxModel, SessionOptions
from edge_runtime.ocr.page_image import Pixels
from edge_runtime.ocr.probability_map import FoundBoxes, MapOptions, find_boxes
from edge_runtime.ocr.text_size import character_height_px
from edge_runtime.ocr.tiling import ScaleOptions, detection_scale, padded, tiles
from edge_runtime.optional import require

_TOO_SMALL_PX = 4


@dataclass(frozen=True, slots=True)
class DetectionOptions:
    """Settings of the detector.

    Attributes:
        n_threads: Threads of one forward pass.
        scale: How a page is resized.
        boxes: Thresholds of the probability map.
        tile_px: Longest side of a piece that is looked at in one go.
        margin_px: What each piece sees beyond its own part.
    """

    n_threads: int = 2
    scale: ScaleOptions = field(default_factory=ScaleOptions)
    boxes: MapOptions = field(default_factory=MapOptions)
    tile_px: int = 1600
    margin_px: int = 96


class TextDetector:
    """Finds lines of text on a page."""

    def __init__(self, path: Path, options: DetectionOptions) -> None:
        self._model = OnnxModel(path, SessionOptions(n_threads=options.n_threads))
        self._options = options

    def detect(self, pixels: Pixels, *, cancel: Callable[[], bool] | None = None) -> FoundBoxes:
        """Rectangles around lines, in pixels of the page (h, w, 3) uint8 RGB.

        Raises:
            Cancelled: `cancel` returned true between two pieces.
            StageError: ONNX Runtime failed.
        """
        height, width = pixels.shape[:2]
        if min(height, width) < _TOO_SMALL_PX:
            return FoundBoxes(np.zeros((0, 4, 2)), np.zeros(0))
        scale = detection_scale(width, height, character_height_px(pixels), self._options.scale)
        probability = self._map(pixels, scale, cancel)
        found = find_boxes(probability, self._options.boxes)
        map_height, map_width = probability.shape
        factor = np.array([width / map_width, height / map_height])
        return FoundBoxes(found.quads * factor, found.scores)

    def _map(self, pixels: Pixels, scale: float, cancel: Callable[[], bool] | None) -> FloatArray:
        cv2 = require("cv2", package="opencv-python-headless")

        height, width = pixels.shape[:2]
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        small = pixels if size == (width, height) else cv2.resize(pixels, size, interpolation=how)
        whole = np.zeros((size[1], size[0]), np.float32)
        for tile in tiles(
            *size, max_side_px=self._options.tile_px, margin_px=self._options.margin_px
        ):
            if cancel is not None and cancel():
                raise Cancelled("Stopped while looking for text.", stage="ocr")
            x0, y0, x1, y1 = tile.seen
            kx0, ky0, kx1, ky1 = tile.kept
            part = self._model.run(_as_tensor(small[y0:y1, x0:x1]))[0, 0]
            whole[ky0:ky1, kx0:kx1] = part[ky0 - y0 : ky1 - y0, kx0 - x0 : kx1 - x0]
        return whole


def _as_tensor(part: npt.NDArray[np.uint8]) -> FloatArray:
    """RGB bytes to the (1, 3, h, w) BGR floats in [-1, 1] that PP-OCR was trained on."""
    cv2 = require("cv2", package="opencv-python-headless")

    height, width = part.shape[:2]
    bottom, right = padded(height) - height, padded(width) - width
    if bottom or right:
        edge = np.concatenate([part[-1, :], part[:, -1]])
        colour = [float(v) for v in np.median(edge, axis=0)]
        part = cv2.copyMakeBorder(part, 0, bottom, 0, right, cv2.BORDER_CONSTANT, value=colour)
    bgr = np.ascontiguousarray(part[:, :, ::-1].transpose(2, 0, 1))
    tensor = bgr.astype(np.float32)
    tensor *= 1 / 127.5
    tensor -= 1.0
    return tensor[np.newaxis]
