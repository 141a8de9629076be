"""The boundary to PDFium: opening, page geometry, rendering, objects and characters.

PDFium must not be entered by two threads at once, whatever document they work on, and its
handles have to be closed in order; so all calls go through `PDFIUM_LOCK` and everything opened
here is closed here.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import math
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import IO, Any, Self

import numpy as np

from edge_runtime.errors import InputTooLarge, PasswordRequired, UnreadableInput
from edge_runtime.ocr.affine import Affine
from edge_runtime.ocr.load_options import STAGE
from edge_runtime.ocr.page_image import Pixels
from edge_runtime.values import Box

# Reentrant: garbage collection may close an abandoned document while its thread is inside.
PDFIUM_LOCK = threading.RLock()

# PDFium's wrapper logs remarks such as "no XFA support"; without this they reach the terminal of
# a program that configured no logging.
logging.getLogger("pypdfium2").addHandler(logging.NullHandler())

_PASSWORD_ERROR = 4  # FPDF_ERR_PASSWORD
_UNSUPPORTED_SECURITY = 5  # FPDF_ERR_SECURITY
_PROBE_SIZE = 1 << 20  # device pixels when asking where page corners land
_MAX_OBJECT_DEPTH = 8
_MAX_OBJECTS = 20_000


@dataclass(frozen=True, slots=True)
class PdfChar:
    """One character of a text layer, in pixels of the rendered page.

    `angle_deg` is the direction of its baseline, clockwise from left-to-right; `origin` the
    point on the baseline where it starts.
    """

    text: str
    box: Box
    origin: tuple[float, float]
    angle_deg: float
    size_px: float
    is_mapped: bool


@dataclass(frozen=True, slots=True)
class PdfPicture:
    """A raster picture on a page: where, in pixels of the rendered page, and its own size."""

    box: Box
    width: int
    height: int


@contextlib.contextmanager
def _pdfium_errors(name: str) -> Generator[None]:
    import pypdfium2

    try:
        yield
    except pypdfium2.PdfiumError as err:
        code = getattr(err, "err_code", None)
        if code == _PASSWORD_ERROR:
            raise PasswordRequired(
                f"{name} is locked: it needs the right password.",
                hint="pass --password, or LoadOptions(password=...)",
                stage=STAGE,
            ) from err
        if code == _UNSUPPORTED_SECURITY:
            raise PasswordRequired(
                f"{name} is locked in a way that PDFium cannot open.",
                hint="save it without protection",
                stage=STAGE,
            ) from err
        raise UnreadableInput(
            f"{name} is a damaged PDF, or one without pages: {err}",
            hint="open it in a viewer and print it to a new PDF, or fetch it again",
            stage=STAGE,
            details={"native_error": str(err)},
        ) from err
    except MemoryError as err:
        raise InputTooLarge(
            f"{name}: there is not enough memory to render it.",
            hint="lower the resolution",
            stage=STAGE,
        ) from err


def _forget_last_error() -> None:
    """Make "damaged" the last error that PDFium remembers.

    A document without pages opens without an error, and the one reported would be that of some
    earlier document: perhaps a wrong password.
    """
    import pypdfium2.raw as pdfium_c

    pdfium_c.FPDF_LoadMemDocument64(b" ", 1, None)


class PdfDocument:
    """An open PDF; a context manager. `file` stays open as long as it."""

    def __init__(self, file: IO[bytes], *, password: str | None, name: str) -> None:
        import pypdfium2

        self.name = name
        self._document: Any = None
        if password is not None and "\0" in password:
            raise PasswordRequired(f"{name}: a password cannot contain a zero byte.", stage=STAGE)
        with PDFIUM_LOCK, _pdfium_errors(name):
            _forget_last_error()
            self._document = pypdfium2.PdfDocument(file, password=password)
            # without a form environment the fields are drawn from their stored appearance
            with contextlib.suppress(pypdfium2.PdfiumError):
                self._document.init_forms()
            self.n_pages = len(self._document)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the document; harmless when done before."""
        document, self._document = self._document, None
        if document is not None:
            with PDFIUM_LOCK:
                document.close()

    @contextlib.contextmanager
    def page(self, index: int) -> Generator[PdfPage]:
        """Open a page, with form fields and annotations made part of its content."""
        import pypdfium2.raw as pdfium_c

        name = f"{self.name}, page {index + 1}"
        with PDFIUM_LOCK, _pdfium_errors(name):
            page = self._document.get_page(index)
            try:
                # what people filled in is annotations; flattening (in memory) makes it text
                if pdfium_c.FPDFPage_GetAnnotCount(page) > 0 and (
                    pdfium_c.FPDFPage_Flatten(page, pdfium_c.FLAT_NORMALDISPLAY)
                    == pdfium_c.FLATTEN_SUCCESS
                ):
                    page.close()
                    page = self._document.get_page(index)
                yield PdfPage(page, name)
            finally:
                page.close()


