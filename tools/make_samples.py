"""Draw the documents of samples/, with the truth about each in samples/expected.json.

    python tools/make_samples.py [--out samples]

Everything on them is invented. Text is drawn with the font inside Pillow, so the result does not
depend on the fonts of the machine; noise is seeded.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.text_pdf import PdfRule, PdfText, text_pdf

INK = 25


@dataclass
class Sheet:
    """White paper that remembers what was written on it, in reading order."""

    width: int
    height: int
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.image = Image.new("L", (self.width, self.height), 255)
        self.pen = ImageDraw.Draw(self.image)

    def write(
        self, x: float, y: float, text: str, *, size: int = 22, bold: bool = False, at: str = "l"
    ) -> None:
        """Write `text` with its baseline at `y`; `at` is l, m or r: what `x` means."""
        font = ImageFont.load_default(size=size)
        # the font has one weight; an outline would close up small letters
        for shift in (0, 1) if bold else (0,):
            self.pen.text((x + shift, y), text, fill=INK, font=font, anchor=f"{at}s")
        self.lines.append(text)

    def rule(self, y: float, x0: float, x1: float, width: int = 2) -> None:
        self.pen.line([(x0, y), (x1, y)], fill=INK, width=width)

    def box(self, x0: float, y0: float, x1: float, y1: float) -> None:
        self.pen.rectangle((x0, y0, x1, y1), outline=INK, width=2)

    def tick(self, x0: float, y0: float, side: float) -> None:
        self.pen.line(
            [(x0 + 4, y0 + side / 2), (x0 + side / 2, y0 + side - 5), (x0 + side - 3, y0 + 4)],
            fill=INK,
            width=4,
        )


@dataclass(frozen=True)
class Sample:
    """A finished file and what is true about it."""

    name: str
    data: bytes
    schema: str
    values: dict[str, Any]
    lines: list[str]
    note: str


def png(sheet: Sheet) -> bytes:
    target = io.BytesIO()
    # 16 levels of grey keep antialiased text and make the file small
    sheet.image.quantize(16).save(target, "PNG", optimize=True)
    return target.getvalue()


def draw_receipt(
    *,
    company: str,
    address: tuple[str, str],
    phone: str,
    number: str,
    when: str,
    items: list[tuple[str, str]],
    sums: list[tuple[str, str]],
    thanks: str,
) -> Sheet:
    """A till receipt: a header in the middle, rows with amounts on the right."""
    sheet = Sheet(620, 430 + 36 * (len(items) + len(sums)))
    middle, right = 310, 570
    sheet.write(middle, 70, company, size=34, bold=True, at="m")
    for row, text in enumerate((*address, phone)):
        sheet.write(middle, 112 + 32 * row, text, at="m")
    sheet.rule(200, 50, right)
    sheet.write(50, 236, number)
    sheet.write(right, 236, when, at="r")
    sheet.rule(254, 50, right)
    y = 292
    for name, amount in items:
        sheet.write(50, y, name)
        sheet.write(right, y, amount, at="r")
        y += 36
    sheet.rule(y - 20, 50, right)
    for name, amount in sums:
        bold = name == "TOTAL"
        size = 28 if bold else 22
        y += 8 if bold else 0
        sheet.write(50, y + 12, name, size=size, bold=bold)
        sheet.write(right, y + 12, amount, size=size, bold=bold, at="r")
        y += 36
    sheet.write(middle, y + 48, thanks, at="m")
    return sheet


def receipt() -> Sample:
    sheet = draw_receipt(
        company="HARBOUR LANE GROCERS",
        address=("14 Quay Street", "Port Ellery PE4 2TK"),
        phone="Tel 01632 960 114",
        number="Receipt 004817",
        when="12/03/2026 17:42",
        items=[
            ("Oat bread 800 g", "2.95"),
            ("Tomatoes, loose", "1.84"),
            ("Goat cheese", "4.60"),
            ("Apple juice 1 l", "2.10"),
            ("Dish soap", "1.79"),
        ],
        sums=[
            ("Subtotal", "13.28"),
            ("VAT 5%", "0.66"),
            ("TOTAL", "13.94"),
            ("Cash", "20.00"),
            ("Change", "6.06"),
        ],
        thanks="Thank you for your visit",
    )
    values = {
        "company": "HARBOUR LANE GROCERS",
        "date": "2026-03-12",
        "address": "14 Quay Street, Port Ellery PE4 2TK",
        "total": 13.94,
    }
    return Sample(
        "receipt.png", png(sheet), "receipt", values, sheet.lines, "a till receipt, dd/mm/yyyy"
    )


def photo() -> Sample:
    sheet = draw_receipt(
        company="CAFE MERIDIAN",
        address=("7 Orchard Parade", "Westmoor WM1 9QD"),
        phone="Tel 01632 960 755",
        number="Bill 20931",
        when="28 Feb 2026 09:15",
        items=[
            ("2 x Flat white", "7.20"),
            ("1 x Cinnamon roll", "3.40"),
            ("1 x Porridge, berries", "5.90"),
        ],
        sums=[("Subtotal", "16.50"), ("Service 10%", "1.65"), ("TOTAL", "18.15")],
        thanks="Have a good day",
    )
    values = {
        "company": "CAFE MERIDIAN",
        "date": "2026-02-28",
        "address": "7 Orchard Parade, Westmoor WM1 9QD",
        "total": 18.15,
    }
    return Sample(
        "photo.jpg",
        jpeg_photo(sheet.image),
        "receipt",
        values,
        sheet.lines,
        "the same kind of receipt as a phone takes it: on a table, turned by 90 degrees clockwise, "
        "in perspective, shaded, with noise; no EXIF",
    )


def jpeg_photo(paper: Image.Image) -> bytes:
    """The paper on a table, seen from the side, in uneven light, turned clockwise by 90 degrees."""
    rng = np.random.default_rng(20260312)
    width, height = 900, 1160
    corners = [(118, 96), (772, 62), (818, 1076), (84, 1102)]
    coefficients = perspective(corners, paper.size)
    size = (width, height)
    warped = paper.transform(
        size, Image.Transform.PERSPECTIVE, coefficients, Image.Resampling.BICUBIC, fillcolor=0
    )
    mask = Image.new("L", paper.size, 255).transform(
        size, Image.Transform.PERSPECTIVE, coefficients, Image.Resampling.BICUBIC, fillcolor=0
    )
    rows, columns = np.mgrid[0:height, 0:width]
    grain = 9 * np.sin(columns / 37 + 2.2 * np.sin(rows / 160)) + rng.normal(0, 5, (height, width))
    table = np.stack([118 + grain, 86 + 0.8 * grain, 62 + 0.6 * grain], axis=-1)
    page = np.asarray(warped, dtype=float)[..., None] * np.array([1.0, 0.985, 0.955])
    alpha = np.asarray(mask, dtype=float)[..., None] / 255
    picture = page * alpha + table * (1 - alpha)
    # light from the upper left, and the soft shadow of a hand at the lower right
    light = 1.02 - 0.28 * (columns / width) - 0.12 * (rows / height)
    distance = np.hypot((columns - 800) / 420, (rows - 980) / 330)
    light -= 0.22 * np.exp(-(distance**2))
    picture = picture * light[..., None] + rng.normal(0, 3.5, (height, width, 1))
    image = Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))
    target = io.BytesIO()
    image.transpose(Image.Transpose.ROTATE_270).save(target, "JPEG", quality=72)
    return target.getvalue()


def perspective(corners: list[tuple[int, int]], size: tuple[int, int]) -> list[float]:
    """Pillow's eight coefficients that put an image of `size` into four corners, clockwise."""
    width, height = size
    sources = [(0, 0), (width, 0), (width, height), (0, height)]
    matrix: list[list[float]] = []
    wanted: list[float] = []
    for (x, y), (u, v) in zip(corners, sources, strict=True):
        matrix.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        matrix.append([0, 0, 0, x, y, 1, -v * x, -v * y])
        wanted += [u, v]
    return [float(value) for value in np.linalg.solve(np.array(matrix), np.array(wanted))]


