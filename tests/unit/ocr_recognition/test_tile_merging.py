"""Boxes seen by two tiles become one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_runtime.ocr.probability_map import FoundBoxes
from edge_runtime.ocr.tile_merging import merge_tiles
from edge_runtime.ocr.tiling import tiles


def seen(*boxes: tuple[float, float, float, float]) -> FoundBoxes:
    quads = [[(x0, y0), (x1, y0), (x1, y1), (x0, y1)] for x0, y0, x1, y1 in boxes]
    return FoundBoxes(np.array(quads, float).reshape(-1, 4, 2), np.full(len(boxes), 0.9))


def boxes_of(found: FoundBoxes) -> list[tuple[float, ...]]:
    return sorted(tuple(np.r_[q.min(0), q.max(0)].round(6).tolist()) for q in found.quads)


def test_no_tiles_have_no_boxes():
    assert merge_tiles([]).quads.shape == (0, 4, 2)
    assert merge_tiles([seen(), seen()]).quads.shape == (0, 4, 2)


def test_boxes_of_one_tile_are_left_alone():
    overlapping = seen((0, 0, 100, 20), (50, 5, 150, 25))
    assert boxes_of(merge_tiles([overlapping])) == boxes_of(overlapping)


def test_box_seen_twice_is_one_box():
    merged = merge_tiles([seen((10, 80, 200, 100)), seen((11, 80, 200, 101))])
    assert boxes_of(merged) == [(10, 80, 200, 101)]


def test_line_cut_by_the_seam_is_put_together():
    parts = [(10, 10, 300, 30), (250, 11, 500, 31), (450, 10, 600, 30)]
    merged = merge_tiles([seen(part) for part in parts])
    assert boxes_of(merged) == [(10, 10, 600, 31)]


def test_half_a_line_at_the_edge_gives_way_to_the_whole():
    merged = merge_tiles([seen((10, 90, 200, 99)), seen((10, 90, 200, 112))])
    assert boxes_of(merged) == [(10, 90, 200, 112)]


def test_neighbours_on_a_row_and_in_a_column_stay_apart():
    merged = merge_tiles([seen((10, 10, 100, 30)), seen((104, 10, 200, 30), (10, 28, 100, 48))])
    assert len(merged.quads) == 3


def test_turned_parts_keep_their_angle():
    along, across = np.array([0.98, 0.199]), np.array([-0.199, 0.98])

    def part(a: float, b: float) -> FoundBoxes:
        quad = np.stack([a * along, b * along, b * along + 20 * across, a * along + 20 * across])
        return FoundBoxes(quad[np.newaxis] + 50, np.array([0.8]))

    (quad,) = merge_tiles([part(0, 150), part(100, 300)]).quads
    np.testing.assert_allclose(np.hypot(*(quad[1] - quad[0])), 300, rtol=0.01)
    np.testing.assert_allclose((quad[1] - quad[0]) / 300, along, atol=0.02)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 20), st.integers(300, 2500), st.integers(250, 900))
def test_lines_of_any_tiled_page_come_back_whole(n_lines, width, side):
    lines = [(5.0, 10.0 + 40 * i, width - 5.0, 30.0 + 40 * i) for i in range(n_lines)]
    height = 40 * n_lines + 20
    parts = []
    for tile in tiles(width, height, max_side_px=side, margin_px=60):
        x0, y0, x1, y1 = tile.seen
        cut = [
            (max(a, x0), max(b, y0), min(c, x1), min(d, y1))
            for a, b, c, d in lines
            if min(c, x1) > max(a, x0) and min(d, y1) - max(b, y0) >= 4
        ]
        parts.append(seen(*cut))
    assert boxes_of(merge_tiles(parts)) == sorted(lines)
