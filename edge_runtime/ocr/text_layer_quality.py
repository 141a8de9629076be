"""Whether a PDF's text layer says what a reader sees on the page.

Three things go wrong with text layers: the characters are not what is drawn (fonts without a
Unicode map), the layer covers only part of the page (a scan with a stamped header), or it holds
text that nobody can see. The first is told from the characters, the others from the rendered
page: its ink has to lie where the layer has text, and text has to lie where there is ink.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_runtime.ocr.page_image import Pixels
from edge_runtime.ocr.pdf_document import PdfChar, PdfPicture
from edge_runtime.ocr.text_layer import TextLine
from edge_runtime.values import Box

MIN_CHARS = 16  # fewer on a page with any pictures or drawings is a stamp, not the text
MAX_BAD_SHARE = 0.05
MIN_WORD_SHARE = 0.5  # share of letters and digits; ruled forms with dots stay above
MAX_PICTURE_SHARE = 0.3  # above, the pictures may hold the text of the page
MIN_PICTURE_INK_EXPLAINED = 0.5
MIN_INK_EXPLAINED = 0.15  # below, text is drawn as outlines that the layer does not know

_BLOCK_DPI = 50.0
_MIN_BLOCK_PX = 4  # a block of one pixel has no contrast
_INK_CONTRAST = 32  # brightest minus darkest pixel of a block; pale gray text has 55

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TextLayerQuality:
    """Measures of a text layer; `problem` is None when it is good.

    `ink_explained` and `picture_ink_explained` are shares of blocks with contrast, on the page
    and within pictures, that lie under text of the layer.
    """

    n_chars: int
    bad_share: float
    word_share: float
    picture_share: float
    ink_explained: float
    picture_ink_explained: float

    @property
    def problem(self) -> str | None:
        """Why the layer cannot stand for the page."""
        if self.n_chars == 0:
            return "there is none"
        if self.n_chars < MIN_CHARS:
            return f"it has only {self.n_chars} characters"
        if self.bad_share > MAX_BAD_SHARE:
            return f"{self.bad_share:.0%} of its characters are unreadable"
        if self.word_share < MIN_WORD_SHARE:
            return f"only {self.word_share:.0%} of its characters are letters or digits"
        if (
            self.picture_share > MAX_PICTURE_SHARE
            and self.picture_ink_explained < MIN_PICTURE_INK_EXPLAINED
        ):
            return (
                f"pictures cover {self.picture_share:.0%} of the page and it explains only "
                f"{self.picture_ink_explained:.0%} of what they show"
            )
        if self.ink_explained < MIN_INK_EXPLAINED:
            return f"it explains only {self.ink_explained:.0%} of what is drawn"
        return None


class InkMap:
    """Where a page shows something: blocks of about 1/50 inch that hold contrast."""

    def __init__(self, pixels: Pixels, dpi: float) -> None:
        self._block = max(_MIN_BLOCK_PX, round(dpi / _BLOCK_DPI))
        self.mask = _contrast_blocks(pixels, self._block)

    def under(self, boxes: Sequence[Box], *, margin_blocks: int = 0) -> Mask:
        """Blocks that boxes (in pixels) touch, widened by a margin."""
        covered = np.zeros_like(self.mask)
        for box in boxes:
            rows, columns = self._blocks(box, margin_blocks)
            covered[rows, columns] = True
        return covered

    def shows(self, box: Box) -> bool:
        """Whether anything at all is visible within a box."""
        rows, columns = self._blocks(box, 0)
        return bool(self.mask[rows, columns].any())

    def _blocks(self, box: Box, margin: int) -> tuple[slice, slice]:
        n_rows, n_columns = self.mask.shape
        top = max(0, int(box.y0 // self._block) - margin)
        left = max(0, int(box.x0 // self._block) - margin)
        bottom = min(n_rows, max(0, int(box.y1 // self._block) + 1 + margin))
        right = min(n_columns, max(0, int(box.x1 // self._block) + 1 + margin))
        return slice(top, bottom), slice(left, right)


def _contrast_blocks(pixels: Pixels, block: int) -> Mask:
    from PIL import Image

    gray = np.asarray(Image.fromarray(pixels).convert("L"))
    height, width = gray.shape
    n_rows, n_columns = -(-height // block), -(-width // block)
    high = np.zeros((n_rows, width), dtype=np.uint8)
    low = np.full((n_rows, width), 255, dtype=np.uint8)
    for offset in range(min(block, height)):
        part = gray[offset::block]
        n = part.shape[0]
        np.maximum(high[:n], part, out=high[:n])
        np.minimum(low[:n], part, out=low[:n])
    top = np.zeros((n_rows, n_columns), dtype=np.uint8)
    bottom = np.full((n_rows, n_columns), 255, dtype=np.uint8)
    for offset in range(min(block, width)):
        part_high, part_low = high[:, offset::block], low[:, offset::block]
        n = part_high.shape[1]
        np.maximum(top[:, :n], part_high, out=top[:, :n])
        np.minimum(bottom[:, :n], part_low, out=bottom[:, :n])
    return top.astype(np.int16) - bottom > _INK_CONTRAST


def visible_lines(lines: Sequence[TextLine], ink: InkMap) -> list[TextLine]:
    """Lines that a reader can see: on the page, and with something drawn under them."""
    return [line for line in lines if ink.shows(line.quad.box)]


def measure(
    chars: Sequence[PdfChar],
    lines: Sequence[TextLine],
    pictures: Sequence[PdfPicture],
    ink: InkMap,
) -> TextLayerQuality:
    """Measure a layer against the page it belongs to; `lines` are the visible ones."""
    printed = [char for char in chars if char.text.strip()]
    text = "".join(line.text for line in lines).replace(" ", "")
    n_bad = sum(not char.is_mapped or _is_bad(char.text) for char in printed)
    n_words = sum(char.isalnum() for char in text)
    in_text = ink.under([line.quad.box for line in lines], margin_blocks=1)
    in_pictures = ink.under([picture.box for picture in pictures])
    return TextLayerQuality(
        n_chars=len(text),
        bad_share=n_bad / max(1, len(printed)),
        word_share=n_words / max(1, len(text)),
        picture_share=float(in_pictures.mean()) if in_pictures.size else 0.0,
        ink_explained=_share(in_text, ink.mask),
        picture_ink_explained=_share(in_text, ink.mask & in_pictures),
    )


def _share(covered: Mask, of: Mask) -> float:
    n = int(of.sum())
    return int((covered & of).sum()) / n if n else 1.0


def _is_bad(text: str) -> bool:
    """Whether a character stands for nothing: replacement, control, private use, unassigned."""
    if text in {"\x02", "\ufffe", "\xad"}:
        return False
    return text == "\ufffd" or unicodedata.category(text[0]) in {"Cc", "Co", "Cn", "Cs"}
