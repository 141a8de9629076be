"""Boxes of a page that was looked at in overlapping tiles: what two tiles saw becomes one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edge_runtime.ocr.probability_map import FoundBoxes, clockwise_from_top_left

_SAME_LINE = 0.6
_SAME_BOX = 0.5
_REACH = 0.3


def merge_tiles(found: Sequence[FoundBoxes]) -> FoundBoxes:
    """Join the boxes of all tiles, all in pixels of the page.

    Boxes of different tiles that cover one another, or continue one another on the same line
    with an overlap, are parts of one line: they are replaced by the rectangle around both.
    """
    quads = [quad for tile in found for quad in tile.quads]
    scores = [float(score) for tile in found for score in tile.scores]
    tile_of = [index for index, tile in enumerate(found) for _ in tile.scores]
    if len(found) < 2 or not quads:
        return FoundBoxes(np.asarray(quads).reshape(-1, 4, 2), np.asarray(scores))
    group_of = list(range(len(quads)))

    def root(index: int) -> int:
        while group_of[index] != index:
            index = group_of[index]
        return index

    low = np.array([quad.min(axis=0) for quad in quads])
    high = np.array([quad.max(axis=0) for quad in quads])
    for a in range(len(quads)):
        for b in _overlapping(low, high, a):
            if tile_of[a] != tile_of[b] and _are_parts_of_one(quads[a], quads[b]):
                group_of[root(b)] = root(a)
    groups: dict[int, list[int]] = {}
    for index in range(len(quads)):
        groups.setdefault(root(index), []).append(index)
    return FoundBoxes(
        np.stack([_around([quads[i] for i in group]) for group in groups.values()]),
        np.array([max(scores[i] for i in group) for group in groups.values()]),
    )


def _overlapping(low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], a: int) -> list[int]:
    touches = (low[a + 1 :] < high[a]).all(axis=1) & (high[a + 1 :] > low[a]).all(axis=1)
    return [a + 1 + int(i) for i in np.flatnonzero(touches)]


def _are_parts_of_one(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> bool:
    frame = _frame([a, b])
    low = np.stack([(a @ frame).min(axis=0), (b @ frame).min(axis=0)])
    high = np.stack([(a @ frame).max(axis=0), (b @ frame).max(axis=0)])
    shared = np.maximum(high.min(axis=0) - low.max(axis=0), 0.0)
    sizes = high - low
    if shared[0] * shared[1] > _SAME_BOX * float(sizes.prod(axis=1).min()):
        return True
    thickness = float(sizes[:, 1].min())
    return bool(shared[1] > _SAME_LINE * thickness and shared[0] > _REACH * thickness)


def _frame(quads: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Axes along and across the text of the longest of some quads, as columns."""
    edges = [quad[1] - quad[0] for quad in quads]
    longest = max(edges, key=lambda edge: float(np.hypot(*edge)))
    along = longest / max(float(np.hypot(*longest)), 1e-9)
    return np.stack([along, (-along[1], along[0])], axis=1)


def _around(quads: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """The rectangle around some quads, turned as they are."""
    if len(quads) == 1:
        return quads[0]
    frame = _frame(quads)
    inside = np.concatenate(quads) @ frame
    (x0, y0), (x1, y1) = inside.min(axis=0), inside.max(axis=0)
    corners = np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)]) @ frame.T
    return clockwise_from_top_left(corners)
