"""Lines from the characters of a PDF's text layer.

A text layer gives characters in the order a program happened to draw them. Lines as a reader
sees them, and as a recogniser would find them, follow from positions: characters on one
baseline with small gaps belong together, a gap of about one character height parts columns.
"""

from __future__ import annotations

import itertools
import math
import statistics
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from edge_runtime.ocr.pdf_document import PdfChar
from edge_runtime.values import Line, LineSource, Point, Quad, Word

_ANGLE_STEP_DEG = 2.0
_COLUMN_GAP = 1.0  # in line heights: wider gaps part a line
_WORD_GAP = 0.17  # in line heights: wider gaps are a space even where none was written
_LETTERSPACED = 1.8  # spaces of letterspaced text are wider than its usual gap by this
_STEP_BACK = 0.3  # in line heights: kerned and accented characters begin before the last one
_BASELINE_STEP = 0.35  # in line heights: raised digits still belong to the line

_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
_REPLACED = {
    0x02: "-",  # PDFium's mark for a hyphen at the end of a line
    0xFFFE: "-",
    0xAD: "-",  # a soft hyphen that is drawn is a hyphen
    0xA0: " ",
    0x2007: " ",
    0x202F: " ",
    0x200B: "",
    0xFEFF: "",
    **_LIGATURES,
}


@dataclass(slots=True)
class _Glyph:
    """A character placed along (`u`) and across (`v`, downwards) its own baseline."""

    text: str
    u0: float
    u1: float
    v0: float
    v1: float
    baseline: float


