"""Words of a line and their place, from the place of every character along the line."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_runtime.ocr.ctc import Glyph


@dataclass(frozen=True, slots=True)
class WordSpan:
    """A word and its extent along the line, 0 to 1."""

    text: str
    start: float
    end: float
    confidence: float


def line_text(glyphs: Sequence[Glyph]) -> str:
    """Text of a line: words joined with single spaces, none at the ends."""
    return " ".join("".join(g.text for g in glyphs).split())


def mean_confidence(glyphs: Sequence[Glyph]) -> float:
    """Mean over the characters, 0 for none."""
    return float(np.mean([g.confidence for g in glyphs])) if glyphs else 0.0


def split_words(glyphs: Sequence[Glyph]) -> list[WordSpan]:
    """Cut a line at its spaces.

    A recogniser fires somewhere inside a character, not at its edges: a word is widened by half
    the usual distance between characters, but not beyond the middle of the gap to its neighbour.
    Spans are in order, do not overlap and stay within 0 to 1.
    """
    words = _words(glyphs)
    if not words:
        return []
    half = _usual_step(words) / 2
    cores = [(_middle(word[0]), _middle(word[-1])) for word in words]
    spans: list[WordSpan] = []
    for index, word in enumerate(words):
        first, last = cores[index]
        low = (cores[index - 1][1] + first) / 2 if index else 0.0
        high = (last + cores[index + 1][0]) / 2 if index + 1 < len(words) else 1.0
        start = min(max(first - half, low, 0.0), 1.0)
        end = max(min(last + half, high, 1.0), start)
        spans.append(WordSpan("".join(g.text for g in word), start, end, mean_confidence(word)))
    return spans


def along_quad(quad: npt.NDArray[np.float64], start: float, end: float) -> npt.NDArray[np.float64]:
    """The part of a line's quad (4, 2) between two positions 0 to 1, as a quad."""
    top, bottom = quad[1] - quad[0], quad[2] - quad[3]
    return np.stack(
        [
            quad[0] + top * start,
            quad[0] + top * end,
            quad[3] + bottom * end,
            quad[3] + bottom * start,
        ]
    )


def spread_glyphs(text: str, confidence: float) -> list[Glyph]:
    """Characters at equal distances, for an engine that does not tell where they are."""
    n = max(1, len(text))
    return [Glyph(char, i / n, (i + 1) / n, confidence) for i, char in enumerate(text)]


def _words(glyphs: Sequence[Glyph]) -> list[list[Glyph]]:
    words: list[list[Glyph]] = [[]]
    for glyph in glyphs:
        if glyph.text.isspace():
            words.append([])
        elif glyph.text:
            words[-1].append(glyph)
    return [word for word in words if word]


def _middle(glyph: Glyph) -> float:
    return (glyph.start + glyph.end) / 2


def _usual_step(words: Sequence[Sequence[Glyph]]) -> float:
    steps = [_middle(b) - _middle(a) for word in words for a, b in itertools.pairwise(word)]
    if steps:
        return float(np.median(steps))
    return 1.0 / max(1, len(words) * 2)
