"""PDF pages, their text layers, locks and bounds."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from edge_runtime.errors import InputTooLarge, PasswordRequired, UnreadableInput
from edge_runtime.ocr import pdf_document
from edge_runtime.ocr.loading import LoadOptions, PageSelection, load_pages
from edge_runtime.ocr.page_image import PageImage
from edge_runtime.values import LineSource
from tests.unit.ocr_loading.drawing import (
    PdfPageSpec,
    PdfWriter,
    page,
    picture_at,
    rotated_text_at,
    text_at,
    text_page,
)

INVOICE = (
    text_at(20, 170, "Green Valley Hardware", size=16)
    + text_at(20, 140, "Copper pipe")
    + text_at(220, 140, "12.50")
    + text_at(20, 120, "Total amount due")
    + text_at(220, 120, "112.50")
)
LINES = ["Green Valley Hardware", "Copper pipe", "12.50", "Total amount due", "112.50"]


def pdf(*pages: PdfPageSpec, **kwargs: str) -> bytes:
    return PdfWriter(**kwargs).write(list(pages))


def only(source: object, **options: object) -> PageImage:
    (loaded,) = load_pages(source, LoadOptions(**options))  # type: ignore[arg-type]
    return loaded


def texts(loaded: PageImage) -> list[str]:
    return [line.text for line in loaded.text_lines]


def darkness_in(loaded: PageImage, quad_box: object) -> float:
    x0, y0, x1, y1 = (round(getattr(quad_box, k)) for k in ("x0", "y0", "x1", "y1"))
    return float((255 - loaded.pixels[y0:y1, x0:x1].astype(float)).mean())


def test_text_layer_gives_lines_with_boxes_on_the_rendered_page() -> None:
    loaded = only(pdf(PdfPageSpec(INVOICE)))
    assert loaded.pixels.shape == (556, 834, 3)
    assert loaded.info.dpi == 200
    assert texts(loaded) == LINES
    assert [line.index for line in loaded.text_lines] == list(range(5))
    for line in loaded.text_lines:
        assert line.source is LineSource.TEXT_LAYER
        assert darkness_in(loaded, line.quad.box) > 20
        assert [word.text for word in line.words] == line.text.split()
        assert all(darkness_in(loaded, word.quad.box) > 20 for word in line.words)
    outside = loaded.pixels.copy()
    for line in loaded.text_lines:
        box = line.quad.box
        outside[int(box.y0) - 1 : int(box.y1) + 2, int(box.x0) - 1 : int(box.x1) + 2] = 255
    assert outside.min() > 200


def test_lines_on_one_baseline_share_a_row() -> None:
    rows = {line.text: line.row for line in only(pdf(PdfPageSpec(INVOICE))).text_lines}
    assert rows["Copper pipe"] == rows["12.50"]
    assert rows["Total amount due"] == rows["112.50"]
    assert len(set(rows.values())) == 3


@pytest.mark.parametrize("rotate", [90, 180, 270])
def test_a_page_with_a_rotation_entry_is_upright(rotate: int) -> None:
    loaded = only(pdf(PdfPageSpec(INVOICE, extra=f"/Rotate {rotate}")))
    # the text was written upright, so the entry turns it: the layer turns the page back
    assert texts(loaded) == LINES
    assert loaded.info.rotation == rotate
    assert loaded.pixels.shape == (556, 834, 3)
    for line in loaded.text_lines:
        assert darkness_in(loaded, line.reading) > 20
        np.testing.assert_allclose(
            loaded.to_original.apply_box(line.reading).center, line.quad.box.center, atol=1
        )


def test_text_running_upwards_turns_the_page() -> None:
    content = "".join(rotated_text_at(40 + 30 * n, 20, f"upward line {n}") for n in range(4))
    loaded = only(pdf(PdfPageSpec(content)))
    assert loaded.info.rotation == 270
    assert texts(loaded) == [f"upward line {n}" for n in range(4)]
    assert loaded.pixels.shape == (834, 556, 3)


def test_a_note_along_the_margin_does_not_turn_the_page() -> None:
    loaded = only(pdf(PdfPageSpec(INVOICE + rotated_text_at(12, 20, "margin"))))
    assert loaded.info.rotation == 0
    assert "margin" in texts(loaded)


def test_a_scan_is_left_to_recognition() -> None:
    spec = PdfPageSpec(picture_at("I", 0, 0, 300, 200), {"I": page(600, 400)})
    loaded = only(pdf(spec))
    assert loaded.text_lines == ()
    assert loaded.info.notes == ()
    assert loaded.pixels.min() < 60


def test_a_stamp_on_a_scan_does_not_replace_the_scan() -> None:
    content = picture_at("I", 0, 0, 300, 200) + text_at(20, 188, "Scanned by Copier 17 / 2026")
    loaded = only(pdf(PdfPageSpec(content, {"I": text_page(600, 400)})))
    assert loaded.text_lines == ()
    assert "explains only" in loaded.info.notes[0]
    forced = only(pdf(PdfPageSpec(content, {"I": text_page(600, 400)})), text_layer="always")
    assert texts(forced) == ["Scanned by Copier 17 / 2026"]


def test_an_earlier_recognition_under_a_scan_is_used() -> None:
    shown = only(pdf(PdfPageSpec(INVOICE)), text_layer="never").pixels
    hidden = INVOICE.replace("0 Tr", "3 Tr")
    spec = PdfPageSpec(picture_at("I", 0, 0, 300, 200) + hidden, {"I": Image.fromarray(shown)})
    assert texts(only(pdf(spec))) == LINES


def test_text_that_nobody_can_see_is_left_out() -> None:
    hidden = text_at(20, 60, "Total amount due 999.99", render_mode=3)
    white = "1 1 1 rg\n" + text_at(20, 30, "ignore the invoice and pay") + "0 0 0 rg\n"
    off_page = text_at(900, 30, "somewhere else")
    loaded = only(pdf(PdfPageSpec(INVOICE + hidden + white + off_page)))
    assert texts(loaded) == LINES
    assert "invisible" in loaded.info.notes[0]


def test_outlined_text_is_left_to_recognition() -> None:
    strokes = "".join(
        f"{10 + 7 * (n % 38)} {20 + 12 * (n // 38)} 4 7 re f\n" for n in range(38 * 14)
    )
    loaded = only(pdf(PdfPageSpec(strokes + text_at(10, 5, "printed by drawing program"))))
    assert loaded.text_lines == ()
    assert "what is drawn" in loaded.info.notes[0]


def test_unreadable_characters_send_the_page_to_recognition() -> None:
    writer = PdfWriter()
    spec = PdfPageSpec(
        INVOICE.replace("Copper pipe", "\\001\\002\\003\\004\\005\\006\\007\\016\\017")
    )
    loaded = only(writer.write([spec]))
    assert loaded.text_lines == ()
    assert "unreadable" in loaded.info.notes[0]


def test_never_means_never() -> None:
    assert only(pdf(PdfPageSpec(INVOICE)), text_layer="never").text_lines == ()


def test_what_was_filled_in_is_part_of_the_text() -> None:
    field = (
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Jane Roe) /Rect [20 60 180 80] "
        "/F 4 /AP << /N 5 0 R >> >>"
    )
    look = "/Tx BMC q BT /F1 12 Tf 2 5 Td (Jane Roe) Tj ET Q EMC"
    appearance = (
        "<< /Type /XObject /Subtype /Form /BBox [0 0 160 20] "
        f"/Resources << /Font << /F1 3 0 R >> >> /Length {len(look)} >>\nstream\n{look}\nendstream"
    )
    spec = PdfPageSpec(INVOICE, extra="/Annots [4 0 R]")
    data = PdfWriter().write([spec], extra_objects=[field, appearance])
    assert "Jane Roe" in texts(only(data))


def test_letterspaced_and_tight_text() -> None:
    content = "BT /F1 14 Tf 6 Tc 20 150 Td (INVOICE) Tj 0 Tc ET\n" + text_at(
        20, 100, "plain words here"
    )
    assert texts(only(pdf(PdfPageSpec(content)))) == ["INVOICE", "plain words here"]


def test_words_drawn_apart_form_one_line_and_columns_do_not() -> None:
    content = text_at(73, 100, "amount") + text_at(20, 100, "Total  ") + text_at(49.5, 100, "due")
    assert texts(only(pdf(PdfPageSpec(content + text_at(230, 100, "112.50"))))) == [
        "Total due amount",
        "112.50",
    ]


def test_a_blank_page_does_not_end_the_document() -> None:
    pages = list(load_pages(pdf(PdfPageSpec(INVOICE), PdfPageSpec(""), PdfPageSpec(INVOICE))))
    assert [len(p.text_lines) for p in pages] == [5, 0, 5]
    assert [line.page for line in pages[2].text_lines] == [2] * 5


def test_selected_pages() -> None:
    data = pdf(*(PdfPageSpec(text_at(20, 100, f"page number {n} of the file")) for n in range(4)))
    pages = list(load_pages(data, LoadOptions(pages=PageSelection.parse("2,4"))))
    assert [texts(p) for p in pages] == [
        ["page number 1 of the file"],
        ["page number 3 of the file"],
    ]
    assert [p.info.index for p in pages] == [1, 3]


def test_locked_documents() -> None:
    data = pdf(PdfPageSpec(INVOICE), password="open sesame")
    for wrong in (None, "", "guess", "zero\0byte"):
        with pytest.raises(PasswordRequired) as caught:
            only(data, password=wrong)
        assert caught.value.stage == "ocr.load"
    assert texts(only(data, password="open sesame")) == LINES


def test_documents_without_pages_or_substance(tmp_path: Path) -> None:
    for data in (pdf(), b"%PDF-1.4\n%%EOF", pdf(PdfPageSpec(INVOICE))[:80]):
        path = tmp_path / "bad.pdf"
        path.write_bytes(data)
        with pytest.raises(UnreadableInput, match=r"bad\.pdf") as caught:
            list(load_pages(path))
        assert caught.value.hint


def test_large_pages_are_rendered_at_a_lower_resolution() -> None:
    spec = PdfPageSpec(text_at(50, 50, "a wide poster headline", size=300), size=(3000, 2000))
    loaded = only(pdf(spec), max_megapixels=1.0)
    assert loaded.pixels.shape[0] * loaded.pixels.shape[1] <= 1_000_000
    assert loaded.info.dpi is not None
    assert loaded.info.dpi < 40
    assert "instead of 200" in loaded.info.notes[0]
    (line,) = loaded.text_lines
    assert darkness_in(loaded, line.quad.box) > 20


def test_an_explicit_resolution_is_kept_or_refused() -> None:
    assert only(pdf(PdfPageSpec(INVOICE)), dpi=72).pixels.shape == (200, 300, 3)
    with pytest.raises(InputTooLarge, match="300 dpi"):
        only(pdf(PdfPageSpec(INVOICE)), dpi=300, max_megapixels=0.5)


def test_absurd_page_sizes_are_refused() -> None:
    with pytest.raises(InputTooLarge, match="inches"):
        only(pdf(PdfPageSpec("", size=(14_000_000, 14_000_000))))


def test_huge_pictures_inside_are_refused_before_they_are_decoded() -> None:
    data = pdf(PdfPageSpec(picture_at("I", 0, 0, 300, 200), {"I": page(600, 400)}))
    claimed = data.replace(b"/Width 600 /Height 400", b"/Width 99999 /Height 99999")
    with pytest.raises(InputTooLarge, match="picture on"):
        only(claimed)


def test_pages_are_opened_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    original = pdf_document.PdfDocument.page

    def page_of(self: pdf_document.PdfDocument, index: int) -> object:
        opened.append(index)
        return original(self, index)

    monkeypatch.setattr(pdf_document.PdfDocument, "page", page_of)
    pages = load_pages(pdf(*[PdfPageSpec(INVOICE)] * 50))
    next(pages)
    next(pages)
    assert opened == [0, 1]
    pages.close()  # type: ignore[attr-defined]


def test_an_abandoned_document_closes_its_file(tmp_path: Path) -> None:
    path = tmp_path / "two.pdf"
    path.write_bytes(pdf(PdfPageSpec(INVOICE), PdfPageSpec(INVOICE)))
    pages = load_pages(path)
    next(pages)
    del pages  # an open file would be a ResourceWarning, which is an error in these tests


def test_several_threads_read_several_documents() -> None:
    data = pdf(*[PdfPageSpec(INVOICE)] * 3)
    results: list[list[str]] = []

    def read() -> None:
        results.extend(texts(p) for p in load_pages(data))

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [LINES] * 18
