"""Printed text into JSON values, keeping what was printed.

Every function here is pure. A text that cannot be read as the wanted kind gives `value=None` with
a reason; it is never guessed. Reasons are stable identifiers that `review.decide_status` weighs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from edge_runtime.extract import locales
from edge_runtime.extract.amounts import (
    AmountMatch,
    currency_code,
    find_amounts,
    infer_decimal_mark,
)
from edge_runtime.extract.confusions import OCR_REPAIRED, fold, fold_alnum
from edge_runtime.extract.dates import (
    AMBIGUOUS_DATE,
    COMPACT_DATE,
    DateMatch,
    find_dates,
    infer_day_first,
)
from edge_runtime.extract.number_format import (
    AMBIGUOUS_THOUSANDS,
    ODD_GROUPING,
    parse_number,
)
from edge_runtime.extract.schema import FieldKind, FieldSpec

EMPTY = "empty"
NOT_A_DATE = "not_a_date"
NOT_A_NUMBER = "not_a_number"
NOT_AN_INTEGER = "not_an_integer"
NOT_A_BOOLEAN = "not_a_boolean"
NOT_AN_OPTION = "not_an_option"
NOT_AN_EMAIL = "not_an_email"
NOT_A_PHONE = "not_a_phone"
NOT_A_URL = "not_a_url"
FUZZY_OPTION = "fuzzy_option"
SEVERAL_VALUES = "several_values"
PERCENT = "percent"
PATTERN_MISMATCH = "pattern_mismatch"

_MOST_CHARS = 2000
"""Of a text that is searched for a date, a number or a contact; bounds the time of a look."""

_FUZZY_OPTION_SCORE = 82.0
_FUZZY_OPTION_LEAD = 8.0

_TRUE = frozenset({
    "true", "yes", "y", "on", "1", "x", "ja", "oui", "si", "sim", "vrai", "wahr", "vero",
    "verdadero", "checked", "selected", "paid", "☑", "☒", "✓", "✔", "✗", "✘", "[x]", "(x)",
})  # fmt: skip
_FALSE = frozenset({
    "false", "no", "n", "off", "0", "nein", "non", "nee", "nao", "faux", "falsch", "falso",
    "unchecked", "unselected", "unpaid", "☐", "[]", "()",
})  # fmt: skip

_GLUED_DATE = re.compile(r"([0-9]{2})([0-9]{2})((?:19|20)[0-9]{2})")
_TORN_YEAR = re.compile(r"[/.\-]\s?(?:19|20)\s[0-9]{2}$")
_EMAIL = re.compile(
    r"[A-Z0-9._%+\-]+\s?@\s?[A-Z0-9\-]+(?:\s?\.\s?[A-Z0-9\-]+)*\s?\.\s?[A-Z]{2,}", re.IGNORECASE
)
_URL = re.compile(
    r"(?:https?\s?:\s?//\s?|www\s?\.\s?)[^\s<>\"]+"
    r"|(?<![@\w.])(?:[a-z0-9\-]+\.)+[a-z]{2,24}(?:/[^\s<>\"]*)?",
    re.IGNORECASE,
)
_PHONE = re.compile(
    r"\+?[(\d][\d\s().\-/\u2013]{4,}\d(?:\s?(?:x|ext\.?)\s?\d{1,5})?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Normalised:
    """The JSON value of a printed text, None when it has none; `raw` is the text as given."""

    value: Any
    raw: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conventions:
    """How numbers and dates are to be read where the text leaves it open."""

    day_first: bool | None = None
    decimal_mark: str | None = None


def infer_conventions(texts: Sequence[str], *, locale: str | None = None) -> Conventions:
    """What a document's own lines prove, else what the locale says.

    Args:
        texts: The printed lines.
        locale: A language tag such as `de-CH`.
    """
    day_first = infer_day_first(texts)
    mark = infer_decimal_mark(texts)
    return Conventions(
        locales.day_first(locale) if day_first is None else day_first,
        locales.decimal_mark(locale) if mark is None else mark,
    )


def _conventions(
    spec: FieldSpec | None, locale: str | None, given: Conventions | None
) -> Conventions:
    """Field hints first, then the given conventions, then the locale."""
    hints = spec.hints if spec else None
    language = (hints.locale if hints else None) or locale
    day_first = hints.day_first if hints else None
    mark = None
    if hints and hints.locale:
        mark = locales.decimal_mark(hints.locale)
        day_first = locales.day_first(hints.locale) if day_first is None else day_first
    if given is not None:
        day_first = given.day_first if day_first is None else day_first
        mark = given.decimal_mark if mark is None else mark
    return Conventions(
        locales.day_first(language) if day_first is None else day_first,
        locales.decimal_mark(language) if mark is None else mark,
    )


def normalise(
    raw: str,
    kind: FieldKind,
    *,
    spec: FieldSpec | None = None,
    locale: str | None = None,
    conventions: Conventions | None = None,
) -> Normalised:
    """The JSON value that `raw` prints when read as `kind`.

    Args:
        raw: Text as printed; more than the value may be there (`TOTAL RM 12.50`).
        kind: What to read.
        spec: The field, for its options, patterns and hints.
        locale: Language tag, used where the text is open.
        conventions: What the document proved (`infer_conventions`); goes before the locale.
    """
    text = " ".join(raw.split()) if kind is not FieldKind.TEXT else raw.strip()
    if not text:
        return Normalised(None, raw, (EMPTY,))
    reading = _conventions(spec, locale, conventions)
    if kind not in {FieldKind.STRING, FieldKind.TEXT}:
        text = text[:_MOST_CHARS]
    value, reasons = _read(text, kind, spec, reading)
    if value is None and not reasons:
        reasons = [EMPTY]
    if spec and value is not None and spec.hints.patterns and not _matches(spec, text, value):
        reasons = [*reasons, PATTERN_MISMATCH]
    return Normalised(value, raw, tuple(dict.fromkeys(reasons)))


def _matches(spec: FieldSpec, text: str, value: Any) -> bool:
    """Whether the value or the printed text satisfies every pattern, as JSON Schema searches."""
    forms = [text, value] if isinstance(value, str) else [text]
    return all(any(re.search(p, form) for form in forms) for p in spec.hints.patterns)


def _read(
    text: str, kind: FieldKind, spec: FieldSpec | None, reading: Conventions
) -> tuple[Any, list[str]]:
    match kind:
        case FieldKind.STRING:
            return clean_string(text) or None, []
        case FieldKind.TEXT:
            lines = [" ".join(line.split()) for line in text.splitlines()]
            return "\n".join(line for line in lines if line) or None, []
        case FieldKind.DATE:
            return _read_date(text, reading)
        case FieldKind.AMOUNT | FieldKind.NUMBER:
            return _read_number(text, reading, is_money=kind is FieldKind.AMOUNT)
        case FieldKind.INTEGER:
            return _read_integer(text, reading)
        case FieldKind.BOOLEAN:
            return _read_boolean(text)
        case FieldKind.ENUM:
            return _read_option(text, spec.enum if spec else ())
        case FieldKind.EMAIL:
            return _read_email(text)
        case FieldKind.PHONE:
            return _read_phone(text)
        case FieldKind.URL:
            return _read_url(text)


def clean_string(text: str) -> str:
    """`text` on one line, without separators left over from a label or a table rule."""
    return " ".join(text.split()).strip(" \t:;|_*~").lstrip(".,").rstrip(",").strip()


def _read_date(text: str, reading: Conventions) -> tuple[Any, list[str]]:
    dates: list[DateMatch] = []
    if not _TORN_YEAR.search(text):
        dates = find_dates(text, day_first=reading.day_first)
    if not dates:
        dates = _dates_without_spaces(text, reading.day_first)
    if not dates and (glued := _GLUED_DATE.fullmatch(text)):
        dates = find_dates("/".join(glued.groups()), day_first=reading.day_first)
        dates = [replace(d, reasons=(COMPACT_DATE, *d.reasons)) for d in dates]
    if not dates:
        return None, [NOT_A_DATE]
    first = dates[0]
    more = [SEVERAL_VALUES] if len({d.iso for d in dates}) > 1 else []
    return first.iso, [*first.reasons, *more]


def _dates_without_spaces(text: str, day_first: bool | None) -> list[DateMatch]:
    """Dates of a text whose digits were torn apart (`12/03/20 18`, `1 2/03/2018`)."""
    tight = re.sub(r"(?<=[\d/.\-])\s+(?=[\d/.\-])", "", text)
    if tight == text:
        return []
    return [
        DateMatch(0, len(text), text, d.iso, (OCR_REPAIRED, *d.reasons), d.order)
        for d in find_dates(tight, day_first=day_first)
    ]


def _best_amount(amounts: list[AmountMatch]) -> AmountMatch:
    """The one with a currency, else with decimals, else the last: labels come first."""
    ranked = sorted(
        range(len(amounts)),
        key=lambda i: (
            not amounts[i].is_percent,
            amounts[i].currency is not None,
            amounts[i].n_decimals == 2,
            i,
        ),
    )
    return amounts[ranked[-1]]


def _read_number(text: str, reading: Conventions, *, is_money: bool) -> tuple[Any, list[str]]:
    whole = parse_number(text, decimal_mark=reading.decimal_mark, is_money=is_money)
    if whole is not None:
        return whole.value, list(whole.reasons)
    amounts = find_amounts(text, decimal_mark=reading.decimal_mark, is_money=is_money)
    if not amounts:
        return None, [NOT_A_NUMBER]
    best = _best_amount(amounts)
    reasons = list(best.reasons)
    if best.is_percent:
        reasons.append(PERCENT)
    if len({a.value for a in amounts}) > 1:
        reasons.append(SEVERAL_VALUES)
    return best.value, reasons


def _read_integer(text: str, reading: Conventions) -> tuple[Any, list[str]]:
    value, reasons = _read_number(text, reading, is_money=True)
    if value is None:
        return None, [NOT_AN_INTEGER]
    if value != int(value):
        return None, [NOT_AN_INTEGER]
    return int(value), [r for r in reasons if r != AMBIGUOUS_THOUSANDS]


def _read_boolean(text: str) -> tuple[Any, list[str]]:
    key = fold(text).strip(" .:")
    compact = key.replace(" ", "")
    if compact in _TRUE:
        return True, []
    if compact in _FALSE:
        return False, []
    words = set(re.findall(r"\w+|[☑☒☐✓✔✗✘]", key))
    is_true, is_false = bool(words & _TRUE), bool(words & _FALSE)
    if is_true != is_false and len(words) <= 4:
        return is_true, []
    return None, [NOT_A_BOOLEAN]


def _read_option(text: str, options: Sequence[Any]) -> tuple[Any, list[str]]:
    from rapidfuzz import fuzz

    named = [(option, fold_alnum(str(option))) for option in options if option is not None]
    key = fold_alnum(text)
    for option, name in named:
        if key == name and (name or str(option) == text):
            return option, []
    as_currency = currency_code(text)
    for option, _ in named:
        if as_currency is not None and option == as_currency:
            return option, []
    inside = [
        option
        for option, _ in named
        if re.search(rf"(?<!\w){re.escape(fold(str(option)))}(?!\w)", fold(text))
    ]
    if len(inside) == 1:
        return inside[0], []
    scored = sorted(((fuzz.ratio(key, name), i) for i, (_, name) in enumerate(named)), reverse=True)
    if scored and scored[0][0] >= _FUZZY_OPTION_SCORE:
        lead = scored[0][0] - (scored[1][0] if len(scored) > 1 else 0.0)
        if lead >= _FUZZY_OPTION_LEAD:
            return named[scored[0][1]][0], [FUZZY_OPTION]
    return None, [NOT_AN_OPTION]


def _without_spaces(printed: str) -> tuple[str, list[str]]:
    tight = re.sub(r"\s+", "", printed)
    return tight, [OCR_REPAIRED] if tight != printed else []


def _read_email(text: str) -> tuple[Any, list[str]]:
    match = _EMAIL.search(text)
    if match is None:
        return None, [NOT_AN_EMAIL]
    tight, reasons = _without_spaces(match.group(0))
    local, _, domain = tight.rpartition("@")
    return f"{local}@{domain.lower()}", reasons


def _read_url(text: str) -> tuple[Any, list[str]]:
    match = _URL.search(text)
    if match is None:
        return None, [NOT_A_URL]
    tight, reasons = _without_spaces(match.group(0))
    return tight.rstrip(".,;:)"), reasons


def _read_phone(text: str) -> tuple[Any, list[str]]:
    match = _PHONE.search(text)
    if match is None or not 6 <= sum(c.isdigit() for c in match.group(0)) <= 20:
        return None, [NOT_A_PHONE]
    return match.group(0).strip(), []


__all__ = [
    "AMBIGUOUS_DATE",
    "AMBIGUOUS_THOUSANDS",
    "EMPTY",
    "FUZZY_OPTION",
    "OCR_REPAIRED",
    "ODD_GROUPING",
    "PATTERN_MISMATCH",
    "SEVERAL_VALUES",
    "AmountMatch",
    "Conventions",
    "DateMatch",
    "Normalised",
    "clean_string",
    "find_amounts",
    "find_dates",
    "infer_conventions",
    "infer_day_first",
    "infer_decimal_mark",
    "normalise",
]
