"""In which order a person reads the boxes of a page, and which of them share a row.

Pure geometry, in four steps: undo the skew; cut the page where a gutter separates columns of
running text; group what stands beside each other into rows; read rows from top to bottom and
each from left to right. Tables and forms are read across, columns of prose one after the other.
Scripts that run from right to left are not handled: rows are read from left to right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_runtime.ocr.columns import split_columns
from edge_runtime.ocr.flat_boxes import FlatBoxes, flatten
from edge_runtime.ocr.rows import group_rows


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """`order[k]` is the index of the k-th box to read, `rows[k]` its row number, from 0."""

    order: tuple[int, ...]
    rows: tuple[int, ...]


def reading_order(quads: npt.NDArray[np.float64]) -> ReadingOrder:
    """Order quads (n, 4, 2), clockwise from the beginning of the text, in upright pixels."""
    if len(quads) == 0:
        return ReadingOrder((), ())
    boxes = flatten(quads)
    order: list[int] = []
    rows: list[int] = []
    n_rows = 0
    for region in split_columns(boxes):
        for row in _rows_in_order(boxes, region):
            order.extend(row)
            rows.extend([n_rows] * len(row))
            n_rows += 1
    return ReadingOrder(tuple(order), tuple(rows))


def _rows_in_order(boxes: FlatBoxes, region: npt.NDArray[np.intp]) -> list[list[int]]:
    part = boxes.take(region)
    rows = group_rows(part)
    rows.sort(key=lambda row: (float(np.mean(part.middle_y[row])), float(part.x0[row].min())))
    return [
        [int(region[i]) for i in sorted(row, key=lambda i: (float(part.x0[i]), i))] for row in rows
    ]
