"""Made-up pages for the tests of this folder."""

from __future__ import annotations

from collections.abc import Sequence

from edge_runtime.extract.document_facts import DocumentFacts
from edge_runtime.values import Box, Document, Line, Page, PageInfo, Quad

HEIGHT = 20.0
PITCH = 26.0
LETTER = 10.0

Cell = tuple[float, str]


def page(rows: Sequence[Sequence[Cell]], *, gaps: dict[int, float] | None = None) -> Document:
    """A document with cells (x, text) row by row; `gaps` adds blank pixels before a row."""
    lines: list[Line] = []
    y = 0.0
    for number, cells in enumerate(rows):
        y += (gaps or {}).get(number, 0.0)
        for x, text in cells:
            box = Box(x, y, x + LETTER * len(text), y + HEIGHT)
            lines.append(Line(0, len(lines), text, 0.99, Quad.from_box(box), box, row=number))
        y += PITCH
    return Document("made up", (Page(PageInfo(0, 600, int(y)), tuple(lines)),))


def facts(rows: Sequence[Sequence[Cell]], **options: dict[int, float]) -> DocumentFacts:
    return DocumentFacts(page(rows, **options))


BILL: list[list[Cell]] = [
    [(120, "BLUE HERON SUPPLIES LTD")],
    [(150, "(Reg. No. 554120-K)")],
    [(140, "27 Harbour Road,")],
    [(140, "Ashford, Kent TN23 1AB")],
    [(140, "Tel: 01233 555 014")],
    [(20, "Invoice No: BH-20418"), (360, "Date: 14/03/2021")],
    [(20, "Garden hose"), (420, "40.00")],
    [(20, "Brass tap"), (420, "10.00")],
    [(20, "Subtotal"), (420, "50.00")],
    [(20, "VAT 20%"), (420, "10.00")],
    [(20, "TOTAL"), (420, "60.00")],
    [(20, "CASH"), (420, "100.00")],
    [(20, "CHANGE"), (420, "40.00")],
    [(100, "Thank you, please come again")],
]
BILL_GAPS = {5: 20.0, 6: 20.0}
