"""Every encoding of one picture gives the same pixels."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageOps
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from edge_runtime.ocr.loading import load_pages
from edge_runtime.ocr.page_image import PageImage
from tests.unit.ocr_loading.drawing import encoded, page

RGB = np.asarray(page())
GRAY = np.asarray(page().convert("L"))


def only(source: object) -> PageImage:
    (loaded,) = load_pages(source)  # type: ignore[arg-type]
    return loaded


def difference(loaded: PageImage, expected: np.ndarray) -> float:
    if expected.ndim == 2:
        expected = np.repeat(expected[..., np.newaxis], 3, axis=2)
    assert loaded.pixels.shape == expected.shape
    assert loaded.pixels.dtype == np.uint8
    return float(np.abs(loaded.pixels.astype(int) - expected.astype(int)).mean())


def sixteen_bit(scale: int = 257) -> Image.Image:
    return Image.fromarray(GRAY.astype(np.uint16) * np.uint16(scale))


@pytest.mark.parametrize(
    ("kind", "options", "tolerance"),
    [
        ("PNG", {}, 0.0),
        ("BMP", {}, 0.0),
        ("PPM", {}, 0.0),
        ("TIFF", {"compression": "tiff_lzw"}, 0.0),
        ("TIFF", {"compression": "raw"}, 0.0),
        ("TIFF", {"compression": "jpeg", "quality": 95}, 4.0),
        ("WEBP", {"lossless": True}, 0.0),
        ("JPEG", {"quality": 95}, 4.0),
        ("JPEG", {"quality": 95, "progressive": True}, 4.0),
        ("JPEG2000", {}, 0.0),
    ],
)
def test_formats(kind: str, options: dict[str, object], tolerance: float) -> None:
    assert difference(only(encoded(page(), kind, **options)), RGB) <= tolerance


@pytest.mark.parametrize(
    ("image", "kind", "expected", "tolerance"),
    [
        (page().convert("L"), "PNG", GRAY, 0.0),
        (page().convert("LA"), "PNG", GRAY, 0.0),
        (page().convert("RGBA"), "PNG", RGB, 0.0),
        (page().convert("P", palette=Image.Palette.ADAPTIVE), "PNG", RGB, 1.0),
        (page().convert("P", palette=Image.Palette.ADAPTIVE), "GIF", RGB, 1.0),
        (page().convert("CMYK"), "JPEG", RGB, 4.0),
        (page().convert("CMYK"), "TIFF", RGB, 1.0),
        (page().convert("YCbCr"), "TIFF", RGB, 2.0),
        (sixteen_bit(), "PNG", GRAY, 0.5),
        (sixteen_bit(), "TIFF", GRAY, 0.5),
        (sixteen_bit(16), "PNG", GRAY, 1.0),
        (Image.fromarray(GRAY.astype(np.float32) / 255), "TIFF", GRAY, 0.5),
        (Image.fromarray(GRAY.astype(np.float32)), "TIFF", GRAY, 0.5),
        (Image.fromarray(GRAY.astype(np.int32)), "TIFF", GRAY, 0.5),
    ],
    ids=lambda value: value.mode if isinstance(value, Image.Image) else str(value)[:5].strip(),
)
def test_modes(image: Image.Image, kind: str, expected: np.ndarray, tolerance: float) -> None:
    assert difference(only(encoded(image, kind)), expected) <= tolerance


def test_big_endian_sixteen_bit_tiff() -> None:
    data = np.asarray(sixteen_bit()).astype(">u2").tobytes()
    swapped = Image.frombytes("I;16B", sixteen_bit().size, data)
    assert difference(only(encoded(swapped, "TIFF")), GRAY) <= 0.5


def test_sixteen_bit_tiff_with_white_as_zero() -> None:
    inverted = Image.fromarray(np.uint16(65535) - np.asarray(sixteen_bit()))
    tags = ImageFileDirectory_v2()
    tags[262] = 0
    data = bytearray(encoded(inverted, "TIFF", tiffinfo=tags))
    photometric = struct.pack("<HHL", 262, 3, 1)
    at = data.find(photometric)
    if at >= 0:  # Pillow writes its own value for this tag
        data[at + 8] = 0
    assert difference(only(bytes(data)), GRAY) <= 0.5


def test_one_bit_fax_page() -> None:
    fax = page().convert("1")
    data = encoded(fax, "TIFF", compression="group4")
    assert difference(only(data), np.asarray(fax.convert("L"))) == 0.0


def test_lab_tiff() -> None:
    transform = ImageCms.buildTransform(
        ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), "RGB", "LAB"
    )
    lab = ImageCms.applyTransform(page(), transform)
    assert lab is not None
    assert difference(only(encoded(lab, "TIFF")), RGB) <= 3.0


def test_inks_without_adobe_marker_are_not_turned_into_a_negative() -> None:
    data = encoded(ImageOps.invert(page()).convert("CMYK"), "JPEG", quality=95)
    at = data.find(b"\xff\xee")
    length = int.from_bytes(data[at + 2 : at + 4], "big")
    plain = data[:at] + data[at + 2 + length :]
    stored = np.asarray(Image.open(io.BytesIO(plain)))
    loaded = only(plain)
    assert "plain inks" in loaded.info.notes[0]
    c, m, y, k = (255 - stored[..., i].astype(int) for i in range(4))
    expected = np.stack([(255 - v) * (255 - k) // 255 for v in (c, m, y)], axis=2)
    assert difference(loaded, expected) <= 1.0


@pytest.mark.parametrize("ink", ["white", "black"])
@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_text_on_transparent_ground_stays_visible(ink: str, mode: str) -> None:
    alpha = Image.fromarray(np.uint8(255) - GRAY)
    image = Image.new("RGB", alpha.size, ink)
    image.putalpha(alpha)
    if mode == "P":
        image = image.quantize(16)
    elif mode == "LA":
        image = image.convert("LA")
    loaded = only(encoded(image, "PNG"))
    expected = GRAY if ink == "black" else np.uint8(255) - GRAY
    assert difference(loaded, expected) <= 3.0
    assert "transparent" in loaded.info.notes[0]


def test_black_and_white_text_on_transparent_ground_both_stay_visible() -> None:
    image = Image.new("RGBA", (60, 20), (0, 0, 0, 0))
    image.paste((0, 0, 0, 255), (4, 4, 26, 16))
    image.paste((255, 255, 255, 255), (34, 4, 56, 16))
    pixels = only(encoded(image, "PNG")).pixels[..., 0].astype(int)
    ground = pixels[0, 0]
    assert abs(pixels[10, 10] - ground) > 80
    assert abs(pixels[10, 45] - ground) > 80


def test_transparent_colour_key() -> None:
    data = encoded(page(), "PNG", transparency=(255, 255, 255))
    assert difference(only(data), RGB) == 0.0


def test_empty_alpha_channel_is_ignored() -> None:
    image = page()
    image.putalpha(0)
    loaded = only(encoded(image, "PNG"))
    assert difference(loaded, RGB) == 0.0
    assert "alpha" in loaded.info.notes[0]


def test_faint_sixteen_bit_page_becomes_readable_and_empty_one_stays_empty() -> None:
    faint = Image.fromarray((30000 + GRAY.astype(np.uint16) * 40).astype(np.uint16))
    assert np.ptp(only(encoded(faint, "PNG")).pixels) > 240
    noise = np.random.default_rng(0).integers(60000, 60300, GRAY.shape, dtype=np.uint16)
    assert np.ptp(only(encoded(Image.fromarray(noise), "PNG")).pixels) < 16


def test_not_a_number_samples_are_harmless() -> None:
    values = GRAY.astype(np.float32) / 255
    values[0, 0], values[0, 1] = np.nan, np.inf
    assert difference(only(encoded(Image.fromarray(values), "TIFF")), GRAY) <= 1.0


@pytest.mark.parametrize("dpi", [(0, 0), (1, 1), (300, 300)])
def test_absurd_resolution_is_ignored(dpi: tuple[int, int]) -> None:
    loaded = only(encoded(page(), "JPEG", dpi=dpi))
    assert loaded.info.dpi == (300 if dpi == (300, 300) else None)


def test_resolution_with_zero_denominator_is_ignored() -> None:
    exif = Image.Exif()
    exif[282] = exif[283] = 300.0
    exif[296] = 2
    data = encoded(page(), "JPEG", exif=exif)
    (stored,) = {order for order in "<>" if struct.pack(order + "LL", 300, 1) in data}
    broken = data.replace(struct.pack(stored + "LL", 300, 1), struct.pack(stored + "LL", 1, 0))
    assert only(broken).info.dpi in {None, 72.0}  # 72: what Pillow makes of it
