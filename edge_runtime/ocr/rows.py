"""Grouping boxes that stand beside each other into rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edge_runtime.ocr.flat_boxes import FlatBoxes

_MIN_OVERLAP = 0.4
_MAX_HEIGHT_RATIO = 2.6
_SIDEWAYS_SLACK = 0.35


def group_rows(boxes: FlatBoxes) -> list[list[int]]:
    """Partition boxes into rows (lists of indices).

    Pairs that share most of their height are joined first. A box never joins a row in which
    something already stands at its place, so a price printed halfway between two lines goes to
    the nearer one and does not glue the two together.
    """
    row_of = list(range(len(boxes)))
    members: dict[int, list[int]] = {i: [i] for i in row_of}
    for a, b in _candidate_pairs(boxes):
        row_a, row_b = row_of[a], row_of[b]
        if row_a == row_b or _collide(boxes, members[row_a], members[row_b]):
            continue
        for index in members[row_b]:
            row_of[index] = row_a
        members[row_a].extend(members.pop(row_b))
    return list(members.values())


def _candidate_pairs(boxes: FlatBoxes) -> list[tuple[int, int]]:
    """Pairs that may share a row, the surest first; near pairs before far ones when equal."""
    order = np.argsort(boxes.y0, kind="stable")
    y0, y1 = boxes.y0[order], boxes.y1[order]
    found: list[tuple[float, float, int, int]] = []
    for k in range(len(order)):
        a = int(order[k])
        end = int(np.searchsorted(y0, y1[k]))
        others = order[k + 1 : end]
        if len(others) == 0:
            continue
        shared = np.minimum(y1[k], boxes.y1[others]) - boxes.y0[others]
        low = np.minimum(boxes.height[a], boxes.height[others])
        high = np.maximum(boxes.height[a], boxes.height[others])
        overlap = shared / low
        gap = np.maximum(boxes.x0[others] - boxes.x1[a], boxes.x0[a] - boxes.x1[others])
        usable = (
            (overlap >= _MIN_OVERLAP)
            & (high <= _MAX_HEIGHT_RATIO * low)
            & (gap > -_SIDEWAYS_SLACK * low)
        )
        found.extend(
            (-round(float(o), 2), float(g), min(a, int(b)), max(a, int(b)))
            for o, g, b in zip(overlap[usable], gap[usable], others[usable], strict=True)
        )
    found.sort()
    return [(a, b) for _, _, a, b in found]


def _collide(boxes: FlatBoxes, row_a: list[int], row_b: list[int]) -> bool:
    a, b = _as_index(row_a), _as_index(row_b)
    left = np.maximum(boxes.x0[a][:, None], boxes.x0[b][None, :])
    right = np.minimum(boxes.x1[a][:, None], boxes.x1[b][None, :])
    low = np.minimum(boxes.height[a][:, None], boxes.height[b][None, :])
    return bool((right - left > _SIDEWAYS_SLACK * low).any())


def _as_index(row: list[int]) -> npt.NDArray[np.intp]:
    return np.asarray(row, dtype=np.intp)
