"""Sizes and tiles of pages of every shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_runtime.ocr.tiling import GRID_PX, ScaleOptions, detection_scale, padded, tiles


def test_page_that_fits_is_one_tile():
    (tile,) = tiles(700, 900, max_side_px=1000, margin_px=50)
    assert tile.seen == tile.kept == (0, 0, 700, 900)


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(200, 1600), st.integers(0, 60))
def test_tiles_keep_every_pixel_once_and_see_what_they_keep(width, height, side, margin):
    kept = np.zeros((height // 8 + 1, width // 8 + 1), int)
    rows = np.arange(0, height, 8)
    columns = np.arange(0, width, 8)
    for tile in tiles(width, height, max_side_px=side, margin_px=margin):
        x0, y0, x1, y1 = tile.kept
        sx0, sy0, sx1, sy1 = tile.seen
        assert 0 <= sx0 <= x0 < x1 <= sx1 <= width
        assert 0 <= sy0 <= y0 < y1 <= sy1 <= height
        assert max(sx1 - sx0, sy1 - sy0) <= side + 2
        ys = np.flatnonzero((rows >= y0) & (rows < y1))
        xs = np.flatnonzero((columns >= x0) & (columns < x1))
        kept[np.ix_(ys, xs)] += 1
    assert (kept[: len(rows), : len(columns)] == 1).all()


def test_inner_seams_have_a_margin_on_both_sides():
    first, *_, last = tiles(300, 5000, max_side_px=1000, margin_px=90)
    assert first.seen[3] - first.kept[3] == 90
    assert last.kept[1] - last.seen[1] == 90


@pytest.mark.parametrize(
    ("width", "height"), [(200, 20_000), (12_000, 40), (1, 1), (20_000, 20_000), (5, 60_000)]
)
def test_area_stays_bounded_for_any_shape(width, height):
    options = ScaleOptions()
    scale = detection_scale(width, height, None, options)
    area = width * scale * height * scale
    long_side = max(width, height) * scale
    assert area <= options.max_area_px * 1.01 or min(width, height) * scale <= max(
        options.min_short_side_px, min(width, height)
    )
    assert scale <= options.max_enlarge
    assert long_side > 0


def test_strip_is_not_blown_up_to_the_usual_short_side():
    assert detection_scale(12_000, 40, None, ScaleOptions()) <= 2


def test_tall_page_keeps_legible_columns():
    scale = detection_scale(200, 20_000, None, ScaleOptions())
    assert 200 * scale >= 160


def test_padding_reaches_the_next_cell():
    assert [padded(n) for n in (1, 31, 32, 33)] == [GRID_PX, 32, 32, 64]


@pytest.mark.parametrize(
    ("height", "character_px"), [(8.0, 8.0 * 1.216), (16.0, 11.0), (24.0, 14.6), (60.0, 24.0)]
)
def test_characters_are_kept_between_too_small_and_too_large(height, character_px):
    scale = detection_scale(1000, 1400, height, ScaleOptions())
    assert scale * height == pytest.approx(character_px, rel=0.01)


@pytest.mark.parametrize("height", [0.5, 500.0])
def test_an_absurd_character_height_changes_the_scale_within_limits(height):
    options = ScaleOptions()
    usual = detection_scale(1000, 1400, None, options)
    assert 0.49 < detection_scale(1000, 1400, height, options) / usual < 2.01
