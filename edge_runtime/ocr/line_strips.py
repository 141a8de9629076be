"""Cutting a line of text out of a page: one strip of fixed height, upright, left to right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_runtime.ocr.page_image import Pixels
from edge_runtime.optional import require

STRIP_HEIGHT_PX = 48
_STRAIGHT_PX = 0.75


@dataclass(frozen=True, slots=True)
class StripPart:
    """A piece of a long strip: columns `x0` to `x1`, `joint` what stands before it in the text."""

    x0: int
    x1: int
    joint: str = ""


def strip_width(quad: npt.NDArray[np.float64]) -> int:
    """Columns of the strip of a quad (4, 2), clockwise from the beginning of the text."""
    along = max(_distance(quad[0], quad[1]), _distance(quad[3], quad[2]))
    across = max(_distance(quad[0], quad[3]), _distance(quad[1], quad[2]), 1.0)
    return max(1, round(STRIP_HEIGHT_PX * along / across))


def cut_strip(pixels: Pixels, quad: npt.NDArray[np.float64]) -> Pixels:
    """The text inside `quad` as (48, strip_width, 3) uint8.

    What lies beyond the page repeats its edge.
    """
    cv2 = require("cv2", package="opencv-python-headless")

    width = strip_width(quad)
    patch, corners = _neighbourhood(pixels, quad)
    straight = _straight_box(corners)
    if straight is not None:
        x0, y0, x1, y1 = straight
        height, full = patch.shape[:2]
        part = patch[max(0, y0) : min(height, y1), max(0, x0) : min(full, x1)]
        if part.size:
            return _resize(part, width)
    along = max(1, round(_distance(corners[0], corners[1])))
    across = max(1, round(_distance(corners[0], corners[3])))
    target = np.array([[0, 0], [along, 0], [0, across]], np.float32)
    # warpAffine works with pixel middles at whole numbers; quads are continuous.
    source = corners[[0, 1, 3]].astype(np.float32) - 0.5
    matrix = cv2.getAffineTransform(source, target - 0.5)
    upright = cv2.warpAffine(
        patch,
        matrix,
        (along, across),
        flags=cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return _resize(upright, width)


def split_strip(strip: Pixels, *, max_width_px: int) -> list[StripPart]:
    """Cut a strip longer than `max_width_px` at its emptiest columns.

    A strip that fits is one part. A cut in a gap at least as wide as a space is joined with a
    blank, any other with nothing.
    """
    width = strip.shape[1]
    if width <= max_width_px:
        return [StripPart(0, width)]
    gray = strip.astype(np.int16).mean(axis=2)
    contrast = gray.max(axis=0) - gray.min(axis=0)
    quiet = contrast < max(24.0, 0.25 * float(contrast.max()))
    parts: list[StripPart] = []
    start, joint = 0, ""
    while width - start > max_width_px:
        low, high = start + max_width_px // 2, start + max_width_px
        cut, is_gap = _widest_gap(quiet, contrast, low, high)
        parts.append(StripPart(start, cut, joint))
        start, joint = cut, " " if is_gap else ""
    parts.append(StripPart(start, width, joint))
    return parts


def _widest_gap(
    quiet: npt.NDArray[np.bool_], contrast: npt.NDArray[np.float64], low: int, high: int
) -> tuple[int, bool]:
    window = quiet[low:high].astype(np.int8)
    steps = np.flatnonzero(np.diff(np.concatenate([[0], window, [0]])))
    starts, ends = steps[::2], steps[1::2]
    if len(starts) == 0:
        return low + int(np.argmin(contrast[low:high])), False
    best = int(np.argmax(ends - starts))
    gap = int(ends[best] - starts[best])
    return low + int(starts[best] + ends[best]) // 2, gap >= STRIP_HEIGHT_PX // 5


def _neighbourhood(
    pixels: Pixels, quad: npt.NDArray[np.float64]
) -> tuple[Pixels, npt.NDArray[np.float64]]:
    """The part of the page around the quad: keeps OpenCV's 32767-pixel limit out of reach."""
    height, width = pixels.shape[:2]
    margin = 2
    x0 = int(np.clip(np.floor(quad[:, 0].min()) - margin, 0, width - 1))
    y0 = int(np.clip(np.floor(quad[:, 1].min()) - margin, 0, height - 1))
    x1 = int(np.clip(np.ceil(quad[:, 0].max()) + margin, x0 + 1, width))
    y1 = int(np.clip(np.ceil(quad[:, 1].max()) + margin, y0 + 1, height))
    return pixels[y0:y1, x0:x1], quad - (x0, y0)


def _straight_box(quad: npt.NDArray[np.float64]) -> tuple[int, int, int, int] | None:
    """The pixel box of a quad that is upright to within a pixel, else None."""
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = quad
    slant = max(abs(ay - by), abs(cy - dy), abs(ax - dx), abs(bx - cx))
    if slant > _STRAIGHT_PX or bx <= ax or dy <= ay:
        return None
    return (
        round((ax + dx) / 2),
        round((ay + by) / 2),
        max(round((bx + cx) / 2), round((ax + dx) / 2) + 1),
        max(round((cy + dy) / 2), round((ay + by) / 2) + 1),
    )


def _resize(part: Pixels, width: int) -> Pixels:
    cv2 = require("cv2", package="opencv-python-headless")

    how = cv2.INTER_AREA if part.shape[0] > STRIP_HEIGHT_PX * 1.5 else cv2.INTER_LINEAR
    return cv2.resize(part, (width, STRIP_HEIGHT_PX), interpolation=how)


def _distance(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    return float(np.hypot(b[0] - a[0], b[1] - a[1]))
