"""A picture of each page, as people would hold it, with what was read and what was decided."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from PIL import Image, ImageDraw, ImageFont

from edge_runtime.cli.output.field_rows import list_place, show_path
from edge_runtime.cli.output.files import write_atomically
from edge_runtime.ocr.load_options import LoadOptions, PageSelection
from edge_runtime.ocr.loading import load_pages
from edge_runtime.ocr.page_image import PageImage
from edge_runtime.values import Box, FieldStatus, FieldValue, Line, Page, Quad, RunResult

_LINE_COLOUR = (70, 130, 200)
_COLOURS = {FieldStatus.OK: (20, 130, 60), FieldStatus.REVIEW: (205, 90, 0)}
_INK = (30, 30, 30)
_PAPER = (248, 248, 245)
_MIN_TEXT_PX = 13
_MIN_WIDTH_PX = 480
_NEVER_COVER = 20.0  # covering a marked value counts so many times covering other text

_Taken: TypeAlias = "list[tuple[Box, float]]"


@dataclass(frozen=True, slots=True)
class _Style:
    """Sizes that follow from the size of the page."""

    text_px: int
    thin_px: int
    thick_px: int

    @classmethod
    def of(cls, width: int, height: int) -> _Style:
        unit = (width * height) ** 0.5
        return cls(
            text_px=max(_MIN_TEXT_PX, round(unit / 62)),
            thin_px=max(1, round(unit / 900)),
            thick_px=max(2, round(unit / 380)),
        )

    def font(self) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
        """Pillow's own scalable font: nothing of the system is needed."""
        return ImageFont.load_default(size=self.text_px)


def write_overlay(
    source: Path | bytes, result: RunResult, path: Path, *, load_options: Mapping[str, Any]
) -> list[Path]:
    """Draw the pages of `result` into PNG files and return their paths.

    One page goes to `path`; several to `<stem>-1.png`, `<stem>-2.png`, ... beside it.

    Raises:
        InputError: the source cannot be read again.
        UsageError: the place cannot be written to.
    """
    pages = {page.info.index: page for page in result.document.pages}
    several = len(pages) > 1
    written: list[Path] = []
    for image in load_pages(source, _options(load_options)):
        page = pages.get(image.info.index)
        if page is None:
            continue
        picture = draw_page(image, page, result.fields)
        name = f"{path.stem}-{page.info.index + 1}{path.suffix or '.png'}"
        target = path.with_name(name) if several else path
        data = io.BytesIO()
        picture.save(data, format="PNG")
        write_atomically(target, data.getvalue())
        written.append(target)
    return written


def _options(given: Mapping[str, Any]) -> LoadOptions:
    values = dict(given)
    if "pages" in values:
        values["pages"] = PageSelection.parse(values["pages"])
    return LoadOptions(text_layer="never", **values)


