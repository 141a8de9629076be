"""From a detector's probability map to rotated rectangles around lines of text.

The rule is that of Differentiable Binarization (Liao et al., 2020, arXiv:1911.08947): text
cores above a threshold, a rectangle around each, grown back by area x ratio / perimeter because
the network learned shrunken text. For a rectangle the growth has a closed form, so no polygon
clipping library is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_runtime.optional import require

Quads = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MapOptions:
    """Thresholds of the map.

    Attributes:
        core_threshold: A pixel belongs to text from this probability on.
        box_threshold: A rectangle is kept when the mean probability inside reaches this.
        grow_ratio: How much of area / perimeter each side moves outwards.
        min_core_px: Cores thinner than this many map pixels are specks.
        max_boxes: Upper bound on the number of rectangles of one map.
    """

    core_threshold: float = 0.3
    box_threshold: float = 0.5
    grow_ratio: float = 1.8
    min_core_px: float = 3.0
    max_boxes: int = 5000


@dataclass(frozen=True, slots=True)
class FoundBoxes:
    """Rectangles in map pixels: `quads` (n, 4, 2) clockwise from the top left, `scores` (n,)."""

    quads: Quads
    scores: npt.NDArray[np.float64]


def find_boxes(probability: npt.NDArray[np.float32], options: MapOptions) -> FoundBoxes:
    """Rectangles around the text of a map of shape (height, width), values 0 to 1."""
    cv2 = require("cv2", package="opencv-python-headless")

    mask = (probability > options.core_threshold).astype(np.uint8)
    # Closes one-pixel gaps that would cut a line in two.
    mask = cv2.dilate(mask, np.ones((2, 2), np.uint8))
    # CCOMP lists every blob's outer border at top level, also of a blob inside another's hole.
    contours, tree = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    quads: list[npt.NDArray[np.float64]] = []
    scores: list[float] = []
    for index, contour in enumerate(contours):
        if tree[0][index][3] >= 0 or len(quads) >= options.max_boxes:
            continue
        center, size, angle = cv2.minAreaRect(contour)
        width, height = size
        if min(width, height) < options.min_core_px:
            continue
        corners = cv2.boxPoints((center, size, angle))
        score = _mean_inside(probability, corners)
        if score < options.box_threshold:
            continue
        grow = width * height * options.grow_ratio / (2 * (width + height))
        # Contours run through pixel middles: half a pixel to continuous coordinates.
        middle = (center[0] + 0.5, center[1] + 0.5)
        grown = cv2.boxPoints((middle, (width + 2 * grow, height + 2 * grow), angle))
        quads.append(clockwise_from_top_left(np.asarray(grown, dtype=np.float64)))
        scores.append(score)
    if not quads:
        return FoundBoxes(np.zeros((0, 4, 2)), np.zeros(0))
    return FoundBoxes(np.stack(quads), np.asarray(scores))


def clockwise_from_top_left(corners: Quads) -> Quads:
    """Order the four corners (4, 2) of a rectangle: top left, top right, bottom right, ...

    The top edge is the one whose direction is nearest to horizontal, so a rectangle turned by
    less than 45 degrees keeps its reading direction.
    """
    around = corners - corners.mean(axis=0)
    turn = np.argsort(np.arctan2(around[:, 1], around[:, 0]))
    ring = corners[turn]  # clockwise on screen, because y points down
    edges = np.roll(ring, -1, axis=0) - ring
    length = np.hypot(edges[:, 0], edges[:, 1])
    rightward = edges[:, 0] / np.where(length > 0, length, 1.0)
    return np.roll(ring, -int(np.argmax(rightward)), axis=0)


def _mean_inside(probability: npt.NDArray[np.float32], corners: npt.NDArray[np.float32]) -> float:
    cv2 = require("cv2", package="opencv-python-headless")

    height, width = probability.shape
    x0 = int(np.clip(np.floor(corners[:, 0].min()), 0, width - 1))
    x1 = int(np.clip(np.ceil(corners[:, 0].max()), 0, width - 1))
    y0 = int(np.clip(np.floor(corners[:, 1].min()), 0, height - 1))
    y1 = int(np.clip(np.ceil(corners[:, 1].max()), 0, height - 1))
    mask = np.zeros((y1 - y0 + 1, x1 - x0 + 1), np.uint8)
    cv2.fillPoly(mask, [(corners - (x0, y0)).astype(np.int32)], 1)
    return float(cv2.mean(probability[y0 : y1 + 1, x0 : x1 + 1], mask)[0])
