"""Values that a document offers for a field, each with the place it stands.

A candidate is made of pieces: spans of printed lines. Generation is generous (a value that is not
offered cannot be chosen), ranking decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from edge_runtime.extract.document_facts import DocumentFacts, PlacedAmount, PlacedDate
from edge_runtime.extract.page_layout import Run, join_texts
from edge_runtime.extract.schema import FieldKind
from edge_runtime.values import Box, Evidence, Line, Quad

_SEPARATORS = " :;=*~_|"


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a run: `text` is `run.text[start:end]`, `trim` says why it is only a part."""

    run: Run
    start: int
    end: int
    text: str
    trim: str = ""

    @property
    def lines(self) -> tuple[Line, ...]:
        """The boxes that the span touches."""
        return tuple(line for line, _, _ in self.spans)

    @property
    def spans(self) -> list[tuple[Line, int, int]]:
        """Boxes with the part of their own text that belongs to the piece."""
        found: list[tuple[Line, int, int]] = []
        offset = 0
        for line in self.run.lines:
            stripped = line.text.strip()
            shift = len(line.text) - len(line.text.lstrip())
            start, end = max(self.start - offset, 0), min(self.end - offset, len(stripped))
            if start < end:
                found.append((line, start + shift, end + shift))
            offset += len(stripped) + 1
        return found


@dataclass(frozen=True, slots=True)
class Candidate:
    """One possible value.

    `value` is the normalised JSON value, `raw` the text as printed, `key` what makes two
    candidates the same answer. `placed` is the date or amount behind it, where there is one.
    """

    value: Any
    raw: str
    kind: FieldKind
    pieces: tuple[Piece, ...]
    key: str
    reasons: tuple[str, ...] = ()
    placed: PlacedAmount | PlacedDate | None = None
    origin: str = ""
    notes: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def lines(self) -> tuple[Line, ...]:
        """All boxes that show the value."""
        return tuple(line for piece in self.pieces for line in piece.lines)

    @property
    def confidence(self) -> float:
        """Recognition confidence of the least certain box."""
        return min((line.confidence for line in self.lines), default=0.0)

    def evidence(self) -> tuple[Evidence, ...]:
        """Where the value stands, one entry per box, as narrow as word boxes allow."""
        return tuple(
            Evidence(line.page, line.index, _span_quad(line, start, end), line.text[start:end])
            for piece in self.pieces
            for line, start, end in piece.spans
        )


def _span_quad(line: Line, start: int, end: int) -> Quad:
    """The quad of `line.text[start:end]`: union of the words inside, or the whole line."""
    if start == 0 and end >= len(line.text.rstrip()):
        return line.quad
    box: Box | None = None
    position = 0
    for word in line.words:
        at = line.text.find(word.text, position)
        if at < 0:
            return line.quad
        position = at + len(word.text)
        if at < end and position > start:
            box = word.quad.box if box is None else box.union(word.quad.box)
    return line.quad if box is None else Quad.from_box(box)


def whole(run: Run) -> Piece:
    """All of a run."""
    return Piece(run, 0, len(run.text), run.text)


def part(run: Run, start: int, end: int, trim: str) -> Piece:
    """`run.text[start:end]` without blanks and separators around it.

    A comma at the end of the printed line stays: it joins the line to the next one.
    """
    text = run.text[start:end]
    lead = len(text) - len(text.lstrip(_SEPARATORS + ",-"))
    tail = len(text.rstrip(_SEPARATORS if end == len(run.text) else _SEPARATORS + ","))
    return Piece(run, start + lead, start + max(lead, tail), text[lead:tail], trim)


def raw_of(pieces: Sequence[Piece]) -> str:
    """The printed text of several pieces in one line."""
    return join_texts([piece.text for piece in pieces])


def _line_offset(run: Run, line: Line) -> int:
    offset = 0
    for one in run.lines:
        if one is line:
            return offset - (len(line.text) - len(line.text.lstrip()))
        offset += len(one.text.strip()) + 1
    return offset


def date_candidates(facts: DocumentFacts) -> list[Candidate]:
    """Every date of the document."""
    found: list[Candidate] = []
    for placed in facts.dates:
        run, match = placed.run, placed.match
        shift = _line_offset(run, placed.lines[0]) if len(placed.lines) == 1 else 0
        piece = Piece(run, shift + match.start, shift + match.end, match.text)
        found.append(
            Candidate(
                value=match.iso,
                raw=match.text,
                kind=FieldKind.DATE,
                pieces=(piece,),
                key=match.iso,
                reasons=match.reasons,
                placed=placed,
                origin="date",
            )
        )
    return found


def amount_candidates(facts: DocumentFacts, kind: FieldKind) -> list[Candidate]:
    """Every amount of the document that `kind` can hold."""
    found: list[Candidate] = []
    for placed in facts.amounts:
        run, match = placed.run, placed.match
        if match.is_percent:
            continue
        value: float | int = match.value
        if kind is FieldKind.INTEGER:
            if match.value != int(match.value):
                continue
            value = int(match.value)
        shift = _line_offset(run, placed.line)
        piece = Piece(run, shift + match.start, shift + match.end, match.text)
        found.append(
            Candidate(
                value=value,
                raw=match.text,
                kind=kind,
                pieces=(piece,),
                key=f"{match.value:.4f}",
                reasons=match.reasons,
                placed=placed,
                origin="amount",
            )
        )
    return found
