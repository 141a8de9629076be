"""Cutting lines out of pages and long lines into parts."""

from __future__ import annotations

import numpy as np
import pytest

from edge_runtime.ocr.line_strips import STRIP_HEIGHT_PX, cut_strip, split_strip, strip_width
from edge_runtime.ocr.upright_lines import is_along_page, text_directions


def quad(x0: float, y0: float, x1: float, y1: float) -> np.ndarray:
    return np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], float)


FIVE_LINES = [quad(0, 30 * i, 200, 30 * i + 20) for i in range(5)]


def gradient(height: int = 100, width: int = 200) -> np.ndarray:
    """Red grows to the right, green downwards."""
    page = np.zeros((height, width, 3), np.uint8)
    page[:, :, 0] = np.linspace(0, 250, width).astype(np.uint8)
    page[:, :, 1] = np.linspace(0, 250, height).astype(np.uint8)[:, None]
    return page


def test_strip_has_the_line_s_proportions():
    strip = cut_strip(gradient(), quad(20, 30, 120, 50))
    assert strip.shape == (STRIP_HEIGHT_PX, 240, 3)
    assert strip_width(quad(20, 30, 120, 50)) == 240


@pytest.mark.parametrize("n_turns", [0, 1, 2, 3])
def test_strip_reads_from_the_first_corner_to_the_second(n_turns):
    corners = np.roll(quad(60, 30, 120, 60), -n_turns, axis=0)
    strip = cut_strip(gradient(), corners).astype(int)
    first, last = strip[:, 0].mean(axis=0), strip[:, -1].mean(axis=0)
    channel, sign = ((0, 1), (1, 1), (0, -1), (1, -1))[n_turns]
    assert sign * (last[channel] - first[channel]) > 40


def test_turned_line_is_straightened():
    page = np.full((200, 300, 3), 255, np.uint8)
    middle, along, across = np.array([150, 100]), np.array([0.96, 0.28]), np.array([-0.28, 0.96])
    corners = np.stack(
        [middle + a * 80 * along + b * 12 * across for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    )
    for step in np.linspace(-70, 70, 400):
        x, y = (middle + step * along).round().astype(int)
        page[y - 1 : y + 2, x - 1 : x + 2] = 0
    strip = cut_strip(page, corners)
    dark_rows = np.flatnonzero(strip[:, 30:-30].mean(axis=(1, 2)) < 128)
    assert len(dark_rows) > 0
    assert abs(dark_rows.mean() - 23.5) < 3


def test_quad_beyond_the_page_repeats_its_edge():
    strip = cut_strip(gradient(), quad(-40, -10, 60, 10))
    assert strip.shape[0] == STRIP_HEIGHT_PX
    assert cut_strip(gradient(), quad(500, 500, 600, 520)).shape == (48, 240, 3)


def test_quad_far_along_a_very_long_page():
    page = np.full((40, 70_000, 3), 255, np.uint8)
    page[10:30, 69_000:69_100] = 0
    corners = quad(68_950, 5, 69_150, 35)
    corners[1] += (0, 2)  # slanted: takes the warping path
    assert cut_strip(page, corners).min() < 50


def test_short_strip_is_one_part():
    (part,) = split_strip(np.zeros((48, 300, 3), np.uint8), max_width_px=400)
    assert (part.x0, part.x1, part.joint) == (0, 300, "")


def test_long_strip_is_cut_in_gaps_between_words():
    strip = np.full((48, 3000, 3), 255, np.uint8)
    gaps = range(200, 3000, 200)
    strip[10:40] = 0
    strip[10:40, ::7] = 200  # strokes
    for x in gaps:
        strip[:, x : x + 24] = 255
    parts = split_strip(strip, max_width_px=900)
    assert [p.x0 for p in parts[1:]] == [p.x1 for p in parts[:-1]]
    assert (parts[0].x0, parts[-1].x1) == (0, 3000)
    assert all(p.x1 - p.x0 <= 900 for p in parts)
    assert all(any(g <= p.x0 <= g + 24 for g in gaps) for p in parts[1:])
    assert all(p.joint == " " for p in parts[1:])


def test_long_strip_without_gaps_is_cut_and_joined_without_blanks():
    rng = np.random.default_rng(0)
    strip = rng.integers(0, 256, (48, 2000, 3), dtype=np.uint8)
    parts = split_strip(strip, max_width_px=900)
    assert all(0 < p.x1 - p.x0 <= 900 for p in parts)
    assert all(p.joint == "" for p in parts)


def test_tall_box_of_line_height_is_an_upright_character():
    lines = np.stack(
        [quad(0, 30 * i, 200, 30 * i + 20) for i in range(5)] + [quad(300, 0, 310, 20)]
    )
    np.testing.assert_array_equal(text_directions(lines), lines)


def test_tall_box_much_higher_than_the_lines_is_read_downwards():
    lines = np.stack(
        [quad(0, 30 * i, 200, 30 * i + 20) for i in range(5)] + [quad(300, 0, 320, 150)]
    )
    turned = text_directions(lines)
    np.testing.assert_array_equal(turned[:5], lines[:5])
    np.testing.assert_array_equal(turned[5][0], (320, 0))
    assert not is_along_page(turned[5])
    assert is_along_page(turned[0])