INVOICE_ITEMS = [
    ("Oak shelf board 120 cm", 4, 38.50),
    ("Wall bracket, black", 8, 6.25),
    ("Wood screws 5 x 60, box", 2, 7.90),
    ("Delivery", 1, 24.00),
]


def invoice() -> Sample:
    sheet = Sheet(1000, 1220)
    sheet.write(70, 100, "Brightwood Joinery Ltd", size=36, bold=True)
    for row, text in enumerate(("Unit 3, Mill Lane", "Ashcombe AC7 4RE", "VAT no. GB 000 4321 00")):
        sheet.write(70, 138 + 30 * row, text)
    sheet.write(930, 100, "INVOICE", size=40, bold=True, at="r")
    facts = [
        ("Invoice no.", "BJ-2026-0147"),
        ("Invoice date", "5 May 2026"),
        ("Due date", "4 June 2026"),
    ]
    for row, (name, value) in enumerate(facts):
        sheet.write(620, 280 + 34 * row, name)
        sheet.write(930, 280 + 34 * row, value, at="r")
    sheet.write(70, 280, "Bill to", bold=True)
    for row, text in enumerate(("Larkfield Reading Rooms", "22 Chapel Road", "Dunmere DM2 8HB")):
        sheet.write(70, 314 + 30 * row, text)
    columns = [(70, "l"), (600, "r"), (760, "r"), (930, "r")]
    y = 480
    for (x, at), text in zip(columns, ("Description", "Qty", "Unit price", "Amount"), strict=True):
        sheet.write(x, y, text, bold=True, at=at)
    sheet.rule(y + 14, 70, 930)
    for name, quantity, price in INVOICE_ITEMS:
        y += 46
        cells = (name, str(quantity), f"{price:.2f}", f"{quantity * price:.2f}")
        for (x, at), text in zip(columns, cells, strict=True):
            sheet.write(x, y, text, at=at)
    sheet.rule(y + 18, 70, 930)
    net = sum(quantity * price for _, quantity, price in INVOICE_ITEMS)
    tax = round(net * 0.2, 2)
    sums = [("Subtotal", net), ("VAT 20%", tax), ("Total due (EUR)", net + tax)]
    for name, amount in sums:
        y += 46
        bold = name.startswith("Total")
        sheet.write(620, y, name, bold=bold)
        sheet.write(930, y, f"{amount:,.2f}", bold=bold, at="r")
    for row, text in enumerate(
        (
            "Payment within 30 days to account 00 1234 5678.",
            "Goods remain our property until paid in full.",
        )
    ):
        sheet.write(70, 1100 + 32 * row, text, size=20)
    values = {
        "invoice_number": "BJ-2026-0147",
        "date": "2026-05-05",
        "due_date": "2026-06-04",
        "seller": "Brightwood Joinery Ltd",
        "customer": "Larkfield Reading Rooms",
        "net_total": net,
        "tax_total": tax,
        "total": net + tax,
        "items": [
            {
                "description": name,
                "quantity": quantity,
                "unit_price": price,
                "amount": quantity * price,
            }
            for name, quantity, price in INVOICE_ITEMS
        ],
    }
    return Sample(
        "invoice.png", png(sheet), "invoice", values, sheet.lines, "an invoice with line items"
    )


