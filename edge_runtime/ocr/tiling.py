"""How large a page the detector sees, and in which pieces.

The map of a page is computed tile by tile and put together again, so a page of any shape costs
time in proportion to its area and never more memory than one tile needs. Each tile sees a margin
around the part it is responsible for; the seams lie where both neighbours had context.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

GRID_PX = 32
"""The detector's total stride: sides of its input are multiples of this."""


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    """How a page is resized for detection.

    Attributes:
        short_side_px: The shorter side is brought to about this many pixels, unless
        character_px: characters would be lower or higher than this, when their height is known.
        max_departure: Their height changes the scale by this factor at most.
        max_enlarge: Small pictures are not enlarged by more than this.
        max_area_px: The resized page has at most this many pixels, tall pages excepted as far
            as `min_short_side_px` says.
        min_short_side_px: `max_area_px` does not push the shorter side below this.
    """

    short_side_px: int = 608
    character_px: tuple[float, float] = (11.0, 24.0)
    max_departure: float = 2.0
    max_enlarge: float = 2.0
    max_area_px: int = 4_000_000
    min_short_side_px: int = 160


@dataclass(frozen=True, slots=True)
class Tile:
    """One piece in resized pixels: what is `seen` and the part of it that is `kept`.

    Both are (x0, y0, x1, y1); `seen` contains `kept`, and all `kept` parts cover the page
    without overlap.
    """

    seen: tuple[int, int, int, int]
    kept: tuple[int, int, int, int]


def detection_scale(
    width: int, height: int, character_height_px: float | None, options: ScaleOptions
) -> float:
    """The factor from page pixels to detector pixels."""
    short = min(width, height)
    scale = options.short_side_px / short
    if character_height_px is not None:
        low, high = (side / character_height_px for side in options.character_px)
        limit = options.max_departure
        scale = min(max(min(max(scale, low), high), scale / limit), scale * limit)
    scale = min(scale, options.max_enlarge)
    by_area = math.sqrt(options.max_area_px / (width * height))
    floor = min(scale, options.min_short_side_px / short)
    return max(min(scale, by_area), floor)


def tiles(width: int, height: int, *, max_side_px: int, margin_px: int) -> list[Tile]:
    """Cut a resized page into tiles of at most `max_side_px` plus a margin on each inner side.

    A page that fits is one tile. Sides are cut evenly, so no sliver is left at the end.
    """
    columns = _spans(width, max_side_px, margin_px)
    rows = _spans(height, max_side_px, margin_px)
    return [
        Tile((sx0, sy0, sx1, sy1), (kx0, ky0, kx1, ky1))
        for (sy0, sy1), (ky0, ky1) in rows
        for (sx0, sx1), (kx0, kx1) in columns
    ]


def padded(side: int) -> int:
    """The next multiple of the grid, at least one cell."""
    return max(GRID_PX, -(-side // GRID_PX) * GRID_PX)


def _spans(
    length: int, max_side_px: int, margin_px: int
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    if length <= max_side_px:
        return [((0, length), (0, length))]
    inner = max(GRID_PX, max_side_px - 2 * margin_px)
    n_parts = -(-length // inner)
    edges = [round(i * length / n_parts) for i in range(n_parts + 1)]
    return [
        ((max(0, a - margin_px), min(length, b + margin_px)), (a, b))
        for a, b in itertools.pairwise(edges)
    ]
