"""What a field is called, what role that gives it, and where its labels stand in the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from rapidfuzz import fuzz

from edge_runtime.extract.schema import FieldKind, FieldSpec
from edge_runtime.extract.vocabulary import cue_key

_MIN_LABEL_SCORE = 0.82
_EXACT_UP_TO = 4
_MAX_LABEL_WORDS = 7


class FieldRole(StrEnum):
    """Groups of fields that share ranking weights."""

    DATE = "date"
    TOTAL = "total"
    AMOUNT = "amount"
    NUMBER = "number"
    ORGANISATION = "organisation"
    ADDRESS = "address"
    PERSON = "person"
    IDENTIFIER = "identifier"
    CONTACT = "contact"
    CHOICE = "choice"
    STRING = "string"
    TEXT = "text"


_ADDRESS_NAMES = "address addr adresse anschrift direccion indirizzo adres alamat location"
_IDENTIFIER_NAMES = """number no nr num id identifier code reference ref tin ein vat iban account
    serial numero nummer passport licence license registration sku plate"""
_ORGANISATION_NAMES = """company vendor merchant seller supplier store shop issuer organisation
    organization business retailer restaurant employer bank firm firma lieferant verkaufer
    fournisseur proveedor institution payer publisher"""
_PERSON_NAMES = """person firstname lastname surname recipient customer buyer client patient cashier
    employee holder attention contact author signatory member guest applicant payee to"""
_THING_NAMES = "product item file model brand"
_OTHER_PARTY = re.compile(r"\b(buyer|customer|client|recipient|ship|bill|sold|payee|receiver)\b")
_TOTAL_WORDS = re.compile(
    r"\b(total|grand total|amount due|total due|balance due|amount payable|gesamt\w*|summe|jumlah|"
    r"totale|totaal|net total|amount|sum)\b"
)
_PART_OF_TOTAL = re.compile(
    r"\b(sub|subtotal|tax|vat|gst|net|excl\w*|untaxed|before|discount|change|cash|paid|rounding|"
    r"shipping|tip|service|fee|unit|price|line|item|quantity|withheld|deposit|income|allocated)\b"
)

_ROLE_LABELS: dict[FieldRole, tuple[str, ...]] = {
    FieldRole.DATE: ("date", "dated", "datum", "fecha", "tarikh", "data"),
    FieldRole.TOTAL: ("total", "grand total", "total amount", "amount due", "balance due", "nett"),
    FieldRole.ADDRESS: ("address", "addr", "anschrift", "alamat"),
}


@dataclass(frozen=True, slots=True)
class FieldTerms:
    """The words of a field.

    `labels` are phrases that may be printed beside the value, as `cue_key`s, the schema's own
    first; `n_own` of them come from the schema, the others from the role.
    """

    role: FieldRole
    labels: tuple[str, ...]
    n_own: int
    is_other_party: bool


@dataclass(frozen=True, slots=True)
class LabelHit:
    """A label found in a text.

    `score` 0..1 tells how well it fits, `coverage` which part of the text's letters it takes up,
    `start` and `end` where it stands in the original text, `is_own` that the schema named it.
    """

    score: float
    coverage: float
    start: int
    end: int
    is_own: bool


NO_LABEL = LabelHit(0.0, 0.0, 0, 0, False)


def split_name(name: str) -> str:
    """`invoiceNumber`, `invoice_number`, `seller/name` as lower-case words."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return " ".join(re.split(r"[\W_]+", spaced)).strip().lower()


def _has_word(words: Sequence[str], vocabulary: str) -> bool:
    return not set(words).isdisjoint(vocabulary.split())


def role_of(spec: FieldSpec) -> FieldRole:
    """The role that a field's kind, name and labels give it."""
    if spec.kind is FieldKind.DATE:
        return FieldRole.DATE
    path = split_name(spec.path)
    if spec.kind is FieldKind.AMOUNT or spec.kind is FieldKind.NUMBER:
        own = split_name(spec.name)
        if _TOTAL_WORDS.search(own) and not _PART_OF_TOTAL.search(path):
            return FieldRole.TOTAL
        return FieldRole.AMOUNT if spec.kind is FieldKind.AMOUNT else FieldRole.NUMBER
    if spec.kind is FieldKind.INTEGER:
        return FieldRole.NUMBER
    if spec.kind in (FieldKind.EMAIL, FieldKind.PHONE, FieldKind.URL):
        return FieldRole.CONTACT
    if spec.kind in (FieldKind.ENUM, FieldKind.BOOLEAN):
        return FieldRole.CHOICE
    return _role_of_text(spec, path)


