"""PDF pages as images, with the lines of a good text layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import IO

import numpy as np

from edge_runtime import trace
from edge_runtime.errors import InputTooLarge
from edge_runtime.ocr.load_options import (
    DEFAULT_PDF_DPI,
    MAX_SIDE_PX,
    STAGE,
    LoadOptions,
    no_such_pages,
)
from edge_runtime.ocr.page_image import PageImage
from edge_runtime.ocr.pdf_document import PdfDocument, PdfPage, PdfPicture
from edge_runtime.ocr.reading_order import reading_order
from edge_runtime.ocr.text_layer import TextLine, form_lines, quarter_turn, to_values
from edge_runtime.ocr.text_layer_quality import InkMap, TextLayerQuality, measure, visible_lines
from edge_runtime.values import PageInfo, Quad

_PICTURE_BYTES_PER_PIXEL = 4  # PDFium decodes a page's pictures in full before it draws them
_MIN_AUTO_DPI = 10.0


def load_pdf_pages(file: IO[bytes], options: LoadOptions, *, name: str) -> Iterator[PageImage]:
    """Pages of a PDF, rendered one at a time; a page is closed before it is yielded.

    `text_lines` is filled when the text layer is to be used (`options.text_layer`); then nothing
    needs to be recognised. Lines that cannot be seen on the page are left out.

    Raises:
        UnreadableInput: damaged, or without pages.
        PasswordRequired: locked, and the password is missing or wrong.
        InputTooLarge: a page beyond the bounds at the resolution that was asked for.
        UsageError: `options.pages` matches nothing.
    """
    with PdfDocument(file, password=options.password, name=name) as document:
        n_yielded = 0
        for index in range(document.n_pages):
            if not options.wants(index):
                continue
            with trace.current().span("ocr.load", page=index):
                page = _load_page(document, index, options)
            n_yielded += 1
            yield page
        if n_yielded == 0:
            raise no_such_pages(options.pages, document.n_pages)


def _load_page(document: PdfDocument, index: int, options: LoadOptions) -> PageImage:
    with document.page(index) as page:
        dpi, notes = _resolution(page, options)
        width, height = page.size_at(dpi)
        to_pixels = page.to_pixels(width, height)
        pictures = page.pictures(to_pixels)
        _check_pictures(page, pictures, options)
        chars = page.characters(to_pixels) if options.text_layer != "never" else []
        pixels = page.render(dpi)
    lines: list[TextLine] = []
    if chars:
        ink = InkMap(pixels, dpi)
        all_lines = form_lines(chars)
        lines = visible_lines(all_lines, ink)
        quality = measure(chars, lines, pictures, ink)
        verdict = _verdict(quality, options)
        if verdict is not None:
            notes.append(verdict)
            lines = []
        elif len(lines) < len(all_lines):
            notes.append(f"{len(all_lines) - len(lines)} invisible lines of text were left out")
    info = PageInfo(index, width, height, 0, dpi, tuple(notes))
    image = PageImage(pixels, info, text_lines=to_values(lines, page=index))
    return _in_reading_order(image.rotated(quarter_turn(lines)) if lines else image)


def _resolution(page: PdfPage, options: LoadOptions) -> tuple[float, list[str]]:
    dpi = options.dpi or DEFAULT_PDF_DPI
    width, height = page.size_at(dpi)
    if (width, height) == options.bounded_size(width, height):
        return dpi, []
    if options.dpi is not None:
        raise InputTooLarge(
            f"{page.name} would be {width}x{height} pixels at {dpi:g} dpi.",
            hint=f"leave the resolution to the program, or raise max_megapixels (now "
            f"{options.max_megapixels:g}); no side may be over {MAX_SIDE_PX} pixels",
            stage=STAGE,
        )
    bounded_width, bounded_height = options.bounded_size(width, height)
    # rounding up a side may add one pixel, so stay a little below
    lower = dpi * min(bounded_width / width, bounded_height / height) * 0.999
    if lower < _MIN_AUTO_DPI:
        raise InputTooLarge(
            f"{page.name} is {page.width_pt / 72:.0f} x {page.height_pt / 72:.0f} inches.",
            hint="crop the page, or raise max_megapixels",
            stage=STAGE,
        )
    return lower, [f"large page: rendered at {lower:.0f} dpi instead of {dpi:.0f}"]


def _check_pictures(page: PdfPage, pictures: list[PdfPicture], options: LoadOptions) -> None:
    if pictures:
        largest = max(picture.width * picture.height for picture in pictures)
        options.check_decode_memory(largest * _PICTURE_BYTES_PER_PIXEL, f"A picture on {page.name}")


def _verdict(quality: TextLayerQuality, options: LoadOptions) -> str | None:
    """Why the text layer is not used, or None when it is."""
    if options.text_layer == "always" and quality.n_chars > 0:
        return None
    if quality.problem is None:
        return None
    return f"the text layer is not used: {quality.problem}"


def _in_reading_order(page: PageImage) -> PageImage:
    """Number the lines as a person reads them."""
    lines = page.text_lines
    quads = np.array([Quad.from_box(line.reading).points for line in lines], dtype=np.float64)
    reading = reading_order(quads.reshape(-1, 4, 2))
    numbered = tuple(
        replace(lines[i], index=index, row=row)
        for index, (i, row) in enumerate(zip(reading.order, reading.rows, strict=True))
    )
    return replace(page, text_lines=numbered)
