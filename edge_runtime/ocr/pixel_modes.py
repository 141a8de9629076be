"""Pictures of every Pillow mode to 8-bit RGB.

Recognition models know one kind of input. What a file calls gray may be 16 bits, floating
point or printing inks; what it calls white may be transparent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from edge_runtime.ocr.page_image import Pixels

if TYPE_CHECKING:
    from PIL import Image

AnyArray: TypeAlias = npt.NDArray[Any]

# Depths that cameras and scanners put into wider containers.
_NOMINAL_MAXIMA = (255.0, 1023.0, 4095.0, 16383.0, 65535.0)
# Stretching a faint page makes it readable; stretching an empty one turns sensor noise into
# specks that look like text. Eight times is enough for pages with 1/8 of the normal contrast.
_MAX_GAIN = 8.0
_GOOD_CONTRAST = 0.5  # content that fills this share of the range is left as it is
_SAMPLE_PIXELS = 1_000_000
_STRIP_PIXELS = 4_000_000

_TRANSPARENT = 64  # alpha below this shows the ground
_LEGIBLE_CONTRAST = 96.0  # more contrast does not make text easier to read


@dataclass(frozen=True, slots=True)
class RgbResult:
    """Pixels in 8-bit RGB and what was noticed on the way."""

    pixels: Pixels
    notes: tuple[str, ...] = ()


def gray_to_uint8(values: AnyArray) -> Pixels:
    """Scale gray of any numeric type, shape (h, w), to 0..255 by its content.

    The nominal range (8, 10, 12, 14 or 16 bits, or 0..1 for floating point) is found from the
    largest value; contrast is stretched when the content fills only a part of it, at most
    eightfold. Not-a-number and infinite values become the nearest end.
    """
    if values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    if values.dtype == np.bool_:
        return values.astype(np.uint8) * np.uint8(255)
    low, high = _content_range(values)
    nominal_low, nominal_high = _nominal_range(low, high, values.dtype)
    nominal_span = nominal_high - nominal_low
    span = max(high - low, nominal_span / _MAX_GAIN, 1e-12)
    if span >= _GOOD_CONTRAST * nominal_span:
        span = nominal_span
    # a faint page keeps its brightness: the window is put around the content, inside the range
    middle = (low + high) / 2
    bottom = min(max(middle - span / 2, nominal_low), max(nominal_high - span, nominal_low))
    out = np.empty(values.shape, dtype=np.uint8)
    n_rows = max(1, _STRIP_PIXELS // max(1, values.shape[1]))
    for top in range(0, values.shape[0], n_rows):
        # strips bound the memory of the float copy
        strip = values[top : top + n_rows].astype(np.float32)
        np.nan_to_num(strip, copy=False, nan=bottom, posinf=high, neginf=low)
        strip -= np.float32(bottom)
        strip *= np.float32(255.0 / span)
        np.clip(strip, 0, 255, out=strip)
        out[top : top + n_rows] = np.rint(strip, out=strip)
    return out


def _content_range(values: AnyArray) -> tuple[float, float]:
    """Smallest and largest ordinary value; single specks are left out."""
    step = max(1, math.isqrt(values.size // _SAMPLE_PIXELS))
    sample = values[::step, ::step].astype(np.float64).ravel()
    sample = sample[np.isfinite(sample)]
    if sample.size == 0:
        return 0.0, 0.0
    low, high = np.percentile(sample, [0.01, 99.99])
    return float(low), float(high)


def _nominal_range(low: float, high: float, dtype: np.dtype[Any]) -> tuple[float, float]:
    if low < 0:
        return low, max(high, low + 1e-12)
    if np.issubdtype(dtype, np.floating) and high <= 1.0:
        return 0.0, 1.0
    for maximum in _NOMINAL_MAXIMA:
        if high <= maximum:
            return 0.0, maximum
    return 0.0, high


def image_to_rgb(image: Image.Image, size: tuple[int, int] | None = None) -> RgbResult:
    """Convert a loaded Pillow image of any mode, reduced to `size` (width, height) if given."""
    basic, notes = _eight_bit(image)
    if size is not None and size != basic.size:
        from PIL import Image

        basic = basic.resize(size, Image.Resampling.BOX, reducing_gap=2.0)
    if basic.mode == "RGBA":
        basic, ground_notes = _on_contrasting_ground(basic)
        notes += ground_notes
    elif basic.mode != "RGB":
        basic = basic.convert("RGB")
    return RgbResult(np.array(basic, dtype=np.uint8), notes)


def _eight_bit(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    """The image in mode L, RGB, RGBA or CMYK."""
    from PIL import Image

    mode = image.mode
    if mode.startswith("I") or mode == "F":
        gray = gray_to_uint8(np.asarray(image))
        if _is_white_zero(image):
            gray = np.uint8(255) - gray
        return Image.fromarray(gray), (f"{mode} samples were scaled to 8 bits",)
    if mode == "LAB":
        return _lab_to_rgb(image)
    if mode in {"PA", "LA", "La", "RGBA", "RGBa"} or "transparency" in image.info:
        return _with_alpha(image), ()
    if mode == "1":
        return image.convert("L"), ()
    if mode == "CMYK":
        return _adobe_or_plain_inks(image)
    return (image, ()) if mode in {"L", "RGB"} else (image.convert("RGB"), ())


def _with_alpha(image: Image.Image) -> Image.Image:
    if image.mode == "RGBA":
        return image
    if image.mode in {"La", "RGBa"}:  # premultiplied
        straight = image.convert("LA" if image.mode == "La" else "RGBA")
        return straight.convert("RGBA")
    return image.convert("RGBA")


def _is_white_zero(image: Image.Image) -> bool:
    """Whether a TIFF stores white as 0, which Pillow undoes for 8 bits only."""
    tags: Any = getattr(image, "tag_v2", None)
    return tags is not None and tags.get(262) == 0


def _adobe_or_plain_inks(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    """Undo Pillow's inversion where a JPEG does not carry the marker that asks for it."""
    if image.format == "JPEG" and "adobe" not in image.info:
        from PIL import ImageChops

        return ImageChops.invert(image), ("CMYK without Adobe marker: taken as plain inks",)
    return image, ()


