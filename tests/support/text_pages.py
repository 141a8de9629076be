"""Pages with known text, for engines that read letters or the blocks of tiny models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edge_runtime.ocr.page_image import PageImage
from edge_runtime.values import Box, PageInfo
from tools.make_tiny_onnx import draw_line

Draw = Callable[[np.ndarray, str, int, int], tuple[int, int, int, int]]


def draw_blocks(canvas: np.ndarray, text: str, x: int, y: int) -> tuple[int, int, int, int]:
    """Text of the letters A to D for the tiny models."""
    return draw_line(canvas, text, x, y)


def draw_letters(canvas: np.ndarray, text: str, x: int, y: int) -> tuple[int, int, int, int]:
    """Printed text; returns the box of its ink."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=30)
    image = Image.fromarray(canvas)
    draw = ImageDraw.Draw(image)
    draw.text((x, y), text, fill="black", font=font)
    canvas[:] = np.array(image)
    x0, y0, x1, y1 = draw.textbbox((x, y), text, font=font)
    return round(x0), round(y0), round(x1), round(y1)


@dataclass(frozen=True)
class Drawn:
    """A line that was drawn: its text and where its ink is."""

    text: str
    box: Box


def blank_page(width: int, height: int) -> np.ndarray:
    return np.full((height, width, 3), 255, np.uint8)


def as_page(pixels: np.ndarray, *, index: int = 0) -> PageImage:
    height, width = pixels.shape[:2]
    return PageImage(pixels, PageInfo(index, width, height))


def draw_all(canvas: np.ndarray, draw: Draw, *lines: tuple[str, int, int]) -> list[Drawn]:
    return [Drawn(text, Box(*(float(v) for v in draw(canvas, text, x, y)))) for text, x, y in lines]
