"""What a caller may ask of the loader, and the bounds that protect memory and time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from edge_runtime.errors import InputTooLarge, UsageError

TextLayerUse: TypeAlias = Literal["auto", "always", "never"]

STAGE = "ocr.load"
DEFAULT_PDF_DPI = 200.0
MAX_SIDE_PX = 65_000  # Pillow and OpenCV resize no longer sides reliably

_RANGE = re.compile(r"(\d+)?\s*(-)?\s*(\d+)?")


@dataclass(frozen=True, slots=True)
class PageSelection:
    """Which pages of a document to open, by inclusive ranges of page numbers from 1."""

    ranges: tuple[tuple[int, int | None], ...]

    @classmethod
    def parse(cls, text: str) -> PageSelection:
        """Read `1-3,7,10-` (spaces allowed; an open end means up to the last page).

        Raises:
            UsageError: the text says something else, or a range runs backwards.
        """
        ranges: list[tuple[int, int | None]] = []
        for part in text.split(","):
            match = _RANGE.fullmatch(part.strip())
            if match is None or not (match[1] or match[3]):
                raise _bad_pages(text)
            first = int(match[1]) if match[1] else 1
            last = (int(match[3]) if match[3] else None) if match[2] else first
            if first < 1 or (last is not None and last < first):
                raise _bad_pages(text)
            ranges.append((first, last))
        return cls(tuple(ranges))

    def __contains__(self, index: object) -> bool:
        """Whether the page with this index, counted from 0, is wanted."""
        if not isinstance(index, int):
            return False
        number = index + 1
        return any(a <= number and (b is None or number <= b) for a, b in self.ranges)

    def __str__(self) -> str:
        parts: list[str] = []
        for first, last in self.ranges:
            parts.append(str(first) if first == last else f"{first}-{last or ''}")
        return ",".join(parts)


def _bad_pages(text: str) -> UsageError:
    return UsageError(f"{text!r} does not name pages.", hint="write ranges such as 1-3,7,10-")


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How inputs are opened.

    Attributes:
        password: For locked PDFs.
        dpi: Resolution PDFs are rendered at. None: 200, less for very large pages. A number that
            the page size makes too large is an error, not silently lowered.
        text_layer: Whether lines of a PDF's text layer replace recognition: when it is good,
            whenever there is one, or never.
        pages: Pages to open; None for all.
        max_megapixels: Larger pages are reduced to this while they are decoded, with a note.
        max_decode_mb: Largest memory that decoding one page may need; more is `InputTooLarge`.
        max_input_mb: Largest file or stream.
        max_animation_frames: Distinct frames read of an animation (GIF, WebP, APNG, AVIF).
    """

    password: str | None = None
    dpi: float | None = None
    text_layer: TextLayerUse = "auto"
    pages: PageSelection | None = None
    max_megapixels: float = 32.0
    max_decode_mb: float = 800.0
    max_input_mb: float = 512.0
    max_animation_frames: int = 16

    def __post_init__(self) -> None:
        if self.dpi is not None and not 10 <= self.dpi <= 2400:
            raise UsageError(f"{self.dpi} dpi is out of range.", hint="use 10 to 2400")
        if self.text_layer not in ("auto", "always", "never"):
            raise UsageError(
                f"text_layer cannot be {self.text_layer!r}.", hint="auto, always or never"
            )
        bounds = (self.max_megapixels, self.max_decode_mb, self.max_input_mb)
        if min(bounds) <= 0 or self.max_animation_frames < 1:
            raise UsageError("Bounds of the loader have to be above 0.")

    @property
    def max_pixels(self) -> int:
        """`max_megapixels` in pixels."""
        return max(1, int(self.max_megapixels * 1e6))

    def wants(self, index: int) -> bool:
        """Whether page `index` (from 0) is selected."""
        return self.pages is None or index in self.pages

    def bounded_size(self, width: int, height: int) -> tuple[int, int]:
        """The size a page of this size is worked on at: itself, or reduced to the bounds."""
        factor = min(
            1.0,
            math.sqrt(self.max_pixels / (width * height)),
            MAX_SIDE_PX / max(width, height),
        )
        if factor == 1.0:
            return width, height
        return max(1, int(width * factor)), max(1, int(height * factor))

    def check_decode_memory(self, n_bytes: float, what: str) -> None:
        """Refuse before decoding what would not fit.

        Raises:
            InputTooLarge: decoding would take more than `max_decode_mb`.
        """
        needed_mb = n_bytes / 1e6
        if needed_mb > self.max_decode_mb:
            raise InputTooLarge(
                f"{what} would need about {needed_mb:.0f} MB to decode; "
                f"the limit is {self.max_decode_mb:.0f} MB.",
                hint="reduce the picture, or raise max_decode_mb if the memory is there",
                stage=STAGE,
                details={"needed_mb": round(needed_mb), "limit_mb": self.max_decode_mb},
            )


DEFAULT_OPTIONS = LoadOptions()


def no_such_pages(selection: PageSelection | None, n_pages: int) -> UsageError:
    """The error for a selection that matches none of `n_pages` pages."""
    return UsageError(
        f"No page matches {selection}: the document has {n_pages}.",
        hint=f"choose pages between 1 and {n_pages}",
        stage=STAGE,
    )
