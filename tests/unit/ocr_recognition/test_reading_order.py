"""Reading order on drawn layouts: tables across, columns of prose one after the other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_runtime.ocr.flat_boxes import skew_angle
from edge_runtime.ocr.reading_order import ReadingOrder, reading_order


def quads_of(*boxes: tuple[float, float, float, float]) -> np.ndarray:
    return np.array([[(x0, y0), (x1, y0), (x1, y1), (x0, y1)] for x0, y0, x1, y1 in boxes], float)


def turned(quads: np.ndarray, degrees: float) -> np.ndarray:
    """The page turned clockwise about its origin."""
    a = math.radians(degrees)
    return quads @ np.array([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]])


def rows_of(found: ReadingOrder) -> list[list[int]]:
    rows: list[list[int]] = []
    for index, row in zip(found.order, found.rows, strict=True):
        if row == len(rows):
            rows.append([])
        rows[row].append(index)
    return rows


def table(
    n_rows: int, columns: tuple[tuple[float, float], ...], *, pitch: float = 28.0
) -> np.ndarray:
    return quads_of(
        *(
            (x0, 40 + row * pitch, x1, 60 + row * pitch)
            for row in range(n_rows)
            for x0, x1 in columns
        )
    )


def prose(x0: float, x1: float, y0: float, n_lines: int, *, pitch: float = 26.0) -> list[tuple]:
    """A paragraph: full lines, the last one half."""
    lines = [(x0, y0 + i * pitch, x1, y0 + i * pitch + 20) for i in range(n_lines)]
    last = lines[-1]
    lines[-1] = (last[0], last[1], (x0 + x1) / 2, last[3])
    return lines


TABLE = ((20, 200), (230, 270), (300, 360), (400, 460))


def test_no_boxes_have_no_order():
    assert reading_order(np.zeros((0, 4, 2))) == ReadingOrder((), ())


def test_one_box_is_row_zero():
    assert reading_order(quads_of((0, 0, 10, 5))) == ReadingOrder((0,), (0,))


@pytest.mark.parametrize("degrees", [-12, -5, -1.5, 0, 1.5, 5, 12])
def test_table_is_read_across_at_any_skew(degrees):
    quads = turned(table(12, TABLE), degrees)
    shuffled = np.random.default_rng(0).permutation(len(quads))
    found = reading_order(quads[shuffled])
    assert [[int(shuffled[i]) for i in row] for row in rows_of(found)] == [
        [4 * row + column for column in range(4)] for row in range(12)
    ]


@pytest.mark.parametrize("offset", [-9, -6, 6, 9])
def test_price_column_printed_higher_or_lower_stays_with_its_item(offset):
    items = [(20, 40 + 28 * i, 220, 60 + 28 * i) for i in range(10)]
    prices = [(300, 40 + 28 * i + offset, 360, 60 + 28 * i + offset) for i in range(10)]
    found = reading_order(quads_of(*items, *prices))
    assert rows_of(found) == [[i, 10 + i] for i in range(10)]


def test_price_between_two_items_joins_the_nearer_and_never_glues_them():
    found = reading_order(quads_of((20, 40, 220, 60), (20, 64, 220, 84), (300, 50, 360, 70)))
    assert sorted(map(sorted, rows_of(found))) in ([[0], [1, 2]], [[0, 2], [1]])


@pytest.mark.parametrize("degrees", [-3, 0, 3])
@pytest.mark.parametrize("shift", [0, 9])
def test_two_columns_of_prose_are_read_one_after_the_other(degrees, shift):
    left, right = prose(40, 340, 100, 15), prose(380, 680, 100 + shift, 15)
    quads = turned(quads_of(*left, *right), degrees)
    found = reading_order(quads)
    assert found.order == tuple(range(30))
    assert found.rows == tuple(range(30))


def test_heading_and_footer_enclose_the_columns():
    heading, footer = (40, 40, 680, 70), (40, 600, 680, 620)
    left, right = prose(40, 340, 100, 15), prose(380, 680, 100, 15)
    quads = quads_of(footer, *right, heading, *left)
    found = reading_order(quads)
    assert found.order == (16, *range(17, 32), *range(1, 16), 0)


def test_three_columns_of_prose():
    columns = [prose(x, x + 220, 50, 12) for x in (20, 270, 520)]
    found = reading_order(quads_of(*(line for column in columns for line in column)))
    assert found.order == tuple(range(36))


def test_longer_column_keeps_its_tail():
    left, right = prose(40, 340, 100, 20), prose(380, 680, 100, 9)
    found = reading_order(quads_of(*left, *right))
    assert found.order == tuple(range(29))


def test_blocks_with_their_own_baselines_are_not_mixed():
    seller = [(40, 100 + 24 * i, 260 - 10 * (i % 3), 118 + 24 * i) for i in range(5)]
    invoice = [(400, 112 + 24 * i, 600 - 15 * (i % 2), 130 + 24 * i) for i in range(5)]
    found = reading_order(quads_of(*seller, *invoice))
    assert found.order == tuple(range(10))


def test_labels_and_values_of_a_form_are_read_across():
    labels = [(40, 50 + 30 * i, 40 + 60 + 9 * (i % 4), 70 + 30 * i) for i in range(8)]
    values = [(220, 50 + 30 * i, 220 + 80 + 20 * (i % 5), 70 + 30 * i) for i in range(8)]
    found = reading_order(quads_of(*labels, *values))
    assert rows_of(found) == [[i, 8 + i] for i in range(8)]


def test_large_total_beside_a_small_label_shares_its_row():
    found = reading_order(quads_of((20, 108, 100, 124), (300, 96, 420, 134), (20, 150, 400, 166)))
    assert rows_of(found) == [[0, 1], [2]]


def test_stamp_at_an_angle_does_not_tilt_the_page():
    lines = table(8, ((20, 400),))
    stamp = turned(quads_of((0, 0, 150, 30)), 25) + np.array([500, 300])
    assert abs(skew_angle(np.concatenate([lines, stamp]))) < 1e-9


def test_text_running_down_the_margin_does_not_join_rows():
    lines = table(6, ((60, 400),))
    margin = np.array([[(40, 40), (40, 220), (20, 220), (20, 40)]], float)
    rows = rows_of(reading_order(np.concatenate([lines, margin])))
    assert all(len(row) == 1 for row in rows)


boxes = st.lists(
    st.tuples(
        st.floats(0, 900),
        st.floats(0, 1500),
        st.floats(1, 600),
        st.floats(1, 80),
        st.floats(-20, 20),
    ),
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(boxes)
def test_every_box_is_read_exactly_once_and_rows_count_up(drawn):
    quads = [
        turned(quads_of((0, 0, width, height)), angle)[0] + (x, y)
        for x, y, width, height, angle in drawn
    ]
    found = reading_order(np.array(quads).reshape(-1, 4, 2))
    assert sorted(found.order) == list(range(len(drawn)))
    assert all(b - a in (0, 1) for a, b in zip(found.rows, found.rows[1:], strict=False))
    assert not found.rows or found.rows[0] == 0


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 15),
    st.integers(1, 5),
    st.floats(-10, 10),
    st.floats(0.5, 3),
    st.integers(0, 2**31),
)
def test_tables_survive_skew_scale_and_shuffling(n_rows, n_columns, degrees, scale, seed):
    columns = tuple((20 + 130 * i, 90 + 130 * i) for i in range(n_columns))
    quads = turned(table(n_rows, columns) * scale, degrees)
    shuffled = np.random.default_rng(seed).permutation(len(quads))
    rows = rows_of(reading_order(quads[shuffled]))
    assert [[int(shuffled[i]) for i in row] for row in rows] == [
        list(range(row * n_columns, (row + 1) * n_columns)) for row in range(n_rows)
    ]