def _role_of_text(spec: FieldSpec, path: str) -> FieldRole:
    own = split_name(spec.name).split()
    words = path.split()
    if _has_word(own, _ADDRESS_NAMES):
        return FieldRole.ADDRESS
    if _has_word(own, _IDENTIFIER_NAMES) and "name" not in own:
        return FieldRole.IDENTIFIER
    if _has_word(words, _ORGANISATION_NAMES):
        return FieldRole.ORGANISATION
    if _has_word(words, _PERSON_NAMES):
        return FieldRole.PERSON
    if "name" in own and not _has_word(own, _THING_NAMES):
        told = f"{' '.join(spec.labels)} {split_name(spec.description)}".lower().split()
        return FieldRole.ORGANISATION if _has_word(told, _ORGANISATION_NAMES) else FieldRole.PERSON
    return FieldRole.TEXT if spec.kind is FieldKind.TEXT else FieldRole.STRING


@lru_cache(maxsize=512)
def _terms(name: str, path: str, labels: tuple[str, ...], role: FieldRole) -> FieldTerms:
    own: list[str] = []
    for label in (*labels, name):
        key = cue_key(split_name(label) if label == name else label).strip(" :.#")
        if key and key not in own and len(key.split()) <= _MAX_LABEL_WORDS:
            own.append(key)
    extra = [key for key in map(cue_key, _ROLE_LABELS.get(role, ())) if key not in own]
    other = bool(_OTHER_PARTY.search(split_name(path)))
    return FieldTerms(role, (*own, *extra), len(own), other)


def terms_of(spec: FieldSpec) -> FieldTerms:
    """Role and label phrases of a field."""
    return _terms(spec.name, spec.path, spec.labels, role_of(spec))


def _boundary(key: str, start: int, end: int) -> bool:
    before = start == 0 or not key[start - 1].isalnum()
    after = end >= len(key) or not key[end].isalnum()
    return before and after


def match_label(text: str, terms: FieldTerms) -> LabelHit:
    """The best place where one of the field's labels stands in `text`."""
    return _match(text, terms.labels, terms.n_own)


@lru_cache(maxsize=20000)
def _match(text: str, labels: tuple[str, ...], n_own: int) -> LabelHit:
    key = cue_key(text)
    n_letters = sum(c.isalpha() for c in key)
    if not n_letters:
        return NO_LABEL
    best = NO_LABEL
    for number, label in enumerate(labels):
        hit = _find(key, label)
        if hit is None:
            continue
        score, start, end = hit
        coverage = min(1.0, sum(c.isalpha() for c in label) / n_letters)
        is_own = number < n_own
        rank = score + 0.3 * coverage + 0.05 * is_own
        if rank > best.score + 0.3 * best.coverage + 0.05 * best.is_own:
            best = LabelHit(score, coverage, start, end, is_own)
    return best


def _find(key: str, label: str) -> tuple[float, int, int] | None:
    at = key.find(label)
    while at >= 0:
        end = at + len(label)
        if _boundary(key, at, end):
            return 1.0, at, end
        if len(label) > _EXACT_UP_TO:
            return 0.9, at, end  # glued words
        at = key.find(label, at + 1)
    if len(label) <= _EXACT_UP_TO:
        return None
    aligned = fuzz.partial_ratio_alignment(label, key, score_cutoff=100 * _MIN_LABEL_SCORE)
    if aligned is None or len(key) < len(label) - 2:
        return None
    score = aligned.score / 100
    penalty = 1.0 if _boundary(key, aligned.dest_start, aligned.dest_end) else 0.92
    return score * penalty * 0.95, aligned.dest_start, aligned.dest_end