@dataclass(slots=True)
class _Run:
    """Glyphs of one line, left to right; `spaced` holds the places before which a space stands."""

    glyphs: list[_Glyph]
    spaced: set[int] = field(default_factory=set[int])

    @property
    def u0(self) -> float:
        return self.glyphs[0].u0

    @property
    def u1(self) -> float:
        return max(g.u1 for g in self.glyphs[-3:])

    @property
    def height(self) -> float:
        return max(1e-6, statistics.median(g.v1 - g.v0 for g in self.glyphs[:40]))

    @property
    def baseline(self) -> float:
        return statistics.median(g.baseline for g in self.glyphs[:40])


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of the text layer: words with their quads, in pixels of the rendered page."""

    words: tuple[tuple[str, Quad], ...]
    quad: Quad
    angle_deg: float

    @property
    def text(self) -> str:
        """Words joined by single spaces."""
        return " ".join(text for text, _ in self.words)


def clean(text: str) -> str:
    """A character as people type it: ligatures apart, hyphens plain, no control characters."""
    if len(text) == 1 and ord(text) in _REPLACED:
        return _REPLACED[ord(text)]
    return "" if unicodedata.category(text[0]) in {"Cc", "Cf"} and text != "\t" else text


def form_lines(chars: Iterable[PdfChar]) -> list[TextLine]:
    """Group characters into lines; their order is that of first appearance in the file."""
    by_angle: dict[float, list[PdfChar]] = {}
    for char in chars:
        angle = round(char.angle_deg / _ANGLE_STEP_DEG) * _ANGLE_STEP_DEG
        by_angle.setdefault(-180.0 if angle == 180.0 else angle, []).append(char)
    lines: list[TextLine] = []
    for angle, group in by_angle.items():
        runs = _joined(_runs_in_file_order(group, angle))
        lines += [_to_line(run, angle) for run in runs]
    return lines


def _runs_in_file_order(chars: Iterable[PdfChar], angle: float) -> list[_Run]:
    runs: list[_Run] = []
    after_space = False
    for char in chars:
        text = clean(char.text)
        if not text.strip():
            after_space = after_space or text != ""
            continue
        glyph = _placed(char, text, angle)
        run = runs[-1] if runs else None
        if run is None or not _continues(run, glyph):
            runs.append(_Run([glyph]))
        else:
            if after_space:
                run.spaced.add(len(run.glyphs))
            run.glyphs.append(glyph)
        after_space = False
    return runs


def _placed(char: PdfChar, text: str, angle: float) -> _Glyph:
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    box = char.box
    if abs(cos) > 0.999 or abs(sin) > 0.999:
        corners = Quad.from_box(box).points
        us = [x * cos + y * sin for x, y in corners]
        vs = [y * cos - x * sin for x, y in corners]
        u0, u1, v0, v1 = min(us), max(us), min(vs), max(vs)
    else:
        # the upright box around a slanted character says little: take the font size
        x, y = box.center
        half = char.size_px / 2
        u, v = x * cos + y * sin, y * cos - x * sin
        u0, u1, v0, v1 = u - half / 2, u + half / 2, v - half, v + half
    origin = char.origin[1] * cos - char.origin[0] * sin
    size = char.size_px
    if size > 0 and not 0.3 * size < v1 - v0 < 2.5 * size:
        # some fonts state absurd heights
        v0, v1 = origin - 0.9 * size, origin + 0.25 * size
    return _Glyph(text, u0, u1, v0, v1, origin)


def _continues(run: _Run, glyph: _Glyph) -> bool:
    last = run.glyphs[-1]
    height = max(last.v1 - last.v0, glyph.v1 - glyph.v0, 1e-6)
    gap = glyph.u0 - last.u1
    return (
        abs(glyph.baseline - last.baseline) <= _BASELINE_STEP * height
        and gap <= _COLUMN_GAP * height
        and glyph.u0 >= last.u0 - _STEP_BACK * height
    )


def _joined(runs: list[_Run]) -> list[_Run]:
    """Join runs that stand side by side but were drawn at different times."""
    order = {id(run): i for i, run in enumerate(runs)}
    rows: list[list[_Run]] = []
    for run in sorted(runs, key=lambda r: (r.baseline, r.u0)):
        for row in rows[-6:]:
            step = abs(row[0].baseline - run.baseline)
            if step <= _BASELINE_STEP * min(row[0].height, run.height):
                row.append(run)
                break
        else:
            rows.append([run])
    joined: list[tuple[int, _Run]] = []
    for row in rows:
        row.sort(key=lambda r: r.u0)
        current, place = row[0], order[id(row[0])]
        for run in row[1:]:
            height = max(current.height, run.height)
            gap = run.u0 - current.u1
            if -_BASELINE_STEP * height <= gap <= _COLUMN_GAP * height:
                offset = len(current.glyphs)
                if gap > _WORD_GAP * height:
                    current.spaced.add(offset)
                current.spaced |= {offset + i for i in run.spaced}
                current.glyphs += run.glyphs
                place = min(place, order[id(run)])
            else:
                joined.append((place, current))
                current, place = run, order[id(run)]
        joined.append((place, current))
    return [run for _, run in sorted(joined, key=lambda pair: pair[0])]


def _to_line(run: _Run, angle: float) -> TextLine:
    words: list[tuple[str, Quad]] = []
    for start, end in _word_spans(run):
        glyphs = run.glyphs[start:end]
        words.append(("".join(g.text for g in glyphs), _quad(glyphs, angle)))
    return TextLine(tuple(words), _quad(run.glyphs, angle), angle)


def _word_spans(run: _Run) -> list[tuple[int, int]]:
    glyphs, height = run.glyphs, run.height
    gaps = [b.u0 - a.u1 for a, b in itertools.pairwise(glyphs)]
    usual = statistics.median(gaps) if len(gaps) >= 4 else 0.0
    threshold = max(_WORD_GAP * height, _LETTERSPACED * usual)
    starts = [0] + [i + 1 for i, gap in enumerate(gaps) if gap > threshold or i + 1 in run.spaced]
    return list(zip(starts, [*starts[1:], len(glyphs)], strict=True))


def _quad(glyphs: list[_Glyph], angle: float) -> Quad:
    u0, u1 = min(g.u0 for g in glyphs), max(g.u1 for g in glyphs)
    v0, v1 = min(g.v0 for g in glyphs), max(g.v1 for g in glyphs)
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))

    def back(u: float, v: float) -> Point:
        return (u * cos - v * sin, u * sin + v * cos)

    return Quad((back(u0, v0), back(u1, v0), back(u1, v1), back(u0, v1)))


def to_values(lines: Iterable[TextLine], *, page: int) -> tuple[Line, ...]:
    """Lines as values, numbered in the given order; `reading` still equals the box of the quad."""
    return tuple(
        Line(
            page=page,
            index=index,
            text=line.text,
            confidence=1.0,
            quad=line.quad,
            reading=line.quad.box,
            words=tuple(Word(text, quad, 1.0) for text, quad in line.words),
            source=LineSource.TEXT_LAYER,
        )
        for index, line in enumerate(lines)
    )


def quarter_turn(lines: Iterable[TextLine]) -> int:
    """How far most of the text is turned clockwise: 0, 90, 180 or 270 degrees."""
    weight = {0: 0, 90: 0, 180: 0, 270: 0}
    for line in lines:
        nearest = round(line.angle_deg / 90) * 90 % 360
        weight[nearest] += len(line.text)
    best = max(weight, key=lambda angle: weight[angle])
    # a title along the margin does not turn the page
    return best if weight[best] > 2 * weight[0] else 0
