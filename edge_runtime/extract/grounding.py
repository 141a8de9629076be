"""Where in the document a value stands, and how surely.

`LineIndex` is built once per document; every look-up costs one pass of C string search over the
text (exact, then without case, accents and punctuation), then a scored pass over the lines. Reading
order makes lines that belong together consecutive, so a value of several lines is one stretch.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from edge_runtime.extract.amounts import AmountMatch, find_amounts
from edge_runtime.extract.confusions import fold_alnum
from edge_runtime.extract.dates import DateMatch, find_dates
from edge_runtime.extract.evidence import evidence_for_span
from edge_runtime.extract.normalising import Conventions
from edge_runtime.extract.schema import FieldKind
from edge_runtime.values import Evidence, Line

_MIN_FUZZY_LETTERS = 5
_FUZZY_SCORE = 85.0
_PART_SCORE = 80.0
_MAX_JOINED_LINES = 8
_MAX_ANCHORS = 4
_MIN_GLUED_LETTERS = 6
_MIN_ACROSS_LINES = 6
_MAX_OCCURRENCES = 64
_DIGIT_SHARE = 0.5


class MatchKind(StrEnum):
    """How a value was found: verbatim, up to spelling, by meaning, in pieces, nearly, or not."""

    EXACT = "exact"
    NORMALISED = "normalised"
    VALUE = "value"
    PARTS = "parts"
    FUZZY = "fuzzy"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class LineSpan:
    """A stretch of one line's text; `position` counts lines through the whole document."""

    position: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Grounding:
    """The best place for a value. `score` is 0..1, `n_places` how many equally good ones exist."""

    kind: MatchKind
    score: float
    spans: tuple[LineSpan, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    n_places: int = 0


NOT_FOUND = Grounding(MatchKind.NONE, 0.0)


class LineIndex:
    """All lines of a document, ready to be searched.

    Args:
        lines: In reading order.
        conventions: How dates and numbers of this document read.
    """

    def __init__(self, lines: Sequence[Line], conventions: Conventions | None = None) -> None:
        self.lines = tuple(lines)
        self._conventions = conventions or Conventions()
        self._text = "\n".join(line.text for line in self.lines)
        lengths = (len(line.text) + 1 for line in self.lines)
        self._starts = list(itertools.accumulate(lengths, initial=0))[:-1]

    def find(
        self,
        text: str,
        *,
        kind: FieldKind = FieldKind.STRING,
        value: Any = None,
        near: int | None = None,
    ) -> Grounding:
        """The best place for a printed text, or for its value.

        Args:
            text: The text as it should be printed.
            kind: Dates, amounts and numbers are also found by what they mean.
            value: The normalised value, for those kinds.
            near: Position of a line; of several equally good places the nearest is taken.
        """
        wanted = fold_alnum(text)
        if not wanted:
            return NOT_FOUND
        found = self._exact(text.strip(), near) or self._folded(wanted, near)
        if found is None and value is not None:
            found = self._by_value(value, kind, near)
        if found is None and _is_wordy(wanted):
            found = self._parts(text) or self._fuzzy(wanted, near)
        return found or NOT_FOUND

    def _grounding(
        self, kind: MatchKind, score: float, places: list[list[LineSpan]], near: int | None
    ) -> Grounding:
        best = places[0]
        if near is not None:
            best = min(places, key=lambda spans: abs(spans[0].position - near))
        return Grounding(kind, score, tuple(best), self.evidence(best), len(places))

    def evidence(self, spans: Sequence[LineSpan]) -> tuple[Evidence, ...]:
        """Boxes and texts of `spans`."""
        return tuple(evidence_for_span(self.lines[s.position], s.start, s.end) for s in spans)

    def _spans(self, start: int, end: int) -> list[LineSpan]:
        """The stretch `start:end` of the joined text, line by line."""
        spans: list[LineSpan] = []
        position = bisect_right(self._starts, start) - 1
        while position < len(self.lines) and self._starts[position] < end:
            origin, length = self._starts[position], len(self.lines[position].text)
            a, b = max(0, start - origin), min(length, end - origin)
            if a < b:
                spans.append(LineSpan(position, a, b))
            position += 1
        return spans

    def _exact(self, text: str, near: int | None) -> Grounding | None:
        places = [
            self._spans(start, start + len(text))
            for start in _occurrences(self._text, text)
            if _is_whole(self._text, start, start + len(text))
        ]
        return self._grounding(MatchKind.EXACT, 1.0, places, near) if places else None

    @cached_property
    def _folded_text(self) -> tuple[str, list[int]]:
        """Letters and digits of the whole text, and the offset that each came from."""
        pieces: list[str] = []
        offsets: list[int] = []
        for line, start in zip(self.lines, self._starts, strict=True):
            if line.text.isascii():
                kept = [(c, i) for i, c in enumerate(line.text.lower(), start) if c.isalnum()]
            else:
                kept = [(f, i) for i, c in enumerate(line.text, start) for f in fold_alnum(c)]
            pieces += [c for c, _ in kept]
            offsets += [i for _, i in kept]
        return "".join(pieces), offsets

    def _folded(self, wanted: str, near: int | None) -> Grounding | None:
        folded, offsets = self._folded_text
        places: list[list[LineSpan]] = []
        for found in _occurrences(folded, wanted):
            start, end = offsets[found], offsets[found + len(wanted) - 1] + 1
            if not _is_whole(self._text, start, end, glued_ok=_is_wordy(wanted)):
                continue
            spans = self._spans(start, end)
            if len(spans) == 1 or len(wanted) >= _MIN_ACROSS_LINES:
                places.append(spans)
        return self._grounding(MatchKind.NORMALISED, 0.97, places, near) if places else None

    @cached_property
    def _dates(self) -> list[tuple[int, DateMatch]]:
        first = self._conventions.day_first
        return [
            (i, d) for i, n in enumerate(self.lines) for d in find_dates(n.text, day_first=first)
        ]

    @cached_property
    def _amounts(self) -> list[tuple[int, AmountMatch]]:
        mark = self._conventions.decimal_mark
        return [
            (i, a)
            for i, n in enumerate(self.lines)
            for a in find_amounts(n.text, decimal_mark=mark)
        ]

    def _by_value(self, value: Any, kind: FieldKind, near: int | None) -> Grounding | None:
        places: list[list[LineSpan]] = []
        if kind is FieldKind.DATE:
            places = [[LineSpan(i, d.start, d.end)] for i, d in self._dates if d.iso == value]
        elif kind in {FieldKind.AMOUNT, FieldKind.NUMBER, FieldKind.INTEGER} and not isinstance(
            value, str
        ):
            places = [
                [LineSpan(i, a.start, a.end)]
                for i, a in self._amounts
                if abs(a.value - value) < 1e-9
            ]
        return self._grounding(MatchKind.VALUE, 0.97, places, near) if places else None

    def _parts(self, text: str) -> Grounding | None:
        """A value whose pieces (lines, or stretches between commas) stand apart."""
        pieces = [p for p in text.replace("\n", ",").split(",") if fold_alnum(p)]
        if len(pieces) < 2:
            return None
        spans: list[LineSpan] = []
        near = None
        for piece in pieces:
            found = self._exact(piece.strip(), near) or self._folded(fold_alnum(piece), near)
            if found is None:
                return None
            spans += found.spans
            near = found.spans[-1].position
        positions = [span.position for span in spans]
        if max(positions) - min(positions) > 2 * _MAX_JOINED_LINES:
            return None
        return self._grounding(MatchKind.PARTS, 0.9, [spans], None)

    @cached_property
    def _folded_lines(self) -> list[str]:
        return [fold_alnum(line.text) for line in self.lines]

    def _fuzzy(self, wanted: str, near: int | None) -> Grounding | None:
        if len(wanted) < _MIN_FUZZY_LETTERS:
            return None
        from rapidfuzz import fuzz, process

        anchors = process.extract(
            wanted,
            self._folded_lines,
            scorer=fuzz.partial_ratio,
            score_cutoff=_PART_SCORE,
            limit=_MAX_ANCHORS,
        )
        best: tuple[float, int, int] | None = None
        for line_text, _, position in anchors:
            if len(line_text) * 3 < min(len(wanted), 3 * _MIN_FUZZY_LETTERS):
                continue
            window = self._best_window(wanted, position)
            if best is None or _rank(window, near) > _rank(best, near):
                best = window
        if best is None or best[0] < _FUZZY_SCORE:
            return None
        score, first, last = best
        spans = self._aligned_spans(wanted, first, last)
        return self._grounding(MatchKind.FUZZY, score / 100, [spans], None)

    def _best_window(self, wanted: str, anchor: int) -> tuple[float, int, int]:
        """Score, first and last line of the run around `anchor` that is most like `wanted`."""
        first = last = anchor
        score = self._window_score(wanted, first, last)
        while last - first + 1 < _MAX_JOINED_LINES:
            options = [(first - 1, last)] if first > 0 else []
            options += [(first, last + 1)] if last + 1 < len(self.lines) else []
            scored = [(self._window_score(wanted, a, b), a, b) for a, b in options]
            if not scored or max(scored)[0] <= score:
                break
            score, first, last = max(scored)
        return score, first, last

    def _window_score(self, wanted: str, first: int, last: int) -> float:
        from rapidfuzz import fuzz

        joined = "".join(self._folded_lines[first : last + 1])
        if len(joined) >= len(wanted):
            return fuzz.partial_ratio(wanted, joined)
        return fuzz.ratio(wanted, joined)

    def _aligned_spans(self, wanted: str, first: int, last: int) -> list[LineSpan]:
        from rapidfuzz import fuzz

        folded, offsets = self._folded_text
        begin = sum(len(t) for t in self._folded_lines[:first])
        end = begin + sum(len(t) for t in self._folded_lines[first : last + 1])
        joined = folded[begin:end]
        start, stop = 0, len(joined)
        if len(joined) > len(wanted):
            alignment = fuzz.partial_ratio_alignment(wanted, joined)
            if alignment is not None:
                start, stop = alignment.dest_start, alignment.dest_end
        if stop <= start:
            start, stop = 0, len(joined)
        return self._spans(
            *self._whole_words(offsets[begin + start], offsets[begin + stop - 1] + 1)
        )

    def _whole_words(self, start: int, end: int) -> tuple[int, int]:
        """A stretch of the text widened to the words that it cuts."""
        while start > 0 and self._text[start - 1].isalnum():
            start -= 1
        while end < len(self._text) and self._text[end].isalnum():
            end += 1
        return start, end


def _rank(window: tuple[float, int, int], near: int | None) -> tuple[float, int]:
    """The better window by score, then by nearness."""
    return window[0], 0 if near is None else -abs(window[1] - near)


def _occurrences(text: str, wanted: str) -> Iterator[int]:
    position, n_found = text.find(wanted), 0
    while position >= 0 and n_found < _MAX_OCCURRENCES:
        yield position
        n_found += 1
        position = text.find(wanted, position + 1)


def _is_wordy(folded: str) -> bool:
    """Whether letters outweigh digits: spelling may differ then, a wrong digit may not."""
    return sum(c.isdigit() for c in folded) < _DIGIT_SHARE * len(folded)


def _is_whole(text: str, start: int, end: int, *, glued_ok: bool = False) -> bool:
    """Whether `text[start:end]` begins and ends where words or numbers do.

    Recognisers drop spaces, so a long word may be glued to other letters (`glued_ok`).
    """
    tolerant = glued_ok and end - start >= _MIN_GLUED_LETTERS
    return _is_edge(text, start - 1, start, tolerant=tolerant) and _is_edge(
        text, end, end - 1, tolerant=tolerant
    )


def _is_edge(text: str, outside: int, inside: int, *, tolerant: bool) -> bool:
    if not 0 <= outside < len(text):
        return True
    a, b = text[outside], text[inside]
    if a.isdigit() and b.isdigit():
        return False
    if b.isdigit() and a in ".,":
        beyond = 2 * outside - inside
        return not (0 <= beyond < len(text) and text[beyond].isdigit())
    return tolerant or not (a.isalnum() and b.isalnum())


__all__ = ["NOT_FOUND", "Grounding", "LineIndex", "LineSpan", "MatchKind"]
