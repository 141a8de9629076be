"""Files with several pictures: which of them are pages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image

from edge_runtime.errors import UnreadableInput, UsageError
from edge_runtime.ocr.loading import LoadOptions, PageSelection, load_pages
from tests.unit.ocr_loading.drawing import encoded


def colours(count: int) -> list[Image.Image]:
    return [Image.new("RGB", (20, 10), (40 * n + 20, 255 - 40 * n, 60)) for n in range(count)]


def file_of(frames: Sequence[Image.Image], kind: str, **options: object) -> bytes:
    return encoded(frames[0], kind, save_all=True, append_images=list(frames[1:]), **options)


def first_values(data: bytes, **options: object) -> list[int]:
    return [int(p.pixels[5, 5, 0]) for p in load_pages(data, LoadOptions(**options))]  # type: ignore[arg-type]


@pytest.mark.parametrize("compression", ["raw", "tiff_lzw"])
def test_every_page_of_a_tiff(compression: str) -> None:
    data = file_of(colours(4), "TIFF", compression=compression)
    assert first_values(data) == [20, 60, 100, 140]
    assert [p.info.index for p in load_pages(data)] == [0, 1, 2, 3]


def test_pages_of_a_tiff_may_differ_in_size_and_mode() -> None:
    frames = [colours(1)[0], Image.new("1", (31, 17), 1), Image.new("I;16", (5, 40), 65535)]
    shapes = [p.pixels.shape for p in load_pages(file_of(frames, "TIFF"))]
    assert shapes == [(10, 20, 3), (17, 31, 3), (40, 5, 3)]


def test_thumbnails_in_a_tiff_are_not_pages() -> None:
    frames = colours(3)
    frames[1].encoderinfo = {"tiffinfo": {254: 1}}  # type: ignore[attr-defined]
    data = file_of(frames, "TIFF")
    if first_values(data) == [20, 60, 100]:
        pytest.skip("this Pillow does not write tags of single frames")
    assert first_values(data) == [20, 100]
    assert [p.info.index for p in load_pages(data)] == [0, 1]


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_an_animation_gives_each_distinct_frame_once(kind: str) -> None:
    a, b, c = colours(3)
    options = {"lossless": True} if kind == "WEBP" else {}
    data = file_of([a, b, a, c, b], kind, duration=100, **options)
    values = first_values(data)
    assert len(values) == 3
    np.testing.assert_allclose(values, [20, 60, 100], atol=4)


def test_an_animation_is_bounded_and_says_so() -> None:
    data = file_of(colours(6), "GIF")
    pages = list(load_pages(data, LoadOptions(max_animation_frames=2)))
    assert len(pages) == 2
    assert "animation of 6 frames" in pages[0].info.notes[-1]


def test_further_pictures_of_a_camera_jpeg_are_not_pages() -> None:
    assert len(first_values(file_of(colours(2), "MPO"))) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2", [1]), ("1-2", [0, 1]), ("3-", [2, 3]), ("-2", [0, 1]), ("4, 1", [0, 3])],
)
def test_selected_pages_keep_their_numbers(text: str, expected: list[int]) -> None:
    options = LoadOptions(pages=PageSelection.parse(text))
    data = file_of(colours(4), "TIFF")
    assert [p.info.index for p in load_pages(data, options)] == expected


@pytest.mark.parametrize("text", ["", "x", "0", "3-1", "1,,2", "-", "1-2-3"])
def test_bad_selections_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"1-3,7,10-|pages") as caught:
        PageSelection.parse(text)
    assert caught.value.hint


@pytest.mark.parametrize("kind", ["TIFF", "PNG", "GIF"])
def test_a_selection_that_matches_nothing_is_refused(kind: str) -> None:
    data = file_of(colours(2 if kind != "PNG" else 1), kind)
    with pytest.raises(UsageError, match="the document has"):
        list(load_pages(data, LoadOptions(pages=PageSelection.parse("9"))))


def test_pages_before_a_damaged_one_are_delivered() -> None:
    data = file_of([Image.effect_noise((60, 60), 90).convert("RGB") for _ in range(2)], "TIFF")
    # pixels of the second page come before its directory; blank out the end of the file's data
    pages = load_pages(data[: len(data) * 3 // 4] + b"")
    with pytest.raises(UnreadableInput):
        assert [next(pages).info.index for _ in range(2)] == [0, 1]


def test_only_the_current_frame_of_a_pillow_image_is_read() -> None:
    import io

    image = Image.open(io.BytesIO(file_of(colours(3), "TIFF")))
    image.seek(1)
    (loaded,) = load_pages(image)
    assert loaded.pixels[5, 5, 0] == 60
    assert "only the current one of 3" in loaded.info.notes[-1]
    assert image.tell() == 1
