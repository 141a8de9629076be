"""Candidates as rows of numbers, by family: blocks of lines, dates, amounts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import fuzz

from edge_runtime.extract.candidates import Candidate, Piece
from edge_runtime.extract.confusions import fold_alnum
from edge_runtime.extract.document_facts import DocumentFacts, PlacedAmount, PlacedDate
from edge_runtime.extract.labels import NO_LABEL, FieldTerms, LabelHit, match_label
from edge_runtime.extract.page_layout import Run
from edge_runtime.extract.text_features import (
    PLACE_NAMES,
    TEXT_NAMES,
    place_features,
    text_features,
)
from edge_runtime.extract.vocabulary import AMOUNT_CUES, DATE_CUES, classes_of

_LINE_NAMES = (*TEXT_NAMES, *PLACE_NAMES)
_N_TEXT = len(TEXT_NAMES)
_TRIMS = ("code_tail", "after_legal", "label", "single_box", "before_mark", "tail")
_MAX_RUNS = 8
_MIN_ECHO = 5
_DOMAIN = re.compile(
    r"(?:www\.|https?://|facebook\.com/|fb\.com/)([\w\-]+)|([\w.\-]+)\s?@", re.IGNORECASE
)

BLOCK_NAMES: tuple[str, ...] = (
    *(f"sum_{n}" for n in _LINE_NAMES),
    *(f"first_{n}" for n in _LINE_NAMES),
    *(f"last_{n}" for n in _LINE_NAMES),
    *(f"before_{n}" for n in _LINE_NAMES),
    *(f"after_{n}" for n in _LINE_NAMES),
    "no_before",
    "no_after",
    *(f"n_{n}" for n in range(1, _MAX_RUNS + 1)),
    *(f"trim_{t}" for t in _TRIMS),
    "whole_has_code",
    "whole_legal_inside",
    "letters",
    "repeated",
    "echoed",
    "domain",
    *(f"label_{n}" for n in ("inline", "left", "above", "above_cover", "inside")),
)

_AMOUNT_CLASSES = tuple(AMOUNT_CUES)
AMOUNT_NAMES: tuple[str, ...] = (
    *(f"left_{c}" for c in _AMOUNT_CLASSES),
    *(f"above_{c}" for c in _AMOUNT_CLASSES),
    *(f"header_{c}" for c in _AMOUNT_CLASSES),
    *(f"next_{c}" for c in _AMOUNT_CLASSES),
    *(f"previous_{c}" for c in _AMOUNT_CLASSES),
    "bare_row",
    "label_score",
    "label_cover",
    "label_exact",
    "label_above",
    "label_header",
    "decimals_2",
    "decimals_0",
    "currency",
    "negative",
    "zero",
    "max",
    "max_uncash",
    "log_value",
    "times_2",
    "times_3",
    "times_4",
    "y",
    "last_third",
    "height",
    "tall",
    "last_in_row",
    "only_in_row",
    "many_in_row",
    "cash_less_change",
    "sub_plus_tax",
    "plus_rounding",
    "sum_of_above",
    "equals_cash",
    "change_zero",
    "total_rows",
    "last_total",
    "first_total",
    "total_plain",
    "total_excluding",
    "total_discount",
    "total_quantity",
    "total_tax",
    "total_including",
    "total_rounding",
    "after_cash",
    "rows_to_cash",
    "confidence",
    "repaired",
)

_DATE_CLASSES = tuple(DATE_CUES)
DATE_NAMES: tuple[str, ...] = (
    *(f"left_{c}" for c in _DATE_CLASSES),
    *(f"above_{c}" for c in _DATE_CLASSES),
    *(f"right_{c}" for c in _DATE_CLASSES),
    "label_score",
    "label_cover",
    "label_above",
    "time_follows",
    "time_in_row",
    "y",
    "top_third",
    "bottom_third",
    "first",
    "last",
    "only",
    "times_2",
    "times_3",
    "latest",
    "earliest",
    "year_near",
    "repaired",
    "two_digit_year",
    "compact",
    "tall",
    "left_letters",
    "range",
    "confidence",
)


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """Rows of candidates: `values` is float32 `(n_candidates, len(names))`."""

    names: tuple[str, ...]
    values: np.ndarray


def _place_table(facts: DocumentFacts) -> np.ndarray:
    return facts.once("place", lambda: place_features(facts.layout))


class _LineTable:
    """Feature rows of pieces, computed once per distinct text and run."""

    def __init__(self, facts: DocumentFacts) -> None:
        self.place = _place_table(facts)
        self.rows: list[np.ndarray] = [np.zeros(len(_LINE_NAMES), dtype=np.float32)]
        self.index: dict[tuple[int, str], int] = {}

    def row(self, run: Run, text: str) -> int:
        key = (run.index, text)
        if key not in self.index:
            self.index[key] = len(self.rows)
            self.rows.append(np.concatenate([text_features(text), self.place[run.index]]))
        return self.index[key]


def block_features(
    facts: DocumentFacts, candidates: Sequence[Candidate], terms: FieldTerms
) -> FeatureTable:
    """Features of names and addresses: their lines, the lines around, and how they were trimmed."""
    table = _LineTable(facts)
    n = len(candidates)
    firsts, lasts = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
    befores, afters = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
    members: list[list[int]] = []
    extra = np.zeros((n, len(BLOCK_NAMES) - 5 * len(_LINE_NAMES)), dtype=np.float32)
    times = Counter(c.key for c in candidates if len(c.pieces) == 1)
    for i, candidate in enumerate(candidates):
        rows = [table.row(p.run, p.text) for p in candidate.pieces]
        members.append(rows)
        firsts[i], lasts[i] = rows[0], rows[-1]
        above = facts.layout.above(candidate.pieces[0].run)
        below = facts.layout.below(candidate.pieces[-1].run)
        befores[i] = 0 if above is None else table.row(above, above.text)
        afters[i] = 0 if below is None else table.row(below, below.text)
        extra[i] = _block_extra(facts, candidate, terms, times)
    lines = np.stack(table.rows)
    sums = np.stack([lines[rows].sum(axis=0) for rows in members]) if n else lines[:0]
    values = np.concatenate(
        [sums, lines[firsts], lines[lasts], lines[befores], lines[afters], extra], axis=1
    )
    return FeatureTable(BLOCK_NAMES, values)


def _block_extra(
    facts: DocumentFacts, candidate: Candidate, terms: FieldTerms, times: Counter[str]
) -> list[float]:
    first, last = candidate.pieces[0], candidate.pieces[-1]
    trims = {first.trim, last.trim}
    n = len(candidate.pieces)
    full = text_features(last.run.text)
    inside = match_label(first.text, terms)
    left = _label_left(facts, first, terms)
    above = _label_above(facts, first.run, terms)
    inline = match_label(first.run.text[: first.start], terms) if first.start else NO_LABEL
    return [
        facts.layout.above(first.run) is None,
        facts.layout.below(last.run) is None,
        *(n == k for k in range(1, _MAX_RUNS + 1)),
        *(t in trims for t in _TRIMS),
        last.trim == "" and full[TEXT_NAMES.index("code_in_parentheses")] > 0,
        last.trim == "" and full[TEXT_NAMES.index("legal_inside")] > 0,
        math.log1p(len(candidate.key)) / 4,
        times[candidate.key] > 1,
        len(candidate.key) >= _MIN_ECHO and _glued_text(facts).count(candidate.key) > 1,
        _domain_match(facts, candidate.key),
        inline.score,
        left.score,
        above.score,
        above.score * above.coverage,
        inside.score * inside.coverage,
    ]


def _glued_text(facts: DocumentFacts) -> str:
    return facts.once("glued", lambda: " ".join(fold_alnum(r.text) for r in facts.layout.runs))


def _domains(facts: DocumentFacts) -> list[str]:
    names = (m.group(1) or m.group(2) for r in facts.layout.runs for m in _DOMAIN.finditer(r.text))
    return [key for key in map(fold_alnum, names) if len(key) >= _MIN_ECHO]


def _domain_match(facts: DocumentFacts, key: str) -> float:
    """How well the name fits a web or mail address printed in the document, 0..1."""
    domains = facts.once("domains", lambda: _domains(facts))
    if not domains or len(key) < _MIN_ECHO:
        return 0.0
    best = max(fuzz.partial_ratio(domain, key) for domain in domains)
    return max(0.0, (best - 70) / 30)


def _label_left(facts: DocumentFacts, piece: Piece, terms: FieldTerms) -> LabelHit:
    other = facts.layout.left_of(piece.run)
    return NO_LABEL if other is None else match_label(other.text, terms)


def _label_above(facts: DocumentFacts, run: Run, terms: FieldTerms) -> LabelHit:
    other = facts.layout.above(run)
    return NO_LABEL if other is None else match_label(other.text, terms)


def amount_features(
    facts: DocumentFacts, candidates: Sequence[Candidate], terms: FieldTerms
) -> FeatureTable:
    """Features of amounts: what the words around say, repetition, size and arithmetic."""
    placed = [c.placed for c in candidates if isinstance(c.placed, PlacedAmount)]
    book = _AmountBook(facts, placed)
    rows = [_amount_row(facts, book, one, terms) for one in placed]
    values = np.asarray(rows, dtype=np.float32).reshape(len(rows), len(AMOUNT_NAMES))
    return FeatureTable(AMOUNT_NAMES, values)


class _AmountBook:
    """All amounts of a document and the sums that hold between them, in cents."""

    def __init__(self, facts: DocumentFacts, placed: Sequence[PlacedAmount]) -> None:
        money = [p for p in placed if p.match.n_decimals == 2 or p.match.currency]
        self.times = Counter(p.cents for p in money)
        self.cash = {p.cents for p in money if "cash" in p.left}
        self.change = {p.cents for p in money if "change" in p.left}
        self.tax = {p.cents for p in money if "tax" in p.left and "total" not in p.left}
        self.tax |= {p.cents for p in money if "tax" in p.left and "including" not in p.left}
        self.service = {p.cents for p in money if "service" in p.left}
        self.rounding = {p.cents for p in money if "rounding" in p.left} - {0}
        self.before_tax = {p.cents for p in money if p.left & {"subtotal", "excluding"}}
        self.top = max((p.cents for p in money), default=0)
        quiet = [p.cents for p in money if not p.left & {"cash", "change"}]
        self.top_uncash = max(quiet, default=0)
        self.from_cash = {c - d for c in self.cash for d in self.change}
        self.from_tax = {b + t for b in self.before_tax for t in self.tax if t > 0}
        self.from_tax |= {
            b + t + s for b in self.before_tax for t in self.tax for s in self.service if s > 0
        }
        totals = [p for p in placed if "total" in p.left or "total" in p.above]
        self.total_rows = sorted({p.run.row for p in totals})
        self.rounded = {p.cents + r for p in totals for r in self.rounding}
        self.rounded |= {p.cents - r for p in totals for r in self.rounding}
        cash_rows = [p.run.row for p in money if "cash" in p.left]
        self.cash_row = min(cash_rows, default=None)
        self.sums = self._running_sums(money)
        self.classes_of_row: dict[int, frozenset[str]] = {}
        self.facts = facts

    @staticmethod
    def _running_sums(money: Sequence[PlacedAmount]) -> set[int]:
        """Sums of runs of unlabelled last-in-row amounts: the items of a bill."""
        items = [p.cents for p in money if p.is_last_in_row and not p.left - {"price", "quantity"}]
        sums: set[int] = set()
        for start in range(min(3, len(items))):
            total = 0
            for number, cents in enumerate(items[start:]):
                total += cents
                if number:
                    sums.add(total)
        return sums

    def row_classes(self, row: int) -> frozenset[str]:
        if row not in self.classes_of_row:
            rows = self.facts.layout.rows
            text = " ".join(r.text for r in rows[row]) if 0 <= row < len(rows) else ""
            self.classes_of_row[row] = classes_of(text, AMOUNT_CUES)
        return self.classes_of_row[row]


def _amount_row(
    facts: DocumentFacts, book: _AmountBook, placed: PlacedAmount, terms: FieldTerms
) -> list[float]:
    match, run = placed.match, placed.run
    label = match_label(placed.left_text, terms)
    bare = not any(c.isalpha() for c in placed.left_text)
    over = _label_above(facts, run, terms) if bare else NO_LABEL
    header = NO_LABEL
    for other in facts.layout.nearest_above(run, 8):
        if any(c.isalpha() for c in other.text):
            header = match_label(other.text, terms)
            break
    extent, unit = facts.layout.extent[run.page], facts.layout.line_height[run.page]
    y = (run.box.center[1] - extent.y0) / max(extent.height, 1e-6)
    classes = placed.left if not bare else placed.above
    total = "total" in classes
    rows = book.total_rows
    after, before = book.row_classes(run.row + 1), book.row_classes(run.row - 1)
    height = placed.line.reading.height / unit
    cents = placed.cents
    return [
        *(c in placed.left for c in _AMOUNT_CLASSES),
        *(bare and c in placed.above for c in _AMOUNT_CLASSES),
        *(c in placed.header for c in _AMOUNT_CLASSES),
        *(c in after for c in _AMOUNT_CLASSES),
        *(c in before for c in _AMOUNT_CLASSES),
        bare,
        label.score,
        label.score * label.coverage,
        label.score * label.coverage > 0.9,
        over.score,
        header.score * header.coverage,
        match.n_decimals == 2,
        match.n_decimals == 0,
        match.currency is not None,
        match.value < 0,
        match.value == 0,
        cents == book.top and cents > 0,
        cents == book.top_uncash and cents > 0,
        math.log1p(abs(match.value)) / 8,
        book.times[cents] >= 2,
        book.times[cents] >= 3,
        book.times[cents] >= 4,
        y,
        y > 0.67,
        min(height, 3.0) / 3,
        height > 1.25,
        placed.is_last_in_row,
        placed.n_in_row == 1,
        placed.n_in_row > 2,
        cents in book.from_cash and cents > 0,
        cents in book.from_tax and cents > 0,
        cents in book.rounded,
        cents in book.sums,
        cents in book.cash and cents > 0,
        0 in book.change,
        min(len(rows), 5) / 5,
        total and bool(rows) and run.row == rows[-1],
        total and bool(rows) and run.row == rows[0],
        total and not classes - {"total", "grand", "cash"},
        total and "excluding" in classes,
        total and "discount" in classes,
        total and "quantity" in classes,
        total and "tax" in classes,
        total and "including" in classes,
        total and "rounding" in classes,
        book.cash_row is not None and run.row > book.cash_row,
        0.0 if book.cash_row is None else max(-1.0, 1 - abs(book.cash_row - run.row) / 5),
        placed.line.confidence,
        "ocr_repaired" in match.reasons,
    ]


def date_features(
    facts: DocumentFacts, candidates: Sequence[Candidate], terms: FieldTerms
) -> FeatureTable:
    """Features of dates: words around, a time beside, position, repetition and order."""
    placed = [c.placed for c in candidates if isinstance(c.placed, PlacedDate)]
    days = [p.match.iso for p in placed]
    times = Counter(days)
    rows = [_date_row(facts, number, p, days, times, terms) for number, p in enumerate(placed)]
    values = np.asarray(rows, dtype=np.float32).reshape(len(rows), len(DATE_NAMES))
    return FeatureTable(DATE_NAMES, values)


def _date_row(
    facts: DocumentFacts,
    number: int,
    placed: PlacedDate,
    days: Sequence[str],
    times: Counter[str],
    terms: FieldTerms,
) -> list[float]:
    run, match = placed.run, placed.match
    line = placed.lines[-1]
    right = line.text[match.end :] if len(placed.lines) == 1 else ""
    following = facts.layout.right_of(run)
    row_right = right + " " + ("" if following is None else following.text)
    over = facts.layout.above(run)
    over_text = "" if over is None else over.text
    left = classes_of(placed.left_text, DATE_CUES)
    above = classes_of(over_text, DATE_CUES)
    label = match_label(placed.left_text, terms)
    extent, unit = facts.layout.extent[run.page], facts.layout.line_height[run.page]
    y = (run.box.center[1] - extent.y0) / max(extent.height, 1e-6)
    near = sorted(days)[len(days) // 2][:4]
    return [
        *(c in left for c in _DATE_CLASSES),
        *(c in above for c in _DATE_CLASSES),
        *(c in classes_of(row_right, DATE_CUES) for c in _DATE_CLASSES),
        label.score,
        label.score * label.coverage,
        match_label(over_text, terms).score,
        _has_time(right[:12]),
        _has_time(row_right) or _has_time(placed.left_text),
        y,
        y < 0.33,
        y > 0.67,
        number == 0,
        number == len(days) - 1,
        len(set(days)) == 1,
        times[match.iso] >= 2,
        times[match.iso] >= 3,
        match.iso == max(days),
        match.iso == min(days),
        match.iso[:4] == near and "2000" <= match.iso[:4] <= "2060",
        "ocr_repaired" in match.reasons,
        "two_digit_year" in match.reasons,
        "compact_date" in match.reasons,
        line.reading.height > 1.25 * unit,
        min(sum(c.isalpha() for c in placed.left_text), 30) / 30,
        "-" in right[:3] and any(c.isdigit() for c in right[:12]),
        line.confidence,
    ]


def _has_time(text: str) -> bool:
    at = text.find(":")
    return 0 < at < len(text) - 2 and text[at - 1].isdigit() and text[at + 1 : at + 3].isdigit()
