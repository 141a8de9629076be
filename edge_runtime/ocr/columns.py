"""Cutting a page into regions where a gutter separates columns of running text.

A gutter between the cells of a table looks the same as one between columns of prose. What tells
them apart is what stands beside it: prose fills its column line after line, and two independent
blocks do not share their baselines; cells are short and sit on common rows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_runtime.ocr.flat_boxes import FlatBoxes

Indices = npt.NDArray[np.intp]

_MIN_LINES = 3
_MIN_GUTTER = 0.7
_PROSE_WIDTH = 9.0
_FULL_LINE = 0.75
_PROSE_SHARE = 0.55
_BLOCK_WIDTH = 8.0
_BLOCK_LINES = 4
_ALIGNED = 0.3
_ALIGNED_SHARE = 0.35
_MAX_DEPTH = 12
_CROSSING_SLACK = 0.3


@dataclass(frozen=True, slots=True)
class _Cut:
    above: Indices
    left: Indices
    right: Indices
    below: Indices


def split_columns(boxes: FlatBoxes) -> list[Indices]:
    """Regions of the page in reading order; together they hold every index once."""
    everything = np.arange(len(boxes), dtype=np.intp)
    return [region for region in _split(boxes, everything, 0) if len(region)]


def _split(boxes: FlatBoxes, region: Indices, depth: int) -> list[Indices]:
    if len(region) < 2 * _MIN_LINES or depth >= _MAX_DEPTH:
        return [region]
    cut = _best_cut(boxes, region)
    if cut is None:
        return [region]
    parts: list[Indices] = []
    for part in (cut.above, cut.left, cut.right, cut.below):
        parts.extend(_split(boxes, part, depth + 1))
    return parts


def _best_cut(boxes: FlatBoxes, region: Indices) -> _Cut | None:
    """The acceptable gutter with the most lines beside it."""
    part = boxes.take(region)
    unit = part.typical_height
    best: tuple[int, _Cut] | None = None
    for position in _gutter_positions(part, unit):
        crossing = (part.x0 < position - _CROSSING_SLACK * unit) & (
            part.x1 > position + _CROSSING_SLACK * unit
        )
        for low, high in _free_runs(part, crossing):
            inside = (part.middle_y > low) & (part.middle_y < high) & ~crossing
            is_left = inside & ((part.x0 + part.x1) / 2 < position)
            is_right = inside & ~is_left
            if min(is_left.sum(), is_right.sum()) < _MIN_LINES:
                continue
            trimmed = _trim_to_common(part, is_left, is_right)
            if trimmed is None:
                continue
            is_left, is_right, top, bottom = trimmed
            if not _are_columns(part, is_left, is_right, unit):
                continue
            n_beside = int(is_left.sum() + is_right.sum())
            if best is None or n_beside > best[0]:
                beside = is_left | is_right
                above = ~beside & (part.middle_y <= (top + bottom) / 2)
                below = ~beside & ~above
                best = (
                    n_beside,
                    _Cut(region[above], region[is_left], region[is_right], region[below]),
                )
    return None if best is None else best[1]


def _gutter_positions(part: FlatBoxes, unit: float) -> list[float]:
    """Places just left of where several lines begin."""
    return [low - _MIN_GUTTER * unit / 2 for low, _ in _common_beginnings(part.x0, unit)]


def _common_beginnings(begins: npt.NDArray[np.float64], unit: float) -> list[tuple[float, float]]:
    """Ranges of x in which at least a few lines begin, from left to right."""
    ordered = np.sort(begins)
    clusters = np.split(ordered, np.flatnonzero(np.diff(ordered) > unit) + 1)
    return [(float(c[0]), float(c[-1])) for c in clusters if len(c) >= _MIN_LINES]


def _free_runs(part: FlatBoxes, crossing: npt.NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Vertical stretches between the middles of lines that cross the gutter."""
    bars = np.sort(part.middle_y[crossing])
    edges = np.concatenate([[-np.inf], bars, [np.inf]])
    return [(float(a), float(b)) for a, b in itertools.pairwise(edges) if b > a]


def _trim_to_common(
    part: FlatBoxes, is_left: npt.NDArray[np.bool_], is_right: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], float, float] | None:
    """Keep the stretch where both sides have lines; what only one side has stays outside.

    A side that goes on below its neighbour still belongs to its column, a heading above the
    shorter column does not.
    """
    top = max(part.y0[is_left].min(), part.y0[is_right].min())
    unit = part.typical_height
    keep = part.y1 > top - unit
    is_left, is_right = is_left & keep, is_right & keep
    if min(is_left.sum(), is_right.sum()) < _MIN_LINES:
        return None
    beside = is_left | is_right
    return is_left, is_right, float(part.y0[beside].min()), float(part.y1[beside].max())


def _are_columns(
    part: FlatBoxes,
    is_left: npt.NDArray[np.bool_],
    is_right: npt.NDArray[np.bool_],
    unit: float,
) -> bool:
    gutter = np.percentile(part.x0[is_right], 5) - np.percentile(part.x1[is_left], 95)
    if gutter < _MIN_GUTTER * unit:
        return False
    near_left, near_right = _nearest_columns(part, is_left, is_right, unit)
    if _is_prose(part, near_left, unit) and _is_prose(part, near_right, unit):
        return True
    return _are_independent_blocks(part, is_left, is_right, unit)


def _nearest_columns(
    part: FlatBoxes,
    is_left: npt.NDArray[np.bool_],
    is_right: npt.NDArray[np.bool_],
    unit: float,
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Of each side the lines of the column that touches the gutter."""
    left_begins = _common_beginnings(part.x0[is_left], unit)
    if left_begins:
        is_left = is_left & (part.x0 >= left_begins[-1][0])
    right_begins = _common_beginnings(part.x0[is_right], unit)
    if right_begins:
        is_right = is_right & (part.x0 <= right_begins[0][1])
    return is_left, is_right


def _is_prose(part: FlatBoxes, side: npt.NDArray[np.bool_], unit: float) -> bool:
    width = float(np.percentile(part.x1[side], 90) - np.percentile(part.x0[side], 10))
    if width < _PROSE_WIDTH * unit:
        return False
    return float(np.mean(part.width[side] >= _FULL_LINE * width)) >= _PROSE_SHARE


def _are_independent_blocks(
    part: FlatBoxes,
    is_left: npt.NDArray[np.bool_],
    is_right: npt.NDArray[np.bool_],
    unit: float,
) -> bool:
    """Wide blocks of several lines whose baselines do not meet."""
    for side in (is_left, is_right):
        if side.sum() < _BLOCK_LINES or np.median(part.width[side]) < _BLOCK_WIDTH * unit:
            return False
    small, large = (is_left, is_right) if is_left.sum() <= is_right.sum() else (is_right, is_left)
    away = np.abs(part.middle_y[small][:, None] - part.middle_y[large][None, :]).min(axis=1)
    return float(np.mean(away <= _ALIGNED * unit)) <= _ALIGNED_SHARE
