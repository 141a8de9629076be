"""Character height told from ink."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from edge_runtime.ocr.text_size import character_height_px

WORDS = "Hamburg total 1234 quick brown fox jumps"


def printed(size: int, *, n_lines: int = 4) -> np.ndarray:
    font = ImageFont.load_default(size=size)
    image = Image.new("RGB", (size * 25, size * 2 * n_lines), "white")
    draw = ImageDraw.Draw(image)
    for i in range(n_lines):
        draw.text((10, 2 * size * i), WORDS, fill="black", font=font)
    return np.array(image)


@pytest.mark.parametrize("size", [16, 24, 40, 64])
def test_height_grows_with_the_font(size):
    found = character_height_px(printed(size))
    assert found is not None
    assert 0.4 * size < found < 0.9 * size


def test_shade_and_scale_of_a_large_photo_do_not_matter():
    page = printed(90, n_lines=12).astype(float)
    page *= np.linspace(0.5, 1, page.shape[1])[None, :, None]
    found = character_height_px(page.astype(np.uint8))
    assert found is not None
    assert 0.4 * 90 < found < 0.9 * 90


@pytest.mark.parametrize("size", [(1, 1), (5, 3000), (400, 400)])
def test_blank_pages_have_no_characters(size):
    assert character_height_px(np.full((*size, 3), 200, np.uint8)) is None


def test_a_few_blobs_are_not_a_text():
    assert character_height_px(printed(24, n_lines=1)[:, :60]) is None
