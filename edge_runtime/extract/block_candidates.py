"""Names and addresses: consecutive printed lines, trimmed at what does not belong to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from edge_runtime.extract.candidates import Candidate, Piece, part, raw_of, whole
from edge_runtime.extract.confusions import fold_alnum
from edge_runtime.extract.document_facts import DocumentFacts
from edge_runtime.extract.page_layout import Run
from edge_runtime.extract.schema import FieldKind
from edge_runtime.extract.text_features import TEXT_NAMES, text_features
from edge_runtime.extract.text_repair import repair_text
from edge_runtime.extract.vocabulary import LINE_CUES, cue_key, cue_pattern, legal_form_pattern

MAX_ADDRESS_RUNS = 8
MAX_NAME_RUNS = 4
_MAX_STARTS = 160
_MIN_LETTERS = 2

_CODE_TAIL = re.compile(
    r"\s*(?:[(<\[{][^)>\]}]*\d[^)>\]}]*[)>\]}]?|\b[A-Z]{0,4}[-\s]?\d{5,}[-\s]?[A-Z]{0,2}\b.*|[(<\[{]?\s*"
    r"(?:co|company|reg|gst|roc|vat|tin)\b[^a-z]{0,3}(?:reg|no|id)?\W.*\d.*)\s*$",
    re.IGNORECASE,
)
_LEADING_LABEL = re.compile(r"^\W*[A-Za-z][A-Za-z /.]{1,18}\s?[:：]\s*(?=\S)")
_ADDRESS_LABEL = re.compile(
    r"^\W*(?:business\s+)?(?:address|addr?|alamat|anschrift|adresse)\W+", re.IGNORECASE
)
_ADDRESS_EVIDENCE = tuple(
    TEXT_NAMES.index(n)
    for n in ("street", "unit", "area", "country", "postcode", "house_number", "comma")
)


def _tail_cut(run: Run) -> int | None:
    """Where telephone, registration or web particulars begin inside the run."""
    key = cue_key(run.text)
    if len(key) != len(run.text):
        return None
    starts = [
        m.start()
        for name in ("phone", "registration", "web")
        for m in cue_pattern(LINE_CUES[name]).finditer(key)
        if m.start() > 3
    ]
    return min(starts, default=None)


def name_pieces(run: Run) -> list[Piece]:
    """A run, and the parts of it that may be a name alone."""
    pieces = [whole(run)]
    text = run.text
    if (code := _CODE_TAIL.search(text)) is not None and code.start() >= _MIN_LETTERS:
        pieces.append(part(run, 0, code.start(), "code_tail"))
    key = cue_key(text)
    if len(key) == len(text):
        forms = list(legal_form_pattern().finditer(key))
        if forms and any(c.isalnum() for c in text[forms[-1].end() :]):
            pieces.append(part(run, 0, forms[-1].end(), "after_legal"))
    if (label := _LEADING_LABEL.match(text)) is not None:
        pieces.append(part(run, label.end(), len(text), "label"))
    if len(run.lines) > 1:
        offset = 0
        for line in run.lines:
            length = len(line.text.strip())
            pieces.append(part(run, offset, offset + length, "single_box"))
            offset += length + 1
    for mark in ("@", " - ", ","):
        at = text.find(mark)
        if at > _MIN_LETTERS:
            pieces.append(part(run, 0, at, "before_mark"))
    return _distinct(pieces)


def _distinct(pieces: list[Piece]) -> list[Piece]:
    seen: set[str] = set()
    kept: list[Piece] = []
    for piece in pieces:
        key = _key(piece.text)
        if key and key not in seen:
            seen.add(key)
            kept.append(piece)
    return kept


def address_lead(run: Run) -> list[Piece]:
    """How an address may begin inside a run."""
    pieces = [whole(run)]
    if (label := _ADDRESS_LABEL.match(run.text)) is not None and label.end() < len(run.text):
        pieces.append(part(run, label.end(), len(run.text), "label"))
    elif (other := _LEADING_LABEL.match(run.text)) is not None:
        pieces.append(part(run, other.end(), len(run.text), "label"))
    key = cue_key(run.text)
    if len(key) == len(run.text):
        forms = list(legal_form_pattern().finditer(key))
        if forms and sum(c.isalpha() for c in run.text[forms[-1].end() :]) > 4:
            pieces.append(part(run, forms[-1].end(), len(run.text), "after_legal"))
    return _distinct(pieces)


def _tail(piece: Piece) -> list[Piece]:
    cut = _tail_cut(piece.run)
    if cut is None or cut <= piece.start + 3:
        return [piece]
    return [piece, part(piece.run, piece.start, cut, "tail")]


def chain(facts: DocumentFacts, start: Run, limit: int) -> Iterator[Run]:
    """`start` and the runs that continue its block downwards."""
    run: Run | None = start
    n = 0
    while run is not None and n < limit:
        yield run
        run = facts.layout.below(run)
        n += 1


@lru_cache(maxsize=8192)
def _key(text: str) -> str:
    return fold_alnum(text)


def _candidate(pieces: tuple[Piece, ...], kind: FieldKind, origin: str) -> Candidate | None:
    raw = raw_of(pieces)
    value, reasons = repair_text(raw)
    key = "".join(_key(p.text) for p in pieces) if value == raw else fold_alnum(value)
    if len(key) < _MIN_LETTERS or key.isdigit():
        return None
    return Candidate(value, raw, kind, pieces, key, reasons, origin=origin)


def name_candidates(facts: DocumentFacts, kind: FieldKind) -> list[Candidate]:
    """Names of organisations or people: one printed line, or a few that belong together."""
    found: list[Candidate | None] = []
    for start in facts.layout.runs[:_MAX_STARTS]:
        firsts = name_pieces(start)
        found += [_candidate((piece,), kind, "name") for piece in firsts]
        heads = [p for p in firsts if p.end == len(start.text)]
        middle: tuple[Piece, ...] = ()
        for number, run in enumerate(chain(facts, start, MAX_NAME_RUNS)):
            if number == 0:
                continue
            lasts = [p for p in name_pieces(run) if p.start == 0]
            found += [
                _candidate((head, *middle, last), kind, "name") for head in heads for last in lasts
            ]
            middle = (*middle, whole(run))
    return [one for one in found if one is not None]


def address_candidates(facts: DocumentFacts, kind: FieldKind) -> list[Candidate]:
    """Addresses: blocks of up to eight printed lines that show any sign of one."""
    found: list[Candidate | None] = []
    n_starts = 0
    for start in facts.layout.runs:
        block = list(chain(facts, start, MAX_ADDRESS_RUNS))
        if not any(_looks_like_address(run) for run in block[:3]):
            continue
        n_starts += 1
        if n_starts > _MAX_STARTS:
            break
        heads = address_lead(start)
        for length in range(1, len(block) + 1):
            if length == 1:
                found += [
                    _candidate((tail,), kind, "address") for head in heads for tail in _tail(head)
                ]
                continue
            middle = tuple(whole(run) for run in block[1 : length - 1])
            found += [
                _candidate((head, *middle, tail), kind, "address")
                for head in heads
                for tail in _tail(whole(block[length - 1]))
            ]
    return [one for one in found if one is not None]


def _looks_like_address(run: Run) -> bool:
    row = text_features(run.text)
    return any(row[i] > 0 for i in _ADDRESS_EVIDENCE)
