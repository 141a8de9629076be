"""No input takes more memory than allowed, and every reduction is said."""

from __future__ import annotations

import struct
import threading
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile

from edge_runtime.errors import InputTooLarge, UsageError
from edge_runtime.ocr.load_options import LoadOptions
from edge_runtime.ocr.loading import load_pages
from tests.unit.ocr_loading.drawing import centre_of_mark, encoded, marked, page


def png_header_claiming(width: int, height: int) -> bytes:
    """A PNG that states a size and holds next to nothing."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">L", len(body)) + kind + body + struct.pack(">L", zlib.crc32(kind + body))
        )

    header = struct.pack(">LLBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0" * 1000)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    )


@pytest.fixture
def loads_counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int]]]:
    """Sizes of pictures whose pixels were decoded."""
    sizes: list[tuple[int, int]] = []
    original = ImageFile.ImageFile.load

    def load(self: ImageFile.ImageFile) -> object:
        sizes.append(self.size)
        return original(self)

    monkeypatch.setattr(ImageFile.ImageFile, "load", load)
    return iter([sizes])


@pytest.mark.parametrize("size", [(60_000, 60_000), (1_000_000, 3_000), (2**31 - 1, 2**31 - 1)])
def test_a_bomb_is_refused_from_its_header(
    size: tuple[int, int], loads_counted: Iterator[list[tuple[int, int]]]
) -> None:
    with pytest.raises(InputTooLarge, match="MB") as caught:
        list(load_pages(png_header_claiming(*size)))
    assert next(loads_counted) == []
    assert caught.value.details["needed_mb"] > 800
    assert caught.value.exit_code == 4


def test_large_pages_are_reduced_and_places_still_lead_back() -> None:
    data = encoded(Image.fromarray(marked(900, 600, 700, 100)).convert("L"), "PNG")
    (loaded,) = load_pages(data, LoadOptions(max_megapixels=0.06))
    assert loaded.pixels.shape == (200, 300, 3)
    assert (loaded.info.width, loaded.info.height) == (900, 600)
    assert loaded.info.notes == ("reduced from 900x600 to 300x200 pixels",)
    back = loaded.to_original.apply(centre_of_mark(loaded.pixels))
    np.testing.assert_allclose(back, [700.5, 100.5], atol=1.6)


def test_jpeg_is_decoded_at_a_fraction() -> None:
    big = page().resize((1600, 1200))
    data = encoded(big, "JPEG", quality=95)
    options = LoadOptions(max_megapixels=0.12, max_decode_mb=1.0)  # whole: 1.9 MP x 4 bytes
    (loaded,) = load_pages(data, options)
    assert loaded.pixels.shape == (300, 400, 3)
    expected = np.asarray(big.resize((400, 300), Image.Resampling.BOX)).astype(int)
    assert np.abs(loaded.pixels.astype(int) - expected).mean() < 6
    assert loaded.to_original.apply_point((400, 300)) == (1600, 1200)


def test_a_pillow_image_of_the_caller_is_not_changed() -> None:
    import io

    image = Image.open(io.BytesIO(encoded(page().resize((400, 300)), "JPEG")))
    list(load_pages(image, LoadOptions(max_megapixels=0.01)))
    assert image.size == (400, 300)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "CMYK", "I;16", "F"])
def test_every_mode_can_be_reduced(mode: str) -> None:
    image = page().resize((360, 240))
    if mode in {"I;16", "F"}:
        gray = np.asarray(image.convert("L")).astype(np.float32) / 255
        image = Image.fromarray(gray if mode == "F" else (gray * 65535).astype(np.uint16))
    else:
        image = image.convert(mode)
    (loaded,) = load_pages(encoded(image, "TIFF"), LoadOptions(max_megapixels=0.0216))
    assert loaded.pixels.shape == (120, 180, 3)
    assert loaded.pixels.mean() > 150


def test_sizes_far_over_pillows_own_limit_neither_warn_nor_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = [encoded(page(), kind) for kind in ("PNG", "JPEG", "TIFF")]
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert [len(list(load_pages(data))) for data in files[:2]] == [1, 1]
    with pytest.raises(InputTooLarge, match="exceeds limit"):  # checked while Pillow decodes
        list(load_pages(files[2]))


def test_warnings_of_other_code_pass_while_pages_are_decoded() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in load_pages(encoded(page(), "PNG")):
            warnings.warn("somebody else's", UserWarning, stacklevel=1)
    assert [str(w.message) for w in seen] == ["somebody else's"]


def test_warning_filters_are_as_before_after_many_threads() -> None:
    before = list(warnings.filters)
    data = encoded(page(), "TIFF", compression="tiff_lzw")
    threads = [threading.Thread(target=lambda: list(load_pages(data))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before


def test_files_over_the_limit_are_refused_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "big.png"
    with path.open("wb") as file:
        file.truncate(3_000_000)
    with pytest.raises(InputTooLarge, match="larger than 2 MB"):
        list(load_pages(path, LoadOptions(max_input_mb=2)))
    with pytest.raises(InputTooLarge, match="larger than 2 MB"):
        list(load_pages(b"x" * 2_000_001, LoadOptions(max_input_mb=2)))


@pytest.mark.parametrize(
    ("width", "height"), [(1, 1), (10_000, 1), (1, 200_000), (70_000, 40), (7_000, 7_000)]
)
def test_bounded_sizes_hold_the_bounds(width: int, height: int) -> None:
    options = LoadOptions(max_megapixels=20)
    w, h = options.bounded_size(width, height)
    assert 1 <= w <= 65_000
    assert 1 <= h <= 65_000
    assert w * h <= 20_000_000
    if width * height <= 20_000_000 and max(width, height) <= 65_000:
        assert (w, h) == (width, height)


@pytest.mark.parametrize(
    "options",
    [
        {"dpi": 3},
        {"dpi": 9999},
        {"text_layer": "maybe"},
        {"max_megapixels": 0},
        {"max_decode_mb": -1},
    ],
)
def test_senseless_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        LoadOptions(**options)  # type: ignore[arg-type]
