"""Arrays of any usual layout to 8-bit RGB."""

from __future__ import annotations

import numpy as np

from edge_runtime.errors import UnreadableInput, UsageError
from edge_runtime.ocr.affine import Affine
from edge_runtime.ocr.load_options import STAGE, LoadOptions
from edge_runtime.ocr.page_image import PageImage
from edge_runtime.ocr.pixel_modes import AnyArray, gray_to_uint8, image_to_rgb
from edge_runtime.values import PageInfo


def load_array(array: AnyArray, options: LoadOptions) -> PageImage:
    """One page from (h, w), (h, w, 1) gray, (h, w, 2) gray+alpha, (h, w, 3) RGB or (h, w, 4) RGBA.

    Boolean, integer and floating-point samples are scaled to 8 bits by their content; all colour
    channels by the same factor. Colour order is RGB as in Pillow (OpenCV's BGR has to be
    turned by the caller: `array[..., ::-1]`).

    Raises:
        UnreadableInput: the array is empty.
        UsageError: another shape or type.
        InputTooLarge: it is beyond the bounds of `options`.
    """
    from PIL import Image

    samples = _checked(array)
    height, width, n_channels = samples.shape
    options.check_decode_memory(height * width * 2 * n_channels, "The array")
    if samples.dtype != np.uint8:
        samples = _to_uint8(samples)
    if n_channels == 1:
        samples = samples[..., 0]
    image = Image.fromarray(np.ascontiguousarray(samples))
    size = options.bounded_size(width, height)
    result = image_to_rgb(image, size)
    notes = result.notes
    if size != (width, height):
        notes += (f"reduced from {width}x{height} to {size[0]}x{size[1]} pixels",)
    info = PageInfo(index=0, width=width, height=height, notes=notes)
    return PageImage(result.pixels, info, Affine.scale(width / size[0], height / size[1]))


def _checked(array: AnyArray) -> AnyArray:
    if array.size == 0:
        raise UnreadableInput("The array is empty.", hint="pass at least one pixel", stage=STAGE)
    if array.dtype.kind not in "buif":
        raise UsageError(
            f"An array of {array.dtype} is not a picture.", hint="pass numbers", stage=STAGE
        )
    if array.ndim == 2:
        return array[..., np.newaxis]
    if array.ndim == 3 and 1 <= array.shape[2] <= 4:
        return array
    hint = "pass (height, width) or (height, width, 1 to 4 channels)"
    if array.ndim == 3 and array.shape[0] in (1, 3, 4):
        hint += "; channels come last: array.transpose(1, 2, 0)"
    if array.ndim == 4:
        hint += "; pass the pages of a batch one by one"
    raise UsageError(f"An array of shape {array.shape} is not a page.", hint=hint, stage=STAGE)


def _to_uint8(samples: AnyArray) -> AnyArray:
    """Scale colour by one common factor; alpha keeps its own full range."""
    height, width, n_channels = samples.shape
    n_colours = n_channels - 1 if n_channels in (2, 4) else n_channels
    colours = samples[..., :n_colours].reshape(height, width * n_colours)
    scaled = gray_to_uint8(colours).reshape(height, width, n_colours)
    if n_colours == n_channels:
        return scaled
    alpha = samples[..., n_colours].astype(np.float64)
    if samples.dtype.kind in "iu":
        full = 255.0 if alpha.max() <= 255 else float(max(65535.0, alpha.max()))
    else:
        full = 1.0 if samples.dtype.kind == "b" or alpha.max() <= 1.0 else 255.0
    opaque = np.clip(np.nan_to_num(alpha) * (255.0 / full), 0, 255).astype(np.uint8)
    return np.concatenate([scaled, opaque[..., np.newaxis]], axis=2)
