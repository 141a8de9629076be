"""Write a small PDF whose pages hold real text, with nothing but the standard library.

Text is set in Helvetica, which every viewer has, so no font is embedded. Positions are points
(1/72 inch) from the top left corner of the page.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

A4_PT = (595, 842)


@dataclass(frozen=True)
class PdfText:
    """A run of text; `y` is its baseline."""

    x: float
    y: float
    text: str
    size: float = 11
    bold: bool = False


@dataclass(frozen=True)
class PdfRule:
    """A horizontal line."""

    x0: float
    x1: float
    y: float


def text_pdf(pages: Sequence[Iterable[PdfText | PdfRule]]) -> bytes:
    """The bytes of a PDF 1.4 file; equal input gives equal bytes."""
    n_fixed = 4  # catalogue, page tree and two fonts come first
    page_ids = [n_fixed + 1 + 2 * i for i in range(len(pages))]
    kids = " ".join(f"{number} 0 R" for number in page_ids)
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /{} /Encoding /WinAnsiEncoding >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        font.format("Helvetica").encode(),
        font.format("Helvetica-Bold").encode(),
    ]
    for number, items in zip(page_ids, pages, strict=True):
        content = zlib.compress("\n".join(map(_operator, items)).encode("cp1252"), 9)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {A4_PT[0]} {A4_PT[1]}] "
            f"/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> /Contents {number + 1} 0 R >>"
            "".encode()
        )
        head = f"<< /Length {len(content)} /Filter /FlateDecode >>\nstream\n".encode()
        objects.append(head + content + b"\nendstream")
    return _file(objects)


def _operator(item: PdfText | PdfRule) -> str:
    if isinstance(item, PdfRule):
        y = A4_PT[1] - item.y
        return f"0.6 w {item.x0:g} {y:g} m {item.x1:g} {y:g} l S"
    text = item.text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    font = "F2" if item.bold else "F1"
    return f"BT /{font} {item.size:g} Tf {item.x:g} {A4_PT[1] - item.y:g} Td ({text}) Tj ET"


def _file(objects: Sequence[bytes]) -> bytes:
    data = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets: list[int] = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    start = len(data)
    data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    data += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
    data += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n".encode()
    return bytes(data + f"startxref\n{start}\n%%EOF\n".encode())
