"""Boxes of a page with the skew taken out: plain intervals that layout can reason about."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_LONG_ENOUGH = 2.5
_MAX_SKEW_RAD = math.radians(30)


@dataclass(frozen=True, slots=True)
class FlatBoxes:
    """Axis-aligned boxes in deskewed pixels, all arrays of shape (n,).

    `height` is the thickness of the line, `x0..x1` and `y0..y1` its extents.
    """

    x0: Floats
    x1: Floats
    y0: Floats
    y1: Floats
    height: Floats

    def __len__(self) -> int:
        return len(self.x0)

    @property
    def middle_y(self) -> Floats:
        """Vertical middles."""
        return (self.y0 + self.y1) / 2

    @property
    def width(self) -> Floats:
        """Horizontal extents."""
        return self.x1 - self.x0

    @property
    def typical_height(self) -> float:
        """Median thickness, 1 for none."""
        return max(1e-6, float(np.median(self.height))) if len(self) else 1.0

    def take(self, indices: npt.NDArray[np.intp]) -> FlatBoxes:
        """The chosen boxes."""
        return FlatBoxes(
            self.x0[indices],
            self.x1[indices],
            self.y0[indices],
            self.y1[indices],
            self.height[indices],
        )


def skew_angle(quads: Floats) -> float:
    """The angle in radians at which most text runs, clockwise on screen; 0 when unclear.

    The median over long boxes, weighted by length: a logo or a stamp at an angle does not count
    against a page of straight lines.
    """
    along = (quads[:, 1] - quads[:, 0] + quads[:, 2] - quads[:, 3]) / 2
    across = (quads[:, 3] - quads[:, 0] + quads[:, 2] - quads[:, 1]) / 2
    length = np.hypot(along[:, 0], along[:, 1])
    thickness = np.hypot(across[:, 0], across[:, 1])
    angle = np.arctan2(along[:, 1], along[:, 0])
    usable = (length > _LONG_ENOUGH * thickness) & (np.abs(angle) < _MAX_SKEW_RAD)
    if not usable.any():
        return 0.0
    angles, weights = angle[usable], length[usable]
    order = np.argsort(angles)
    running = np.cumsum(weights[order])
    return float(angles[order][np.searchsorted(running, running[-1] / 2)])


def flatten(quads: Floats) -> FlatBoxes:
    """Turn quads (n, 4, 2) back by the page's skew and take their extents.

    The extents are those of the line itself, not of the box around a still slightly turned quad:
    long lines would overlap their neighbours otherwise.
    """
    angle = skew_angle(quads)
    cos, sin = math.cos(angle), math.sin(angle)
    turned = quads @ np.array([[cos, -sin], [sin, cos]])
    middle = turned.mean(axis=1)
    half_width = (turned[:, :, 0].max(axis=1) - turned[:, :, 0].min(axis=1)) / 2
    thickness = _thickness(turned)
    return FlatBoxes(
        x0=middle[:, 0] - half_width,
        x1=middle[:, 0] + half_width,
        y0=middle[:, 1] - thickness / 2,
        y1=middle[:, 1] + thickness / 2,
        height=thickness,
    )


def _thickness(quads: Floats) -> Floats:
    """Extent across the line; of text that runs upwards or downwards its vertical extent."""
    along = (quads[:, 1] - quads[:, 0] + quads[:, 2] - quads[:, 3]) / 2
    across = (quads[:, 3] - quads[:, 0] + quads[:, 2] - quads[:, 1]) / 2
    is_upright = np.abs(along[:, 0]) >= np.abs(along[:, 1])
    extent = quads[:, :, 1].max(axis=1) - quads[:, :, 1].min(axis=1)
    return np.maximum(np.where(is_upright, np.hypot(across[:, 0], across[:, 1]), extent), 1e-6)
