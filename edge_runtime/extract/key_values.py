"""Labels and their values anywhere in a document: the presets `auto` and `form`.

No model is needed: punctuation says what a label is (`Name:`), layout says which text belongs to
it. Three layouts are known: `inline` (label and value in one line), `beside` (value to the right
on the same row) and `below` (value under its label).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from edge_runtime.errors import SchemaError
from edge_runtime.extract.dates import find_dates
from edge_runtime.extract.grounding import MatchKind
from edge_runtime.extract.label_words import ends_in_label_word, label_prefix_length
from edge_runtime.extract.normalising import clean_string
from edge_runtime.extract.review import DEFAULT_RULES, ReviewRules, decide_status
from edge_runtime.extract.schema import ExtractionSchema, join_path
from edge_runtime.extract.text_segments import (
    Segment,
    cut,
    segments_of,
    typical_height,
    x_overlap,
    y_overlap,
)
from edge_runtime.values import Box, Document, FieldValue, Line

LAYOUTS = ("inline", "beside", "below")

_COLON = re.compile(r"\s?[:：](?![/\\])(?!\d\d(?:\D|$))|(?<=[#])(?=\s*\d)|(?<=\?)(?=\s)")
_LABEL = re.compile(r"[^\W\d_]")
_MAX_LABEL_WORDS = 9
_MAX_LABEL_LETTERS = 70
_MAX_SET_OFF_WORDS = 6
_FILLER = re.compile(r"[_.\u2026\-]{3,}")

PROBABILITY: dict[str, float] = {
    "inline_colon": 0.66,
    "beside_colon": 0.74,
    "inline_bare": 0.35,
    "beside": 0.4,
    "below_colon": 0.1,
    "below": 0.15,
}
"""Share of right pairs of each layout, on scanned forms that the rules were not made from."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A label and the segments of its value; `layout` is a key of `PROBABILITY`."""

    key: str
    label: Segment
    value: tuple[Segment, ...]
    layout: str

    @property
    def text(self) -> str:
        """The value as one text."""
        return " ".join(filter(None, (clean_value(s.text) for s in self.value)))


def clean_value(text: str) -> str:
    """A value without the rule it was written on."""
    return clean_string(_FILLER.sub(" ", text).replace("_", " "))


def clean_key(text: str) -> str:
    """A label without its punctuation."""
    return " ".join(_FILLER.sub(" ", text).strip(" \t:：*•_").split())