def form() -> Sample:
    sheet = Sheet(900, 900)
    sheet.write(450, 84, "Library Membership Form", size=36, bold=True, at="m")
    rows = [
        ("Surname", "Okonjo-Hale"),
        ("First name", "Miriam"),
        ("Date of birth", "1987-11-23"),
        ("Address", "5 Fennel Close, Dunmere DM4 1AA"),
        ("Phone", "01632 960 388"),
        ("E-mail", "m.okonjo@example.org"),
        ("Card number", "7740 2219"),
    ]
    y = 170
    for name, value in rows:
        sheet.write(70, y, f"{name}:", bold=True)
        sheet.write(320, y, value, size=24)
        sheet.rule(y + 10, 310, 830, width=1)
        y += 70
    sheet.write(70, y, "Newsletter:", bold=True)
    for x, text, ticked in ((320, "yes", True), (470, "no", False)):
        sheet.box(x, y - 22, x + 26, y + 4)
        if ticked:
            sheet.tick(x, y - 22, 26)
        sheet.write(x + 40, y, text)
    sheet.write(70, y + 90, "Date:", bold=True)
    sheet.write(320, y + 90, "2026-01-09", size=24)
    sheet.rule(y + 100, 310, 830, width=1)
    values = {**dict(rows), "Date": "2026-01-09"}
    return Sample(
        "form.png", png(sheet), "form", values, sheet.lines, "a filled form: label, then value"
    )


