"""Orientation stored in a file is applied, and boxes still point into the stored raster."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from edge_runtime.ocr.loading import LoadOptions, load_pages
from edge_runtime.ocr.page_image import PageImage
from tests.unit.ocr_loading.drawing import centre_of_mark, encoded, marked, page

ORIENTATIONS = range(1, 9)


def oriented(image: Image.Image, kind: str, orientation: int, **options: object) -> bytes:
    exif = Image.Exif()
    exif[274] = orientation
    if kind == "TIFF":
        return encoded(image, kind, tiffinfo={274: orientation}, **options)
    return encoded(image, kind, exif=exif, **options)


def only(source: object, options: LoadOptions | None = None) -> PageImage:
    (loaded,) = load_pages(source, options or LoadOptions())  # type: ignore[arg-type]
    return loaded


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("TIFF", {"compression": "raw"}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("WEBP", {"lossless": True}),
        ("JPEG", {"quality": 100, "subsampling": 0}),
    ],
)
def test_pages_are_shown_as_a_viewer_shows_them(
    kind: str, options: dict[str, object], orientation: int
) -> None:
    data = oriented(page(), kind, orientation, **options)
    expected = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))
    loaded = only(data)
    assert loaded.pixels.shape == expected.shape
    assert np.abs(loaded.pixels.astype(int) - expected.astype(int)).max() <= 2
    assert (loaded.info.width, loaded.info.height) == page().size


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(["PNG", "TIFF"]),
    orientation=st.sampled_from(list(ORIENTATIONS)),
    x=st.integers(20, 59),
    y=st.integers(20, 39),
    turn=st.sampled_from([0, 90, 180, 270]),
    megapixels=st.sampled_from([32.0, 0.004, 0.0025]),
    left=st.integers(0, 5),
)
def test_a_stored_pixel_is_found_and_leads_back(
    kind: str, orientation: int, x: int, y: int, turn: int, megapixels: float, left: int
) -> None:
    data = oriented(Image.fromarray(marked(90, 60, x, y)), kind, orientation)
    loaded = only(data, LoadOptions(max_megapixels=megapixels)).rotated(turn)
    loaded = loaded.crop(left, 1, loaded.width, loaded.height)
    back = loaded.to_original.apply(centre_of_mark(loaded.pixels))
    np.testing.assert_allclose(back, [x + 0.5, y + 0.5], atol=0.75)


@pytest.mark.parametrize(("orientation", "clockwise"), [(1, 0), (3, 180), (6, 270), (8, 90)])
def test_rotation_says_how_the_stored_content_stands(orientation: int, clockwise: int) -> None:
    assert only(oriented(page(), "PNG", orientation)).info.rotation == clockwise


def test_pillow_images_and_bytes_are_treated_like_files() -> None:
    data = oriented(page(), "PNG", 6)
    from_bytes = only(data)
    from_image = only(Image.open(io.BytesIO(data)))
    np.testing.assert_array_equal(from_bytes.pixels, from_image.pixels)
    assert from_bytes.to_original == from_image.to_original


@pytest.mark.parametrize("kind", ["raw", "tiff_lzw"])
def test_tiff_that_the_caller_has_loaded_already(kind: str) -> None:
    image = Image.open(io.BytesIO(oriented(page(), "TIFF", 6, compression=kind)))
    image.load()
    assert only(image).pixels.shape == (90, 60, 3)


@pytest.mark.parametrize("orientation", [0, 9, 4711])
def test_unknown_orientation_is_ignored_with_a_note(orientation: int) -> None:
    loaded = only(oriented(page(), "JPEG", orientation))
    assert loaded.pixels.shape == (60, 90, 3)
    assert "orientation" in loaded.info.notes[0]


def test_damaged_exif_does_not_cost_the_picture() -> None:
    data = encoded(page(), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff garbage")
    assert only(data).pixels.shape == (60, 90, 3)
