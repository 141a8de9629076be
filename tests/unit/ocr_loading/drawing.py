"""Small pictures and PDFs that the loader's tests draw for themselves."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 90, 60


def page(width: int = WIDTH, height: int = HEIGHT) -> Image.Image:
    """Black letters and a red bar on white; every corner is different."""
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((4, 4, width // 2, 12), fill=(200, 0, 0))
    draw.rectangle((width - 14, 4, width - 5, 9), fill="black")
    draw.text((8, height // 3), "Total 12.50", fill="black", font=ImageFont.load_default(14))
    return image


def marked(width: int, height: int, x: int, y: int) -> np.ndarray:
    """A black page with one white pixel."""
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    pixels[y, x] = 255
    return pixels


def centre_of_mark(pixels: np.ndarray) -> np.ndarray:
    """Where the brightness of a dark page is centred, in continuous coordinates."""
    weight = pixels[..., 1].astype(np.float64)
    weight[weight < 0.2 * weight.max()] = 0
    ys, xs = np.mgrid[: weight.shape[0], : weight.shape[1]]
    total = weight.sum()
    return np.array([((xs + 0.5) * weight).sum() / total, ((ys + 0.5) * weight).sum() / total])


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    """The bytes of a file of the given Pillow format."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def text_page(width: int = 700, height: int = 900) -> Image.Image:
    """A page of readable lines, for the orientation model."""
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    lines = ["INVOICE No 4711", "Green Valley Hardware Store", "12 Long Street, Springfield"]
    lines += [f"{n} x Copper pipe fitting, brushed     {3.75 * n:.2f}" for n in range(1, 15)]
    lines += ["Total amount due                393.75", "Thank you for your purchase"]
    for n, line in enumerate(lines):
        draw.text((40, 40 + 42 * n), line, fill="black", font=ImageFont.load_default(26))
    return image


@dataclass
class PdfPageSpec:
    """One page to be written: a content stream, pictures by name, and raw extra entries."""

    content: str
    images: dict[str, Image.Image] = field(default_factory=dict)
    extra: str = ""
    size: tuple[float, float] = (300.0, 200.0)


def text_at(x: float, y: float, text: str, *, size: float = 12, render_mode: int = 0) -> str:
    """Content that shows one line of Helvetica with its baseline at (x, y)."""
    return f"BT /F1 {size} Tf {render_mode} Tr 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n"


def rotated_text_at(x: float, y: float, text: str, *, size: float = 12) -> str:
    """The same, running upwards."""
    return f"BT /F1 {size} Tf 0 1 -1 0 {x} {y} Tm ({text}) Tj ET\n"


def picture_at(name: str, x: float, y: float, width: float, height: float) -> str:
    """Content that draws a picture into a rectangle."""
    return f"q {width} 0 0 {height} {x} {y} cm /{name} Do Q\n"


class PdfWriter:
    """Writes plain PDFs object by object; optionally locked with 40-bit RC4."""

    def __init__(self, *, password: str | None = None) -> None:
        self._objects: list[bytes] = []
        self._key: bytes | None = None
        self._password = password
        self._file_id = b"0123456789abcdef"

    def write(self, pages: list[PdfPageSpec], *, extra_objects: list[str] | None = None) -> bytes:
        """Assemble the file. Extra objects get numbers from 4 on; pages come after them."""
        self._objects = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
        encrypt = self._lock() if self._password is not None else None
        self._objects += [text.encode("latin-1") for text in extra_objects or []]
        kids = [self._page(spec) for spec in pages]
        self._objects[0] = b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [4 0 R] >> >>"
        if not extra_objects:
            self._objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
        listed = " ".join(f"{kid} 0 R" for kid in kids)
        self._objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{listed}] >>".encode()
        return self._assemble(encrypt)

    def _page(self, spec: PdfPageSpec) -> int:
        names: list[str] = []
        for name, image in spec.images.items():
            data = encoded(image.convert("RGB"), "JPEG", quality=92)
            head = (
                f"<< /Type /XObject /Subtype /Image /Width {image.width} /Height {image.height} "
                f"/ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /DCTDecode "
            )
            names.append(f"/{name} {self._stream(head, data)} 0 R")
        content = self._stream("<< ", spec.content.encode("latin-1"))
        width, height = spec.size
        self._objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] "
            f"/Contents {content} 0 R /Resources << /Font << /F1 3 0 R >> "
            f"/XObject << {' '.join(names)} >> >> {spec.extra} >>".encode()
        )
        return len(self._objects)

    def _stream(self, head: str, data: bytes) -> int:
        number = len(self._objects) + 1
        if self._key is not None:
            salted = self._key + number.to_bytes(3, "little") + b"\0\0"
            data = _rc4(hashlib.md5(salted, usedforsecurity=False).digest()[:10], data)
        self._objects.append(
            f"{head}/Length {len(data)} >>\nstream\n".encode() + data + b"\nendstream"
        )
        return number

    def _lock(self) -> str:
        padding = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
        padded = (str(self._password).encode() + padding)[:32]
        owner = _rc4(hashlib.md5(padded, usedforsecurity=False).digest()[:5], padded)
        rights = (-4).to_bytes(4, "little", signed=True)
        seed = padded + owner + rights + self._file_id
        self._key = hashlib.md5(seed, usedforsecurity=False).digest()[:5]
        user = _rc4(self._key, padding)
        return (
            f"/Encrypt << /Filter /Standard /V 1 /R 2 /O <{owner.hex()}> /U <{user.hex()}> "
            f"/P -4 >> /ID [<{self._file_id.hex()}> <{self._file_id.hex()}>]"
        )

    def _assemble(self, encrypt: str | None) -> bytes:
        out = bytearray(b"%PDF-1.4\n")
        offsets: list[int] = []
        for number, body in enumerate(self._objects, start=1):
            offsets.append(len(out))
            out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
        start = len(out)
        out += f"xref\n0 {len(offsets) + 1}\n0000000000 65535 f \n".encode()
        for offset in offsets:
            out += f"{offset:010d} 00000 n \n".encode()
        out += f"trailer << /Size {len(offsets) + 1} /Root 1 0 R {encrypt or ''} >>\n".encode()
        return bytes(out + f"startxref\n{start}\n%%EOF\n".encode())


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
