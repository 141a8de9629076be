"""How large the text of a page is, told in a few milliseconds without a model.

Detection costs time in proportion to pixels, and finds text best when its lines are neither
tiny nor huge. The height of a typical ink blob says which size to give a page, so that a large
scan of large print is not searched at full resolution and small print is not squeezed.
"""

from __future__ import annotations

import math

import numpy as np

from edge_runtime.ocr.page_image import Pixels
from edge_runtime.optional import require

_MAX_PX = 2_000_000
_MIN_BLOBS = 20
_WINDOW_PX = 31
_DARKER_BY = 12
_HEIGHTS_PX = (5, 120)
_PERCENTILE = 60


def character_height_px(pixels: Pixels) -> float | None:
    """Height of a typical character of a page (h, w, 3) uint8 RGB, None when there are few.

    Ink is what is darker than its surroundings; blobs that are too wide, too thin or too full
    for a character do not count. Light text on dark ground is not seen.
    """
    cv2 = require("cv2", package="opencv-python-headless")
    height, width = pixels.shape[:2]
    factor = min(1.0, math.sqrt(_MAX_PX / (height * width)))
    gray = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    if factor < 1:
        size = (max(1, round(width * factor)), max(1, round(height * factor)))
        gray = cv2.resize(gray, size, interpolation=cv2.INTER_AREA)
    ink = cv2.adaptiveThreshold(
        gray, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, _WINDOW_PX, _DARKER_BY
    )
    _, _, blobs, _ = cv2.connectedComponentsWithStats(ink, connectivity=8, ltype=cv2.CV_32S)
    wide, high, area = blobs[1:, 2], blobs[1:, 3], blobs[1:, 4]
    is_character = (
        (high >= _HEIGHTS_PX[0])
        & (high <= _HEIGHTS_PX[1])
        & (wide <= 3 * high)
        & (high <= 6 * wide)
        & (area >= 0.12 * wide * high)
        & (area <= 0.9 * wide * high + 8)
    )
    heights = high[is_character]
    if len(heights) < _MIN_BLOBS:
        return None
    return float(np.percentile(heights, _PERCENTILE)) / factor