class PdfPage:
    """An open page. Use it only inside `PdfDocument.page`, which holds the lock."""

    def __init__(self, page: Any, name: str) -> None:
        self._page = page
        self.name = name
        width, height = page.get_size()
        if not (math.isfinite(width) and math.isfinite(height) and width > 0 and height > 0):
            raise UnreadableInput(f"{name} has no size.", hint="print it to a new PDF", stage=STAGE)
        self.width_pt = float(width)
        self.height_pt = float(height)

    def size_at(self, dpi: float) -> tuple[int, int]:
        """Columns and rows of the page rendered at `dpi`."""
        scale = dpi / 72.0
        return max(1, math.ceil(self.width_pt * scale)), max(1, math.ceil(self.height_pt * scale))

    def render(self, dpi: float) -> Pixels:
        """The page upright on white."""
        bitmap = self._page.render(scale=dpi / 72.0, rev_byteorder=True, limit_image_cache=True)
        try:
            return np.array(bitmap.to_numpy()[..., :3], dtype=np.uint8, order="C")
        finally:
            bitmap.close()

    def to_pixels(self, width: int, height: int) -> Affine:
        """From page coordinates to pixels of the page rendered `width` x `height`."""
        import pypdfium2.raw as pdfium_c

        x, y = ctypes.c_int(), ctypes.c_int()
        reach = 1000.0

        def probe(page_x: float, page_y: float) -> tuple[float, float]:
            pdfium_c.FPDF_PageToDevice(
                self._page, 0, 0, _PROBE_SIZE, _PROBE_SIZE, 0, page_x, page_y, x, y
            )
            return x.value * width / _PROBE_SIZE, y.value * height / _PROBE_SIZE

        zero, right, up = probe(0, 0), probe(reach, 0), probe(0, reach)
        return Affine(
            xx=(right[0] - zero[0]) / reach,
            xy=(up[0] - zero[0]) / reach,
            x0=zero[0],
            yx=(right[1] - zero[1]) / reach,
            yy=(up[1] - zero[1]) / reach,
            y0=zero[1],
        )

    def pictures(self, to_pixels: Affine) -> list[PdfPicture]:
        """Raster pictures on the page; those inside form objects fill the form's box."""
        import pypdfium2.raw as pdfium_c

        kinds = [pdfium_c.FPDF_PAGEOBJ_IMAGE, pdfium_c.FPDF_PAGEOBJ_FORM]
        found: list[PdfPicture] = []
        form_box = Box(0, 0, 0, 0)
        objects = self._page.get_objects(filter=kinds, max_depth=_MAX_OBJECT_DEPTH)
        for n_seen, item in enumerate(objects):
            if n_seen >= _MAX_OBJECTS:
                break
            if item.level == 0:
                left, bottom, right, top = item.get_bounds()
                form_box = to_pixels.apply_box(Box(left, bottom, right, top))
            if item.type == pdfium_c.FPDF_PAGEOBJ_IMAGE:
                columns, rows = item.get_px_size()
                found.append(PdfPicture(form_box, int(columns), int(rows)))
        return found

    def characters(self, to_pixels: Affine) -> list[PdfChar]:
        """Characters of the text layer in the order of the file, spaces and breaks included.

        Breaks that PDFium makes up are left out: lines are formed from positions.
        """
        text_page = self._page.get_textpage()
        try:
            return list(_read_characters(text_page, to_pixels))
        finally:
            text_page.close()


def _read_characters(text_page: Any, to_pixels: Affine) -> Iterator[PdfChar]:
    import pypdfium2.raw as pdfium_c

    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    loose = pdfium_c.FS_RECTF()
    x, y = ctypes.c_double(), ctypes.c_double()
    matrix = pdfium_c.FS_MATRIX()
    scale = math.sqrt(abs(to_pixels.xx * to_pixels.yy - to_pixels.xy * to_pixels.yx))
    for i in range(text_page.count_chars()):
        code = int(pdfium_c.FPDFText_GetUnicode(text_page, i))
        is_generated = pdfium_c.FPDFText_IsGenerated(text_page, i) == 1
        if is_generated or code in (0x0A, 0x0D):
            continue
        if not pdfium_c.FPDFText_GetCharBox(text_page, i, left, right, bottom, top):
            continue
        tight = Box(left.value, bottom.value, right.value, top.value)
        box = tight
        if pdfium_c.FPDFText_GetLooseCharBox(text_page, i, loose):
            box = Box(
                min(loose.left, loose.right),
                min(loose.bottom, loose.top),
                max(loose.left, loose.right),
                max(loose.bottom, loose.top),
            )
        if not pdfium_c.FPDFText_GetCharOrigin(text_page, i, x, y):
            x.value, y.value = tight.x0, tight.y0
        # the stated font size is often 1, with the real one in the matrix of the text
        dx, dy, size = 1.0, 0.0, float(pdfium_c.FPDFText_GetFontSize(text_page, i))
        if pdfium_c.FPDFText_GetMatrix(text_page, i, matrix):
            dx, dy = matrix.a, matrix.b
            size *= math.hypot(matrix.c, matrix.d)
        direction = math.degrees(
            math.atan2(to_pixels.yx * dx + to_pixels.yy * dy, to_pixels.xx * dx + to_pixels.xy * dy)
        )
        yield PdfChar(
            text=chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else "\ufffd",
            box=to_pixels.apply_box(box),
            origin=to_pixels.apply_point((x.value, y.value)),
            angle_deg=direction,
            size_px=size * scale,
            is_mapped=pdfium_c.FPDFText_HasUnicodeMapError(text_page, i) != 1,
        )