def _is_label_text(text: str) -> bool:
    letters = len(_LABEL.findall(text))
    digits = sum(c.isdigit() for c in text)
    return (
        letters >= 2
        and letters > digits
        and len(text) <= _MAX_LABEL_LETTERS
        and len(text.split()) <= _MAX_LABEL_WORDS
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    """A segment known to be a label with a colon, or anything else."""

    segment: Segment
    is_label: bool


def _last_label_start(text: str) -> int:
    """Where the label at the end of `value label` begins: its trailing words of one style."""
    words = list(re.finditer(r"\S+", text))
    if not words:
        return 0
    start = words[-1].start()
    style = _style(words[-1].group())
    for word in reversed(words[:-1]):
        if any(c.isdigit() for c in word.group()) or word.group()[-1] in ".,;":
            break
        if _style(word.group()) != style:
            break
        start = word.start()
    return start


def _last_word(text: str) -> str:
    return text.rsplit(maxsplit=1)[-1]


def _style(word: str) -> str:
    letters = [c for c in word if c.isalpha()]
    if not letters:
        return "none"
    if all(c.isupper() for c in letters):
        return "upper"
    return "title" if letters[0].isupper() else "lower"


def _pieces(segment: Segment) -> list[_Piece]:
    """Labels and values of a segment, cut at its colons."""
    text, offset = segment.text, segment.start
    marks = [m.end() for m in _COLON.finditer(text) if _is_label_text(text[: m.start()])]
    if not marks:
        return _pieces_without_colon(segment)
    pieces: list[_Piece] = []
    position = 0
    for number, mark in enumerate(marks):
        begin = position
        if number > 0:
            begin += _last_label_start(text[position:mark])
            value = cut(segment.line, segment.position, offset + position, offset + begin)
            if value is not None:
                pieces.append(_Piece(value, is_label=False))
        label = cut(segment.line, segment.position, offset + begin, offset + mark)
        if label is not None:
            pieces.append(_Piece(label, is_label=_is_label_text(label.text)))
        position = mark
    rest = cut(segment.line, segment.position, offset + position, offset + len(text))
    if rest is not None:
        pieces.append(_Piece(rest, is_label=False))
    return pieces


def _is_set_off(label: str, value: str) -> bool:
    """Whether the text after a label in the same line is written differently from it."""
    words = value.split()
    if any(c.isdigit() for c in words[0]):
        return len(words) <= _MAX_SET_OFF_WORDS
    dates = find_dates(value[:24].lstrip())
    if dates and dates[0].start == 0:
        return True
    first = _style(words[0])
    differs = first in {"upper", "title"} and first != _style(_last_word(label))
    return differs and len(words) <= _MAX_SET_OFF_WORDS and not ends_in_label_word(value)


def _pieces_without_colon(segment: Segment) -> list[_Piece]:
    """`Project Code BD-FF` as label and value; other segments as they are."""
    length = label_prefix_length(segment.text)
    if length and _is_set_off(segment.text[:length], segment.text[length:]):
        middle = segment.start + length
        label = cut(segment.line, segment.position, segment.start, middle)
        value = cut(segment.line, segment.position, middle, segment.end)
        if label is not None and value is not None:
            return [_Piece(label, is_label=True), _Piece(value, is_label=False)]
    return [_Piece(segment, is_label=False)]


class PairFinder:
    """Finds the pairs of one page's lines.

    Args:
        lines: Lines of one page in reading order.
        layouts: Some of `LAYOUTS`.
    """

    def __init__(self, lines: Sequence[Line], layouts: Iterable[str] = LAYOUTS) -> None:
        self._layouts = frozenset(layouts)
        self._pieces = [p for s in segments_of(lines) for p in _pieces(s)]
        self._segments = [p.segment for p in self._pieces]
        self._height = typical_height(self._segments)
        self._right_edge = max((s.box.x1 for s in self._segments), default=0.0)
        tops = sorted((s.box.y0, i) for i, s in enumerate(self._segments))
        self._tops, self._by_top = [y for y, _ in tops], [i for _, i in tops]
        self._used: set[int] = set()

    def _near(self, box: Box) -> list[int]:
        """Pieces that begin a few text heights around a box, in reading order."""
        reach = 4 * self._height
        first = bisect_left(self._tops, box.y0 - reach)
        last = bisect_right(self._tops, box.y1 + reach)
        return sorted(self._by_top[first:last])

    def pairs(self) -> list[Pair]:
        """All pairs, labels in reading order."""
        labels = [i for i, piece in enumerate(self._pieces) if piece.is_label]
        found = [pair for i in labels if (pair := self._of_colon_label(i)) is not None]
        self._used |= set(labels)
        if "beside" in self._layouts:
            found += self._bare_beside()
        if "below" in self._layouts:
            found += self._bare_below()
        return sorted(found, key=lambda p: (p.label.position, p.label.start))

    def _of_colon_label(self, index: int) -> Pair | None:
        label = self._segments[index]
        right = self._right(index)
        if right is not None and not self._pieces[right].is_label:
            same_line = self._segments[right].line is label.line
            layout = "beside_colon"
            if same_line:
                layout = "inline_colon" if label.text[-1:] in ":：#?" else "inline_bare"
            if ("inline" if same_line else "beside") in self._layouts:
                return self._pair(index, self._with_continuation(index, right), layout)
        if "below" in self._layouts and (right is None or self._pieces[right].is_label):
            under = self._under(index)
            if under is not None and self._is_value_under(index, under):
                return self._pair(index, self._with_continuation(None, under), "below_colon")
        return None

    def _is_value_under(self, label: int, under: int) -> bool:
        """Whether the piece below a label belongs to it and is not a label or heading itself."""
        a, b = self._segments[label], self._segments[under]
        if self._pieces[under].is_label or ends_in_label_word(b.text):
            return False
        if not ends_in_label_word(clean_key(a.text)) or self._has_left_neighbour(under, near=4):
            return False
        aligned = abs(a.box.x0 - b.box.x0) < 2.5 * self._height
        middle = abs(a.box.center[0] - b.box.center[0]) < 0.4 * a.box.width
        has_figures = any(c.isdigit() for c in b.text)
        return (aligned or middle) and (has_figures or _is_set_off(a.text, b.text))

    def _pair(self, label: int, value: list[int], layout: str) -> Pair | None:
        segments = tuple(self._segments[i] for i in value)
        pair = Pair(clean_key(self._segments[label].text), self._segments[label], segments, layout)
        if not pair.key or not pair.text or not any(c.isalnum() for c in pair.text):
            return None
        self._used |= {label, *value}
        return pair

    def _right(self, index: int) -> int | None:
        """The next piece on the same row, within reach."""
        here = self._segments[index]
        best: int | None = None
        for other in self._near(here.box):
            segment = self._segments[other]
            if other == index or (other in self._used and not self._pieces[other].is_label):
                continue
            gap = segment.box.x0 - here.box.x1
            if segment.line is here.line and segment.start >= here.end:
                gap = max(gap, 0.0)
            elif y_overlap(here.box, segment.box) < 0.4 or gap < -0.5 * here.height:
                continue
            if gap > 14 * self._height:
                continue
            if best is None or segment.box.x0 < self._segments[best].box.x0:
                best = other
        return best

    def _under(self, index: int) -> int | None:
        """The nearest piece below that starts under this one."""
        here = self._segments[index]
        best: int | None = None
        for other in self._near(here.box):
            segment = self._segments[other]
            if other == index or other in self._used:
                continue
            drop = segment.box.y0 - here.box.y1
            if not -0.5 * here.height < drop < 1.6 * max(here.height, self._height):
                continue
            if segment.box.y0 <= here.box.y0 or x_overlap(here.box, segment.box) < 0.4:
                continue
            if best is None or segment.box.y0 < self._segments[best].box.y0:
                best = other
        return best

    def _with_continuation(self, label: int | None, first: int) -> list[int]:
        """A value and the lines that carry it on below, aligned with it and without own label."""
        chain = [first]
        here = self._segments[first]
        while True:
            candidates = [
                i
                for i in self._near(here.box)
                for s in (self._segments[i],)
                if i not in self._used
                and i not in chain
                and i != label
                and not self._pieces[i].is_label
                and 0.3 * here.height < s.box.y0 - here.box.y0 < 1.9 * here.height
                and self._carries_on(s, first, label)
                and 0.6 < s.height / here.height < 1.7
            ]
            if not candidates or self._has_left_neighbour(candidates[0]):
                return chain
            chain.append(candidates[0])
            here = self._segments[candidates[0]]

    def _carries_on(self, segment: Segment, first: int, label: int | None) -> bool:
        """Whether a line starts where its value does, or under the label of a full line."""
        start = self._segments[first].box.x0
        if abs(segment.box.x0 - start) < 1.5 * self._height:
            return True
        if label is None or self._segments[first].box.x1 < 0.85 * self._right_edge:
            return False
        return abs(segment.box.x0 - self._segments[label].box.x0) < 1.5 * self._height

    def _has_left_neighbour(self, index: int, near: float = 20) -> bool:
        here = self._segments[index].box
        return any(
            s.box.x1 <= here.x0 + self._height and y_overlap(here, s.box) > 0.5
            for i in self._near(here)
            for s in (self._segments[i],)
            if i != index and here.x0 - s.box.x1 < near * self._height
        )

    def _bare_beside(self) -> Iterator[Pair]:
        """Labels without a colon whose right neighbour looks like a value."""
        for index, segment in enumerate(self._segments):
            if index in self._used or not _is_bare_label(segment.text):
                continue
            right = self._right(index)
            if right is None or right in self._used or self._pieces[right].is_label:
                continue
            value = self._segments[right]
            gap = value.box.x0 - segment.box.x1
            if gap > 8 * self._height or not _looks_like_value(segment.text, value.text):
                continue
            pair = self._pair(index, [right], "beside")
            if pair is not None:
                yield pair

    def _bare_below(self) -> Iterator[Pair]:
        """Labels without a colon with a value right under them."""
        for index, segment in enumerate(self._segments):
            if index in self._used or not _is_bare_label(segment.text):
                continue
            under = self._under(index)
            if under is None or not self._is_value_under(index, under):
                continue
            pair = self._pair(index, [under], "below")
            if pair is not None:
                yield pair


def _is_bare_label(text: str) -> bool:
    """Whether a text without a colon may be a label: few words, no figures, no sentence."""
    words = text.split()
    if not _is_label_text(text) or len(words) > 5 or text.rstrip()[-1] in ".,;":
        return False
    return not any(c.isdigit() for c in text) and text[0].isupper()


def _looks_like_value(label: str, value: str) -> bool:
    """Whether `value` differs from a label the way filled-in text does."""
    if not any(c.isalnum() for c in value) or ends_in_label_word(value):
        return False
    if any(c.isdigit() for c in value) or ends_in_label_word(label):
        return True
    return _style(_last_word(label)) == "upper" and any(c.islower() for c in value)


def find_pairs(document: Document, layouts: Iterable[str] = LAYOUTS) -> list[Pair]:
    """All pairs of a document, page by page."""
    chosen = tuple(layouts)
    return [pair for page in document.pages for pair in PairFinder(page.lines, chosen).pairs()]


def layouts_of(schema: ExtractionSchema) -> tuple[str, ...]:
    """The layouts an open schema asks for (`x-layouts`), all by default.

    Raises:
        SchemaError: an unknown layout.
    """
    layouts = schema.root.get("x-layouts", list(LAYOUTS))
    if not isinstance(layouts, list) or not set(layouts) <= set(LAYOUTS):
        raise SchemaError(
            f"'x-layouts' has to be a list of {', '.join(LAYOUTS)} (at #)",
            details={"path": "#"},
        )
    return tuple(layouts)


def pair_fields(
    document: Document, schema: ExtractionSchema, *, rules: ReviewRules = DEFAULT_RULES
) -> list[FieldValue]:
    """The pairs of a document as fields; a key that occurs again gets numbered paths."""
    by_key: dict[str, list[Pair]] = defaultdict(list)
    taken = {spec.name.casefold() for spec in schema.fields}
    for pair in find_pairs(document, layouts_of(schema)):
        if pair.key.casefold() not in taken:
            by_key[pair.key].append(pair)
    fields: list[FieldValue] = []
    for key, pairs in by_key.items():
        root = join_path("", key)
        for number, pair in enumerate(pairs):
            path = root if len(pairs) == 1 else join_path(root, number)
            fields.append(_field(path, pair, rules))
    return fields


def _field(path: str, pair: Pair, rules: ReviewRules) -> FieldValue:
    ocr = min(segment.line.confidence for segment in (pair.label, *pair.value))
    confidence = PROBABILITY[pair.layout] * ocr
    status, reasons = decide_status(
        pair.text,
        confidence=confidence,
        match=MatchKind.EXACT,
        reasons=(f"label_{pair.layout}",),
        ocr_confidence=ocr,
        rules=rules,
    )
    return FieldValue(
        path=path,
        value=pair.text,
        raw=" ".join(segment.text for segment in pair.value),
        confidence=round(confidence, 4),
        status=status,
        evidence=tuple(segment.evidence() for segment in pair.value),
        reasons=reasons,
    )
