from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from edge_runtime.cli.output.overlay import write_overlay
from edge_runtime.errors import UsageError
from edge_runtime.values import (
    Box,
    Document,
    Evidence,
    FieldStatus,
    FieldValue,
    Page,
    PageInfo,
    Quad,
    RunResult,
)

WIDTH, HEIGHT = 800, 600
GREEN = (20, 130, 60)
ORANGE = (205, 90, 0)


def field(box: Box, *, page: int = 0, status: FieldStatus = FieldStatus.OK) -> FieldValue:
    evidence = Evidence(page, 0, Quad.from_box(box), "x")
    return FieldValue("total", 1, "1", 0.9, status, (evidence,))


def has_near(picture: Image.Image, point: tuple[float, float], colour: tuple[int, ...]) -> bool:
    x, y = map(round, point)
    around = [(x + dx, y + dy) for dx in (-2, -1, 0, 1, 2) for dy in (-2, -1, 0, 1, 2)]
    return any(picture.getpixel(place) == colour for place in around)


def test_value_is_framed_where_it_stands(tmp_path: Path, result: RunResult) -> None:
    source = tmp_path / "page.png"
    Image.new("RGB", (WIDTH, HEIGHT), "white").save(source)
    box = Box(300, 200, 420, 240)
    page = Page(PageInfo(0, WIDTH, HEIGHT))
    drawn = replace(result, document=Document("", (page,)), fields=(field(box),))
    (path,) = write_overlay(source, drawn, tmp_path / "out.png", load_options={})
    with Image.open(path) as picture:
        assert picture.width == WIDTH
        assert picture.height > HEIGHT
        for corner in ((300, 200), (420, 200), (420, 240), (300, 240)):
            assert has_near(picture, corner, GREEN)
        assert picture.getpixel((100, 500)) == (255, 255, 255)


def test_turned_page_is_shown_upright(tmp_path: Path, result: RunResult) -> None:
    """A black patch marks the place in the file; the frame has to end up around it."""
    source = tmp_path / "page.png"
    image = Image.new("RGB", (HEIGHT, WIDTH), "white")
    patch = Box(100, 500, 140, 700)
    ImageDraw.Draw(image).rectangle((100, 500, 140, 700), fill="black")
    image.save(source)
    page = Page(PageInfo(0, HEIGHT, WIDTH, rotation=90))
    drawn = replace(
        result,
        document=Document("", (page,)),
        fields=(field(patch, status=FieldStatus.REVIEW),),
    )
    (path,) = write_overlay(source, drawn, tmp_path / "out.png", load_options={})
    with Image.open(path) as picture:
        assert picture.width == WIDTH
        # content turned by 90 degrees clockwise: original (x, y) is upright (y, height - x)
        for x, y in ((100, 500), (140, 500), (140, 700), (100, 700)):
            assert has_near(picture, (y, HEIGHT - x), ORANGE)


def test_several_pages_become_several_files(tmp_path: Path, result: RunResult) -> None:
    source = tmp_path / "pages.tiff"
    frames = [Image.new("RGB", (WIDTH, HEIGHT), shade) for shade in ("white", "ivory", "white")]
    frames[0].save(source, save_all=True, append_images=frames[1:])
    pages = tuple(Page(PageInfo(i, WIDTH, HEIGHT)) for i in (0, 2))
    drawn = replace(result, document=Document("", pages), fields=())
    written = write_overlay(
        source.read_bytes(), drawn, tmp_path / "o" / "out.png", load_options={"pages": "1,3"}
    )
    assert [path.name for path in written] == ["out-1.png", "out-3.png"]
    assert all(path.is_file() for path in written)


def test_missing_fields_make_the_legend_taller(
    tmp_path: Path, result: RunResult, picture: Callable[[str], Path]
) -> None:
    source = picture("page.png")
    document = Document("", (Page(PageInfo(0, 300, 120)),))
    missing = FieldValue("a_rather_long_name", None, None, 0.0, FieldStatus.MISSING)
    heights = []
    for fields in ((), (missing,) * 30):
        drawn = replace(result, document=document, fields=fields)
        (path,) = write_overlay(source, drawn, tmp_path / "out.png", load_options={})
        with Image.open(path) as image:
            heights.append(image.height)
    assert heights[1] > heights[0]


def test_overlay_that_cannot_be_written_says_so(
    tmp_path: Path, result: RunResult, picture: Callable[[str], Path]
) -> None:
    source = picture("page.png")
    with pytest.raises(UsageError, match="cannot be written"):
        write_overlay(source, result, source / "out.png", load_options={})
