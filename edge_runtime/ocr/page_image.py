"""One page as pixels that stages can work on, with the way back to the original raster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from edge_runtime.errors import UsageError
from edge_runtime.ocr.affine import IDENTITY, Affine
from edge_runtime.values import Box, Line, PageInfo

Pixels: TypeAlias = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class PageImage:
    """An upright page.

    Attributes:
        pixels: uint8 RGB, shape (height, width, 3), C-contiguous, as a viewer would show it.
        info: Number and size of the *original* raster (as stored: EXIF not applied; of a PDF the
            page rendered upright at `info.dpi`). `info.rotation` is how far, in degrees
            clockwise, the content stands turned in that raster.
        to_original: Maps a point of `pixels` to a point of the original raster.
        text_lines: Lines of a PDF's text layer in reading order; `quad` in original pixels,
            `reading` in pixels of this image. Empty when the page has to be recognised.
    """

    pixels: Pixels
    info: PageInfo
    to_original: Affine = IDENTITY
    text_lines: tuple[Line, ...] = ()

    def __post_init__(self) -> None:
        if self.pixels.ndim != 3 or self.pixels.shape[2] != 3 or self.pixels.dtype != np.uint8:
            raise UsageError(
                f"A page is (height, width, 3) uint8, not {self.pixels.shape} {self.pixels.dtype}.",
                hint="open it with edge_runtime.ocr.loading.load_pages",
            )

    @property
    def width(self) -> int:
        """Columns of `pixels` (not of the original raster)."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Rows of `pixels` (not of the original raster)."""
        return int(self.pixels.shape[0])

    def rotated(self, angle_ccw: int) -> PageImage:
        """The page turned counter-clockwise by 0, 90, 180 or 270 degrees.

        Raises:
            UsageError: another angle.
        """
        undo = Affine.undo_turn(angle_ccw, width=self.width, height=self.height)
        angle = angle_ccw % 360
        if angle == 0:
            return self
        turned = np.ascontiguousarray(np.rot90(self.pixels, angle // 90))
        info = replace(self.info, rotation=(self.info.rotation + angle) % 360)
        return self._derived(turned, undo, info)

    def scaled(self, factor: float) -> PageImage:
        """The page resized by `factor` (both sides, at least one pixel), antialiased.

        Raises:
            UsageError: `factor` is not above 0.
        """
        if not factor > 0:
            raise UsageError(f"A page cannot be scaled by {factor}.", hint="use a factor above 0")
        return self.resized(max(1, round(self.width * factor)), max(1, round(self.height * factor)))

    def resized(self, width: int, height: int) -> PageImage:
        """The page with exactly this many columns and rows, antialiased."""
        if (width, height) == (self.width, self.height):
            return self
        from PIL import Image

        image = Image.fromarray(self.pixels)
        shrinking = width * height < self.width * self.height
        small = image.resize(
            (width, height),
            Image.Resampling.BILINEAR if shrinking else Image.Resampling.BICUBIC,
            # a box filter down to twice the size first: much faster for large factors
            reducing_gap=2.0 if shrinking else None,
        )
        undo = Affine.scale(self.width / width, self.height / height)
        return self._derived(np.array(small, dtype=np.uint8), undo, self.info)

    def crop(self, x0: int, y0: int, x1: int, y1: int) -> PageImage:
        """The part from (`x0`, `y0`) up to, not including, (`x1`, `y1`), clipped to the page.

        Text lines whose middle lies outside are left out.

        Raises:
            UsageError: nothing is left.
        """
        left, top = max(0, x0), max(0, y0)
        right, bottom = min(self.width, x1), min(self.height, y1)
        if left >= right or top >= bottom:
            raise UsageError(
                f"The part ({x0}, {y0})-({x1}, {y1}) lies outside the page "
                f"of {self.width}x{self.height} pixels."
            )
        part = np.ascontiguousarray(self.pixels[top:bottom, left:right])
        derived = self._derived(part, Affine.shift(left, top), self.info)
        inside = tuple(
            line
            for line in derived.text_lines
            if 0 <= line.reading.center[0] <= right - left
            and 0 <= line.reading.center[1] <= bottom - top
        )
        return replace(derived, text_lines=inside)

    def box_to_original(self, box: Box) -> Box:
        """The axis-aligned box in original pixels around a box of this image."""
        return self.to_original.apply_box(box)

    def _derived(self, pixels: Pixels, to_self: Affine, info: PageInfo) -> PageImage:
        from_self = to_self.inverse()
        lines = tuple(
            replace(line, reading=from_self.apply_box(line.reading)) for line in self.text_lines
        )
        return PageImage(pixels, info, self.to_original.compose(to_self), lines)