def draw_page(image: PageImage, page: Page, fields: Sequence[FieldValue]) -> Image.Image:
    """The upright page with thin boxes around lines, thick ones around values, and a legend."""
    upright = image.rotated((page.info.rotation - image.info.rotation) % 360)
    if upright.width < _MIN_WIDTH_PX:
        upright = upright.scaled(_MIN_WIDTH_PX / upright.width)
    to_picture = upright.to_original.inverse()
    picture = Image.fromarray(upright.pixels)
    style = _Style.of(picture.width, picture.height)
    marks = list(_marks(fields, page.info.index))
    glass = Image.new("RGBA", picture.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(glass)
    for line in page.lines:
        _outline(pen, to_picture.apply_quad(line.quad), (*_LINE_COLOUR, 170), style.thin_px)
    for quad, field in marks:
        colour = _COLOURS[field.status]
        shape = to_picture.apply_quad(quad)
        pen.polygon(shape.points, fill=(*colour, 36))
        _outline(pen, shape, (*colour, 255), style.thick_px)
    taken = [(to_picture.apply_quad(quad).box, _NEVER_COVER) for quad, _ in marks]
    taken += [(to_picture.apply_quad(line.quad).box, 1.0) for line in page.lines]
    first = {_label_text(field): (quad, field) for quad, field in reversed(marks)}
    for text, (quad, field) in first.items():
        colour = _COLOURS[field.status]
        place = _label(pen, to_picture.apply_quad(quad).box, text, colour, style, taken)
        taken.append((place, _NEVER_COVER))
    picture = Image.alpha_composite(picture.convert("RGBA"), glass).convert("RGB")
    return _with_legend(picture, page.lines, fields, style)


def _marks(fields: Sequence[FieldValue], page: int) -> Iterator[tuple[Quad, FieldValue]]:
    for field in fields:
        if field.status in _COLOURS:
            for evidence in field.evidence:
                if evidence.page == page:
                    yield evidence.quad, field


def _outline(
    pen: ImageDraw.ImageDraw, quad: Quad, colour: tuple[int, int, int, int], width_px: int
) -> None:
    pen.line([*quad.points, quad.points[0]], fill=colour, width=width_px, joint="curve")


def _label_text(field: FieldValue) -> str:
    """Name and confidence of a single value; the cells of a list's item share its number."""
    place = list_place(field.path)
    if place is None:
        return _drawable(f"{show_path(field.path)} {field.confidence:.2f}")
    name, number, _ = place
    return _drawable(f"{show_path(name)} {number + 1}")


def _label(
    pen: ImageDraw.ImageDraw,
    box: Box,
    text: str,
    colour: tuple[int, int, int],
    style: _Style,
    taken: _Taken,
) -> Box:
    """Write `text` beside a box, where it covers least."""
    font = style.font()
    pad = max(2, style.text_px // 6)
    width = pen.textlength(text, font=font) + 2 * pad
    height = style.text_px + 2 * pad
    place = _free_place(box, width, height, pen.im.size, taken)
    pen.rectangle((place.x0, place.y0, place.x1, place.y1), fill=(*colour, 235))
    middle = (place.x0 + pad, (place.y0 + place.y1) / 2)
    pen.text(middle, text, fill=(255, 255, 255, 255), font=font, anchor="lm")
    return place


def _free_place(box: Box, width: float, height: float, size: tuple[int, int], taken: _Taken) -> Box:
    """Above, below, right or left of `box`: the first free place, else the one covering least."""
    corners = (
        (box.x0, box.y0 - height),
        (box.x0, box.y1),
        (box.x1, box.y0),
        (box.x0 - width, box.y0),
        (box.x1 - width, box.y0 - height),
        (box.x1 - width, box.y1),
    )
    places: list[Box] = []
    for x, y in corners:
        left = min(max(0.0, x), max(0.0, size[0] - width))
        top = min(max(0.0, y), max(0.0, size[1] - height))
        places.append(Box(left, top, left + width, top + height))
    return min(
        places,
        key=lambda place: (
            sum(weight * place.intersection_area(other) for other, weight in taken if other != box)
            + _NEVER_COVER * place.intersection_area(box)
        ),
    )


def _with_legend(
    picture: Image.Image, lines: Sequence[Line], fields: Sequence[FieldValue], style: _Style
) -> Image.Image:
    """The picture with a strip below it that says what the colours mean."""
    font = style.font()
    step = round(style.text_px * 1.6)
    rows = list(_legend(lines, fields))
    missing = [_drawable(show_path(f.path)) for f in fields if f.status is FieldStatus.MISSING]
    folded = _fold("missing: " + ", ".join(missing), picture.width - step, font) if missing else []
    height = step * (len(rows) + len(folded)) + step
    canvas = Image.new("RGB", (picture.width, picture.height + height), _PAPER)
    canvas.paste(picture, (0, 0))
    pen = ImageDraw.Draw(canvas)
    y = picture.height + step // 2
    for colour, width_px, text in rows:
        swatch = (step // 2, y + step // 5, step // 2 + step, y + step - step // 5)
        pen.rectangle(swatch, outline=colour, width=style.thin_px * width_px)
        pen.text((2 * step, y + step / 2), text, fill=_INK, font=font, anchor="lm")
        y += step
    for text in folded:
        pen.text((step // 2, y + step / 2), text, fill=_INK, font=font, anchor="lm")
        y += step
    return canvas


def _legend(
    lines: Sequence[Line], fields: Sequence[FieldValue]
) -> Iterator[tuple[tuple[int, int, int], int, str]]:
    yield _LINE_COLOUR, 1, f"line of text ({len(lines)})"
    for status, text in (
        (FieldStatus.OK, "field: ok"),
        (FieldStatus.REVIEW, "field: to be reviewed"),
    ):
        n_fields = sum(field.status is status for field in fields)
        if n_fields:
            yield _COLOURS[status], 3, f"{text} ({n_fields})"


def _drawable(text: str) -> str:
    """The text without what Pillow's own font lacks: accents go, other scripts become `?`."""
    plain = unicodedata.normalize("NFKD", text)
    bare = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return bare.encode("ascii", errors="replace").decode("ascii")


def _fold(
    text: str, width_px: int, font: ImageFont.FreeTypeFont | ImageFont.ImageFont
) -> list[str]:
    rows: list[str] = []
    for word in text.split(" "):
        longer = f"{rows[-1]} {word}" if rows else word
        if rows and font.getlength(longer) > width_px:
            rows.append(word)
        elif rows:
            rows[-1] = longer
        else:
            rows = [word]
    return rows
