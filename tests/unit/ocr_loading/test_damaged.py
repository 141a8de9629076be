"""Whatever is wrong with a file, the error is one of ours and says what to do."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile

from edge_runtime.errors import EdgeRuntimeError, InputTooLarge, UnreadableInput
from edge_runtime.ocr.loading import LoadOptions, load_pages
from tests.unit.ocr_loading.drawing import PdfPageSpec, PdfWriter, encoded, page, text_at

GRAY16 = Image.fromarray(np.asarray(page().convert("L")).astype(np.uint16) * np.uint16(257))
SAMPLES = {
    "png": encoded(page(), "PNG"),
    "palette": encoded(page().quantize(8), "PNG", transparency=0),
    "png16": encoded(GRAY16, "PNG"),
    "apng": encoded(page(), "PNG", save_all=True, append_images=[page().rotate(180)]),
    "jpeg": encoded(page(), "JPEG"),
    "progressive": encoded(page(), "JPEG", progressive=True),
    "cmyk": encoded(page().convert("CMYK"), "JPEG"),
    "gif": encoded(page(), "GIF", save_all=True, append_images=[page().rotate(180)]),
    "webp": encoded(page(), "WEBP"),
    "tiff": encoded(page(), "TIFF", save_all=True, append_images=[page()]),
    "lzw": encoded(page(), "TIFF", compression="tiff_lzw"),
    "fax": encoded(page().convert("1"), "TIFF", compression="group4"),
    "bmp": encoded(page(), "BMP"),
    "jp2": encoded(page(), "JPEG2000"),
    "ppm": encoded(page(), "PPM"),
    "pdf": PdfWriter().write([PdfPageSpec(text_at(20, 100, "Total amount due 12.50"))]),
}


def problem(source: object) -> EdgeRuntimeError:
    with pytest.raises(EdgeRuntimeError) as caught:
        list(load_pages(source))  # type: ignore[arg-type]
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if kind != "pdf"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7])
def test_truncated_pictures(kind: str, share: float) -> None:
    data = SAMPLES[kind][: max(12, int(len(SAMPLES[kind]) * share))]
    assert isinstance(problem(data), UnreadableInput)


def test_truncated_jpeg_keeps_no_half_page() -> None:
    data = encoded(Image.effect_noise((200, 200), 80).convert("RGB"), "JPEG")
    error = problem(data[: len(data) // 2])
    assert "truncated" in error.message
    assert error.stage == "ocr.load"


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_damaged_bytes_never_let_a_foreign_error_or_warning_out(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(SAMPLES)))
    broken = bytearray(SAMPLES[kind])
    places = st.integers(0, min(len(broken), 400) - 1) | st.integers(0, len(broken) - 1)
    for _ in range(data.draw(st.integers(1, 6))):
        broken[data.draw(places)] = data.draw(st.integers(0, 255))
    options = LoadOptions(max_decode_mb=64)
    hint: str | None = "none was needed"
    try:
        for loaded in load_pages(bytes(broken), options):
            assert loaded.pixels.dtype == np.uint8
    except EdgeRuntimeError as err:
        hint = err.hint
    assert hint


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=300))
def test_random_bytes_are_not_documents(data: bytes) -> None:
    assert isinstance(problem(data), UnreadableInput)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"this is not a picture", "not a picture"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git-LFS"),
        (b"<!DOCTYPE html><html>404</html>", "web page"),
        (b"<?xml version='1.0'?><svg xmlns='x'/>", "SVG"),
        (b"PK\x03\x04 word/document.xml", "archive"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "PostScript"),
        (b"\0" * 512, "zero bytes"),
    ],
)
def test_other_things(data: bytes, words: str, tmp_path: Path) -> None:
    assert words in problem(data).message
    path = tmp_path / "scan.png"
    path.write_bytes(data)
    error = problem(path)
    assert words in error.message
    assert "scan.png" in error.message


def test_missing_file_and_folder(tmp_path: Path) -> None:
    assert "does not exist" in problem(tmp_path / "none.png").message
    assert "is a folder" in problem(tmp_path).message
    assert "cannot be opened" in problem("a\0b.png").message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "secret.png"
    path.write_bytes(SAMPLES["png"])
    path.chmod(0)
    assert "cannot be opened" in problem(path).message


def test_closed_and_damaged_pillow_images() -> None:
    import io

    lazy = Image.open(io.BytesIO(SAMPLES["jpeg"][:900]))
    assert isinstance(problem(lazy), UnreadableInput)
    closed = Image.open(io.BytesIO(SAMPLES["png"]))
    closed.close()
    assert isinstance(problem(closed), UnreadableInput)


def test_memory_that_runs_out_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(ImageFile.ImageFile, "load", fail)
    assert isinstance(problem(SAMPLES["png"]), InputTooLarge)


def test_the_cause_is_kept_for_whoever_debugs() -> None:
    error = problem(SAMPLES["jpeg"][:900])
    assert error.__cause__ is not None
    assert "decoder_error" in error.details
