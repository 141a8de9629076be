"""Boxes out of drawn probability maps."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_runtime.ocr.probability_map import MapOptions, clockwise_from_top_left, find_boxes

OPTIONS = MapOptions()


def map_with(*cores: tuple[int, int, int, int], probability: float = 0.9) -> np.ndarray:
    out = np.zeros((200, 300), np.float32)
    for x0, y0, x1, y1 in cores:
        out[y0:y1, x0:x1] = probability
    return out


def test_empty_map_has_no_boxes():
    found = find_boxes(map_with(), OPTIONS)
    assert found.quads.shape == (0, 4, 2)
    assert found.scores.shape == (0,)


def test_core_is_grown_evenly_to_all_sides():
    (quad,) = find_boxes(map_with((100, 80, 180, 90)), OPTIONS).quads
    x0, y0 = quad.min(axis=0)
    x1, y1 = quad.max(axis=0)
    assert (x0 + x1) / 2 == pytest.approx(140, abs=1)
    assert (y0 + y1) / 2 == pytest.approx(85, abs=1)
    assert y1 - y0 > 2 * 10
    assert (x1 - x0) - 80 == pytest.approx((y1 - y0) - 10, abs=1.5)


def test_specks_and_faint_cores_are_dropped():
    specks = map_with((10, 10, 12, 12))
    faint = map_with((100, 80, 180, 90), probability=0.4)
    assert len(find_boxes(specks, OPTIONS).quads) == 0
    assert len(find_boxes(faint, OPTIONS).quads) == 0


def test_text_inside_a_frame_is_found():
    framed = map_with(
        (20, 20, 280, 26), (20, 174, 280, 180), (20, 20, 26, 180), (274, 20, 280, 180)
    )
    framed[95:105, 100:200] = 0.9
    middles = find_boxes(framed, OPTIONS).quads.mean(axis=1)
    assert any(np.allclose(middle, (150, 100), atol=1.5) for middle in middles)


def test_number_of_boxes_is_bounded():
    many = map_with(
        *((x, y, x + 12, y + 5) for x in range(10, 280, 30) for y in range(10, 190, 20))
    )
    assert len(find_boxes(many, MapOptions(max_boxes=7)).quads) == 7


@settings(max_examples=60, deadline=None)
@given(st.floats(-44, 44), st.integers(0, 3))
def test_first_corner_is_the_top_left_of_text_turned_by_less_than_45_degrees(angle, start):
    corners = cv2.boxPoints(((150, 100), (120, 20), 0)).astype(np.float64) - (150, 100)
    a = np.deg2rad(angle)
    turned = corners @ np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])
    ordered = clockwise_from_top_left(np.roll(turned, start, axis=0))
    back = ordered @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    np.testing.assert_allclose(back, [(-60, -10), (60, -10), (60, 10), (-60, 10)], atol=1e-4)
