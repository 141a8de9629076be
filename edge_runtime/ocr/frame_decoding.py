"""One frame of an opened picture to an upright page within bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from edge_runtime.errors import EdgeRuntimeError
from edge_runtime.ocr.affine import IDENTITY, Affine
from edge_runtime.ocr.load_options import LoadOptions
from edge_runtime.ocr.page_image import PageImage, Pixels
from edge_runtime.ocr.pillow_adapter import pillow_errors
from edge_runtime.ocr.pixel_modes import image_to_rgb
from edge_runtime.values import PageInfo

if TYPE_CHECKING:
    from PIL import Image

_ORIENTATION = 274
# EXIF orientation -> mirrored left to right, then turned counter-clockwise by
_ORIENTATIONS = {
    1: (False, 0),
    2: (True, 0),
    3: (False, 180),
    4: (True, 180),
    5: (True, 90),
    6: (False, 270),
    7: (True, 270),
    8: (False, 90),
}
# Bytes per pixel while decoding: Pillow keeps colours in four bytes; palettes are expanded to
# that; these decoders hold whole frames more than once.
_MODE_BYTES = {"1": 2, "L": 1, "P": 5, "PA": 8, "LA": 8, "RGBA": 8, "I;16": 3, "I": 5, "F": 5}
_FORMAT_BYTES = {"WEBP": 16, "AVIF": 16, "JPEG2000": 20, "GIF": 12, "HEIF": 16}
_COEFFICIENT_BYTES = 2  # libjpeg keeps all coefficients of a progressive file
_CREDIBLE_DPI = (50.0, 2400.0)


def decode_frame(
    image: Image.Image, index: int, options: LoadOptions, *, name: str, may_draft: bool = True
) -> PageImage:
    """Decode the current frame of `image`.

    Args:
        image: Opened by `pillow_adapter.open_image`, or a caller's own picture.
        index: Number of the page.
        options: Bounds.
        name: What errors call the picture.
        may_draft: Whether a JPEG may be decoded at a fraction of its size; it changes `image`.

    Raises:
        UnreadableInput: damaged or truncated.
        InputTooLarge: decoding would take more memory than allowed.
    """
    notes: list[str] = []
    # Pillow turns TIFF while loading and forgets the tag; of PNG it loads all to look for the tag,
    # which must not happen before the size was checked
    is_tiff = image.format == "TIFF" and hasattr(image, "tag_v2")
    orientation = _orientation(image, notes) if is_tiff else 1
    stored = _stored_size(image, orientation)
    with pillow_errors(name):
        _check_memory(image, stored, options, name=name, may_draft=may_draft)
        image.load()
    if not is_tiff:
        orientation = _orientation(image, notes)
    with pillow_errors(name):
        result = image_to_rgb(image, options.bounded_size(*image.size))
    pixels = result.pixels
    if is_tiff and orientation != 1:
        # bring the frame back to how it is stored, so that one path places boxes
        pixels = _undo_orientation(pixels, orientation)
    notes += result.notes
    rows, columns = pixels.shape[:2]
    if (columns, rows) != stored:
        notes.append(f"reduced from {stored[0]}x{stored[1]} to {columns}x{rows} pixels")
    info = PageInfo(index, stored[0], stored[1], 0, _credible_dpi(image), tuple(notes))
    to_stored = Affine.scale(stored[0] / columns, stored[1] / rows)
    if to_stored.is_identity:
        to_stored = IDENTITY
    return oriented(PageImage(pixels, info, to_stored), orientation)


def _check_memory(
    image: Image.Image,
    stored: tuple[int, int],
    options: LoadOptions,
    *,
    name: str,
    may_draft: bool,
) -> None:
    is_jpeg = image.format == "JPEG"
    if may_draft and is_jpeg:
        _decode_at_a_fraction(image, stored, options)
    width, height = image.size
    needed = width * height * _bytes_per_pixel(image)
    if is_jpeg and image.info.get("progressive"):
        needed += stored[0] * stored[1] * _COEFFICIENT_BYTES * _samples_per_pixel(image)
    options.check_decode_memory(needed, name)


def _decode_at_a_fraction(
    image: Image.Image, stored: tuple[int, int], options: LoadOptions
) -> None:
    """Let a large JPEG be decoded at 1/2, 1/4 or 1/8: within the bounds, or next above them.

    The fraction below the bounds is preferred while it keeps half of the allowed pixels: it
    takes a quarter of the memory and time, and needs no second step.
    """
    n_pixels = stored[0] * stored[1]
    divisor = 1
    while divisor < 8 and n_pixels / divisor**2 > options.max_pixels:
        divisor *= 2
    if n_pixels / divisor**2 < options.max_pixels / 2:
        divisor //= 2
    if divisor > 1:
        image.draft(None, (stored[0] // divisor, stored[1] // divisor))


def _samples_per_pixel(image: Image.Image) -> float:
    """Samples that a JPEG stores per pixel: 1.5 with colours at half the resolution."""
    try:
        components: Any = getattr(image, "layer")  # noqa: B009 - not in the type stubs
        areas = [int(horizontal) * int(vertical) for _, horizontal, vertical, _ in components]
        return sum(areas) / max(areas)
    except (AttributeError, TypeError, ValueError, ZeroDivisionError):
        return float(len(image.getbands()))


def oriented(page: PageImage, orientation: int) -> PageImage:
    """The page as an EXIF orientation (1 to 8) says it has to be shown."""
    mirrored, angle_ccw = _ORIENTATIONS[orientation]
    if mirrored:
        undo = Affine.undo_mirror(width=page.width)
        pixels = np.ascontiguousarray(page.pixels[:, ::-1])
        page = PageImage(pixels, page.info, page.to_original.compose(undo))
    return page.rotated(angle_ccw)


def _undo_orientation(pixels: Pixels, orientation: int) -> Pixels:
    mirrored, angle_ccw = _ORIENTATIONS[orientation]
    stored = np.rot90(pixels, -(angle_ccw // 90))
    if mirrored:
        stored = stored[:, ::-1]
    return np.ascontiguousarray(stored)


def _orientation(image: Image.Image, notes: list[str]) -> int:
    try:
        with pillow_errors("EXIF data", doing="read"):
            value: Any = image.getexif().get(_ORIENTATION, 1)
    except EdgeRuntimeError:
        # a picture with broken metadata is still a picture
        notes.append("damaged EXIF data were ignored")
        return 1
    if value in _ORIENTATIONS:
        return int(value)
    notes.append(f"unknown EXIF orientation {value!r} was ignored")
    return 1


def _stored_size(image: Image.Image, swapped_by: int) -> tuple[int, int]:
    width, height = image.size
    return (height, width) if swapped_by >= 5 else (width, height)


def _bytes_per_pixel(image: Image.Image) -> float:
    by_mode = _MODE_BYTES.get(image.mode.removesuffix("B").removesuffix("L"), 4)
    if image.mode in _MODE_BYTES:
        by_mode = _MODE_BYTES[image.mode]
    return max(by_mode, _FORMAT_BYTES.get(image.format or "", 0))


def _credible_dpi(image: Image.Image) -> float | None:
    """The resolution a file states, unless it is absurd; nothing depends on it."""
    stated: Any = image.info.get("dpi")
    try:
        x, y = float(stated[0]), float(stated[1])
    except (TypeError, ValueError, LookupError, ArithmeticError):
        return None
    low, high = _CREDIBLE_DPI
    if not (math.isfinite(x) and math.isfinite(y) and low <= x <= high and low <= y <= high):
        return None
    return x
