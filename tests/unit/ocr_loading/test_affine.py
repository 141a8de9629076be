"""Maps between pixel grids."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_runtime.errors import UsageError
from edge_runtime.ocr.affine import IDENTITY, Affine
from edge_runtime.values import Box, Quad

numbers = st.floats(-50, 50, allow_nan=False)
factors = st.floats(0.1, 10)
maps = st.one_of(
    st.builds(Affine.scale, factors, factors),
    st.builds(Affine.shift, numbers, numbers),
    st.builds(
        lambda angle, w, h: Affine.undo_turn(angle, width=w, height=h),
        st.sampled_from([0, 90, 180, 270]),
        st.integers(1, 99),
        st.integers(1, 99),
    ),
    st.builds(lambda w: Affine.undo_mirror(width=w), st.integers(1, 99)),
)
points = st.tuples(numbers, numbers)


@settings(deadline=None)
@given(maps, maps, points)
def test_compose_applies_the_inner_map_first(
    outer: Affine, inner: Affine, point: tuple[float, float]
) -> None:
    expected = outer.apply_point(inner.apply_point(point))
    assert outer.compose(inner).apply_point(point) == pytest.approx(expected, abs=1e-6)


@settings(deadline=None)
@given(maps, maps, points)
def test_inverse_leads_back(first: Affine, second: Affine, point: tuple[float, float]) -> None:
    both = first.compose(second)
    assert both.inverse().apply_point(both.apply_point(point)) == pytest.approx(point, abs=1e-6)


@settings(deadline=None)
@given(maps, st.lists(points, min_size=1, max_size=5))
def test_arrays_and_single_points_agree(some: Affine, many: list[tuple[float, float]]) -> None:
    expected = [some.apply_point(point) for point in many]
    np.testing.assert_allclose(some.apply(np.array(many)), expected, atol=1e-6)


@pytest.mark.parametrize("angle", [0, 90, 180, 270, -90, 450])
def test_undo_turn_agrees_with_numpy(angle: int) -> None:
    before = np.arange(12).reshape(3, 4)
    after = np.rot90(before, angle // 90)
    undo = Affine.undo_turn(angle, width=4, height=3)
    for y in range(after.shape[0]):
        for x in range(after.shape[1]):
            back_x, back_y = undo.apply_point((x + 0.5, y + 0.5))
            assert before[math.floor(back_y), math.floor(back_x)] == after[y, x]


def test_corners_keep_their_order_and_boxes_stay_boxes() -> None:
    turn = Affine.undo_turn(90, width=10, height=20)
    quad = turn.apply_quad(Quad.from_box(Box(0, 0, 4, 2)))
    assert quad.points[0] == turn.apply_point((0, 0))
    assert turn.apply_box(Box(0, 0, 4, 2)) == Box(8, 0, 10, 4)


def test_odd_angles_and_flat_maps_are_refused() -> None:
    with pytest.raises(UsageError, match="quarters"):
        Affine.undo_turn(45, width=1, height=1)
    with pytest.raises(UsageError, match="cannot be undone"):
        Affine.scale(0, 1).inverse()


def test_identity() -> None:
    assert IDENTITY.is_identity
    assert not Affine.shift(1, 0).is_identity