def two_page_pdf() -> Sample:
    left, right = 60, 440
    first: list[PdfText | PdfRule] = [
        PdfText(left, 80, "Norvik Instruments GmbH", 18, bold=True),
        PdfText(left, 100, "Hafenstraße 9, 20099 Hamburg"),
        PdfText(left, 160, "Invoice", 16, bold=True),
        PdfText(left, 186, "Invoice number: NI-88213"),
        PdfText(left, 204, "Invoice date: 14.10.2025"),
        PdfText(left, 222, "Due date: 13.11.2025"),
        PdfText(left, 262, "Customer: Seaview Observatory Trust"),
    ]
    y = 310.0
    first += [
        PdfText(left, y, "Description", bold=True),
        PdfText(330, y, "Qty", bold=True),
        PdfText(380, y, "Unit price", bold=True),
        PdfText(480, y, "Amount", bold=True),
        PdfRule(left, 540, y + 8),
    ]
    items = [("Barometer B-20", 3, 149.0), ("Mounting kit", 3, 18.5), ("Calibration", 1, 240.0)]
    for name, quantity, price in items:
        y += 28
        first += [
            PdfText(left, y, name),
            PdfText(330, y, str(quantity)),
            PdfText(380, y, f"{price:.2f}"),
            PdfText(480, y, f"{quantity * price:.2f}"),
        ]
    first.append(PdfText(left, 780, "Page 1 of 2", 9))
    net = sum(quantity * price for _, quantity, price in items)
    tax = round(0.19 * net, 2)
    second: list[PdfText | PdfRule] = [
        PdfText(left, 80, "Invoice NI-88213, continued", 14, bold=True),
        PdfText(left, 130, "Subtotal"),
        PdfText(right, 130, f"{net:.2f}"),
        PdfText(left, 152, "VAT 19 %"),
        PdfText(right, 152, f"{tax:.2f}"),
        PdfRule(left, 540, 164),
        PdfText(left, 184, "Total EUR", bold=True),
        PdfText(right, 184, f"{net + tax:.2f}", bold=True),
        PdfText(left, 240, "Please quote the invoice number with your payment."),
        PdfText(left, 780, "Page 2 of 2", 9),
    ]
    values = {
        "invoice_number": "NI-88213",
        "date": "2025-10-14",
        "due_date": "2025-11-13",
        "seller": "Norvik Instruments GmbH",
        "customer": "Seaview Observatory Trust",
        "net_total": net,
        "tax_total": tax,
        "total": round(net + tax, 2),
        "items": [
            {
                "description": name,
                "quantity": quantity,
                "unit_price": price,
                "amount": quantity * price,
            }
            for name, quantity, price in items
        ],
    }
    lines = [item.text for item in (*first, *second) if isinstance(item, PdfText)]
    return Sample(
        "two_pages.pdf",
        text_pdf([first, second]),
        "invoice",
        values,
        lines,
        "two pages with a text layer; the sums stand on the second",
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "samples")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    expected: dict[str, Any] = {}
    for draw in (receipt, invoice, form, photo, two_page_pdf):
        sample = draw()
        (args.out / sample.name).write_bytes(sample.data)
        expected[sample.name] = {
            "about": sample.note,
            "schema": sample.schema,
            "values": sample.values,
            "lines": sample.lines,
        }
        print(f"{sample.name}: {len(sample.data) / 1000:.0f} kB")
    text = json.dumps(expected, indent=2, ensure_ascii=False)
    (args.out / "expected.json").write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
