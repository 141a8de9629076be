"""The committed samples are whole, small, and what the drawing program draws."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from tools import make_samples

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
EXPECTED = json.loads((SAMPLES / "expected.json").read_text("utf-8"))
MAX_BYTES = 150_000


@pytest.mark.parametrize("name", EXPECTED)
def test_sample_is_small(name: str) -> None:
    assert 1000 < (SAMPLES / name).stat().st_size < MAX_BYTES


def test_every_sample_has_its_truth() -> None:
    assert {path.name for path in SAMPLES.iterdir()} == {"expected.json", *EXPECTED}


def test_drawing_twice_gives_the_same_files(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        assert make_samples.main(["--out", str(tmp_path / folder)]) == 0
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_committed_truth_is_the_drawn_one(tmp_path: Path) -> None:
    make_samples.main(["--out", str(tmp_path)])
    assert json.loads((tmp_path / "expected.json").read_text("utf-8")) == EXPECTED
    for name in ("receipt.png", "invoice.png", "form.png", "photo.jpg"):
        with Image.open(tmp_path / name) as drawn, Image.open(SAMPLES / name) as committed:
            assert drawn.size == committed.size


def test_pdf_has_its_text_on_two_pages() -> None:
    from edge_runtime.ocr.loading import load_pages

    pages = list(load_pages(SAMPLES / "two_pages.pdf"))
    assert len(pages) == 2
    text = " ".join(line.text for page in pages for line in page.text_lines)
    for line in EXPECTED["two_pages.pdf"]["lines"]:
        assert line in text


def test_sums_on_the_samples_add_up() -> None:
    for name in ("invoice.png", "two_pages.pdf"):
        values = EXPECTED[name]["values"]
        net = sum(item["amount"] for item in values["items"])
        assert net == pytest.approx(values["net_total"])
        assert net + values["tax_total"] == pytest.approx(values["total"])