def _lab_to_rgb(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    from PIL import Image, ImageCms

    try:
        lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        transform = ImageCms.buildTransform(lab, srgb, "LAB", "RGB")
        converted = ImageCms.applyTransform(image, transform)
    except (ImportError, ImageCms.PyCMSError):
        # Pillow may be built without colour management; lightness is all that reading needs
        lightness = Image.fromarray(np.ascontiguousarray(np.asarray(image)[..., 0]))
        return lightness, ("LAB read as gray",)
    return converted or image.convert("RGB"), ()


def _on_contrasting_ground(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    """Put transparent content on the ground on which it can be read."""
    from PIL import Image

    alpha = image.getchannel("A")
    darkest, brightest = alpha.getextrema()
    rgb = image.convert("RGB")
    if darkest == 255:
        return rgb, ()
    if brightest == 0:
        # some programs write an empty alpha channel beside a real picture
        return rgb, ("the alpha channel is empty and was ignored",)
    level = _ground_level(np.asarray(rgb.convert("L")), np.asarray(alpha))
    ground = Image.new("RGB", rgb.size, (level, level, level))
    ground.paste(rgb, mask=alpha)
    name = {255: "white", 0: "black"}.get(level, "gray")
    return ground, (f"transparent parts were put on {name}",)


def _ground_level(gray: Pixels, alpha: Pixels) -> int:
    """White, black or middle gray: the ground that what stands beside it contrasts with most.

    Only visible pixels next to transparent ones count, so that a photograph or a card with its
    own ground does not decide for text elsewhere.
    """
    step = max(1, math.isqrt(gray.size // _SAMPLE_PIXELS))
    clear = alpha < _TRANSPARENT
    beside = np.zeros_like(clear)
    for distance in (1, 2, 3):
        beside[:, distance:] |= clear[:, :-distance]
        beside[:, :-distance] |= clear[:, distance:]
        beside[distance:] |= clear[:-distance]
        beside[:-distance] |= clear[distance:]
    chosen = gray[::step, ::step][(beside & ~clear)[::step, ::step]].astype(np.float64)
    if chosen.size == 0:
        # translucent everywhere, nothing fully clear: judge by all of it
        chosen = gray[::step, ::step].astype(np.float64).ravel()

    def legibility(level: float) -> float:
        return float(np.minimum(np.abs(chosen - level), _LEGIBLE_CONTRAST).mean())

    best = 255 if legibility(255.0) >= legibility(0.0) else 0
    # gray only where dark and bright text stand side by side: it halves everybody's contrast
    return 128 if legibility(128.0) > 1.25 * legibility(float(best)) else best
