"""Maps between pixel grids: what was scaled, turned or cropped can be traced back.

Coordinates are continuous: pixel (i, j) covers [i, i+1) x [j, j+1), its middle is (i+.5, j+.5),
and the right edge of an image `w` pixels wide is x = w. Turning an image therefore mirrors at
`w`, not at `w - 1`, and boxes keep their edges exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from edge_runtime.errors import UsageError
from edge_runtime.values import Box, Point, Quad

Points: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Affine:
    """x' = xx*x + xy*y + x0,  y' = yx*x + yy*y + y0 (the rows of a 2x3 matrix)."""

    xx: float = 1.0
    xy: float = 0.0
    x0: float = 0.0
    yx: float = 0.0
    yy: float = 1.0
    y0: float = 0.0

    @classmethod
    def scale(cls, sx: float, sy: float) -> Affine:
        """Multiply x by `sx` and y by `sy`."""
        return cls(xx=sx, yy=sy)

    @classmethod
    def shift(cls, dx: float, dy: float) -> Affine:
        """Move by (`dx`, `dy`)."""
        return cls(x0=dx, y0=dy)

    @classmethod
    def undo_turn(cls, angle_ccw: int, *, width: int, height: int) -> Affine:
        """From an image that was turned counter-clockwise back to it before, `width` x `height`.

        Raises:
            UsageError: `angle_ccw` is not a multiple of 90.
        """
        match angle_ccw % 360:
            case 0:
                return cls()
            case 90:
                return cls(xx=0, xy=-1, x0=width, yx=1, yy=0, y0=0)
            case 180:
                return cls(xx=-1, xy=0, x0=width, yx=0, yy=-1, y0=height)
            case 270:
                return cls(xx=0, xy=1, x0=0, yx=-1, yy=0, y0=height)
            case _:
                raise UsageError(
                    f"A page is turned by quarters only, not by {angle_ccw} degrees.",
                    hint="use 0, 90, 180 or 270",
                )

    @classmethod
    def undo_mirror(cls, *, width: int) -> Affine:
        """From an image mirrored left to right back to it before, `width` pixels wide."""
        return cls(xx=-1, x0=width)

    @property
    def matrix(self) -> Points:
        """The map as a (2, 3) float64 array."""
        return np.array([[self.xx, self.xy, self.x0], [self.yx, self.yy, self.y0]])

    @property
    def is_identity(self) -> bool:
        """Whether nothing moves."""
        return self == IDENTITY

    def apply(self, points: npt.NDArray[Any]) -> Points:
        """Map points, shape (..., 2), to an array of the same shape in float64."""
        matrix = self.matrix
        return np.asarray(points, dtype=np.float64) @ matrix[:, :2].T + matrix[:, 2]

    def apply_point(self, point: Point) -> Point:
        """Map one point."""
        x, y = point
        return (
            float(self.xx * x + self.xy * y + self.x0),
            float(self.yx * x + self.yy * y + self.y0),
        )

    def apply_quad(self, quad: Quad) -> Quad:
        """Map the four corners, keeping their order (the first stays where the text begins)."""
        a, b, c, d = quad.points
        return Quad(
            (self.apply_point(a), self.apply_point(b), self.apply_point(c), self.apply_point(d))
        )

    def apply_box(self, box: Box) -> Box:
        """Map a box and take the axis-aligned box around the result."""
        return self.apply_quad(Quad.from_box(box)).box

    def compose(self, inner: Affine) -> Affine:
        """The map that applies `inner` first and this one after it."""
        return Affine(
            xx=self.xx * inner.xx + self.xy * inner.yx,
            xy=self.xx * inner.xy + self.xy * inner.yy,
            x0=self.xx * inner.x0 + self.xy * inner.y0 + self.x0,
            yx=self.yx * inner.xx + self.yy * inner.yx,
            yy=self.yx * inner.xy + self.yy * inner.yy,
            y0=self.yx * inner.x0 + self.yy * inner.y0 + self.y0,
        )

    def inverse(self) -> Affine:
        """The map back.

        Raises:
            UsageError: the map squeezes the plane to a line.
        """
        det = self.xx * self.yy - self.xy * self.yx
        if det == 0:
            raise UsageError("This map cannot be undone: it flattens the page.")
        xx, xy = self.yy / det, -self.xy / det
        yx, yy = -self.yx / det, self.xx / det
        return Affine(
            xx=xx,
            xy=xy,
            x0=-(xx * self.x0 + xy * self.y0),
            yx=yx,
            yy=yy,
            y0=-(yx * self.x0 + yy * self.y0),
        )


IDENTITY = Affine()
