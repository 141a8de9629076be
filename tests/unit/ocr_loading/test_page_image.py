"""Whatever is done to a page, places on it lead back to the original raster."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_runtime.errors import UsageError
from edge_runtime.ocr.page_image import PageImage
from edge_runtime.values import Box, Line, LineSource, PageInfo, Quad
from tests.unit.ocr_loading.drawing import centre_of_mark, marked

Step = Callable[[PageImage], PageImage]


def open_page(pixels: np.ndarray, lines: tuple[Line, ...] = ()) -> PageImage:
    height, width = pixels.shape[:2]
    return PageImage(pixels, PageInfo(0, width, height), text_lines=lines)


def line_at(box: Box) -> Line:
    return Line(0, 0, "mark", 1.0, Quad.from_box(box), box, source=LineSource.TEXT_LAYER)


def turn(angle: int) -> Step:
    return lambda page: page.rotated(angle)


def scale(factor: float) -> Step:
    # bounded, because a chain of enlargements costs seconds and shows nothing new
    return lambda page: page if page.width * page.height > 60_000 else page.scaled(factor)


def trim(left: int, top: int, right: int, bottom: int) -> Step:
    def step(page: PageImage) -> PageImage:
        if page.width <= left + right or page.height <= top + bottom:
            return page
        return page.crop(left, top, page.width - right, page.height - bottom)

    return step


margins = st.integers(0, 6)
steps = st.lists(
    st.one_of(
        st.sampled_from([0, 90, 180, 270]).map(turn),
        st.sampled_from([0.75, 1.5, 2.0, 2.6]).map(scale),
        st.tuples(margins, margins, margins, margins).map(lambda m: trim(*m)),
    ),
    max_size=5,
)


@settings(deadline=None)
@given(st.integers(30, 69), st.integers(30, 49), steps)
def test_a_mark_is_found_and_leads_back(x: int, y: int, chain: list[Step]) -> None:
    page = open_page(marked(100, 80, x, y), (line_at(Box(x, y, x + 1, y + 1)),))
    for step in chain:
        page = step(page)
    if page.width < 4 or page.height < 4 or page.pixels.max() < 8:
        return  # shrunk away or trimmed off
    found = centre_of_mark(page.pixels)
    np.testing.assert_allclose(page.to_original.apply(found), [x + 0.5, y + 0.5], atol=0.6)
    (line,) = page.text_lines
    per_pixel = abs(page.to_original.xx) + abs(page.to_original.xy)
    np.testing.assert_allclose(line.reading.center, found, atol=0.6 / per_pixel + 0.6)
    assert line.quad == Quad.from_box(Box(x, y, x + 1, y + 1))


@settings(deadline=None)
@given(steps)
def test_the_whole_page_covers_what_was_not_trimmed(chain: list[Step]) -> None:
    page = open_page(np.full((80, 100, 3), 9, dtype=np.uint8))
    for step in chain:
        page = step(page)
    covered = page.box_to_original(Box(0, 0, page.width, page.height))
    assert covered.x0 >= -1e-6
    assert covered.y0 >= -1e-6
    assert covered.x1 <= 100 + 1e-6
    assert covered.y1 <= 80 + 1e-6
    assert page.pixels.flags.c_contiguous


def test_rotation_is_recorded_and_adds_up() -> None:
    page = open_page(marked(10, 8, 1, 1))
    assert page.rotated(90).info.rotation == 90
    assert page.rotated(90).rotated(270).info.rotation == 0
    assert page.rotated(90).rotated(180).info.rotation == 270
    assert page.rotated(360) is page


def test_lines_outside_a_part_are_left_out() -> None:
    page = open_page(marked(40, 40, 1, 1), (line_at(Box(0, 0, 8, 4)), line_at(Box(30, 30, 38, 34))))
    part = page.crop(20, 20, 40, 40)
    assert [line.reading for line in part.text_lines] == [Box(10, 10, 18, 14)]


def test_parts_are_clipped_and_empty_parts_refused() -> None:
    page = open_page(marked(40, 30, 1, 1))
    assert page.crop(-5, -5, 100, 100).pixels.shape == (30, 40, 3)
    with pytest.raises(UsageError, match="outside the page"):
        page.crop(40, 0, 50, 10)


def test_scaling_never_loses_the_page() -> None:
    page = open_page(marked(40, 3, 1, 1)).scaled(0.05)
    assert page.pixels.shape == (1, 2, 3)
    with pytest.raises(UsageError, match="scaled"):
        page.scaled(0)


@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 4), (0,)])
def test_other_layouts_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="uint8"):
        PageImage(np.zeros(shape, dtype=np.uint8), PageInfo(0, 4, 4))
