"""Amounts of money and other numbers in printed text: where they stand and their value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from edge_runtime.extract.confusions import OCR_REPAIRED, repair_digits
from edge_runtime.extract.number_format import ODD_GROUPING, ParsedNumber, parse_number

_SYMBOLS: dict[str, str] = {
    "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₩": "KRW", "₽": "RUB", "₺": "TRY", "฿": "THB",
    "₫": "VND", "₱": "PHP", "₴": "UAH", "₪": "ILS", "US$": "USD", "A$": "AUD", "C$": "CAD",
    "S$": "SGD", "HK$": "HKD", "NZ$": "NZD", "R$": "BRL", "RM": "MYR", "RP": "IDR", "RS": "INR",
    "KR": "SEK", "ZŁ": "PLN", "KČ": "CZK", "FT": "HUF", "FR": "CHF", "EURO": "EUR",
}  # fmt: skip
_CODES = frozenset({
    "USD", "EUR", "GBP", "JPY", "CHF", "AUD", "CAD", "NZD", "SGD", "MYR", "HKD", "CNY",
    "INR", "IDR", "THB", "PHP", "VND", "KRW", "TWD", "SEK", "NOK", "DKK", "PLN", "CZK",
    "HUF", "RON", "BGN", "TRY", "RUB", "UAH", "ILS", "ZAR", "AED", "SAR", "BRL", "MXN",
    "ARS", "CLP", "COP", "PEN",
})  # fmt: skip
_BARE_SYMBOL = "$"  # a dollar, but whose?

_LETTERS = sorted([*_CODES, "RM", "RP", "RS", "KR", "ZŁ", "KČ", "EURO", "FR"], key=len)
_LETTER_CURRENCY = "|".join(reversed(_LETTERS))
_SIGN_CURRENCY = r"(?:US|A|C|S|HK|NZ|R)?\$|[€£¥₹₩₽₺฿₫₱₴₪]"
_MISREAD_DOLLAR = r"(?<![^\W_])S(?=[0-9]+[.,][0-9]{2}(?![0-9]))"
_CURRENCY = rf"(?:(?:(?<![^\W\d_])(?:{_LETTER_CURRENCY})\.?)|{_SIGN_CURRENCY})"
_MINUS = r"[-\u2212\u2013]"
_THIN = "\u00a0\u202f\u2009"
_DIGITISH = "0-9OoIl|SsBQD"
_MISREAD = (
    r"(?=[0-9]*[.,]?[0-9]*[OoIl|SsBQD])"
    rf"[0-9OoIl|][{_DIGITISH}]{{0,5}}[.,][{_DIGITISH}]{{2}}(?![^\W_]|[.,][0-9])"
)
_CLEAN = (
    r"[0-9]+"
    rf"(?:(?:[ ][0-9]{{3}})+,[0-9]{{2}}(?![0-9])|(?:[.,'\u2019{_THIN}][0-9]+)*)"
    r"(?:[ ]?[.,][ ]?[0-9]{2}(?![0-9.,]))?(?:[.,][\-\u2013\u2014]{1,2})?"
)
_BODY = rf"{_MISREAD}|{_CLEAN}|[.,][0-9]+"
_AMOUNT = re.compile(
    rf"(?P<open>\(\s?)?(?:(?P<sign1>{_MINUS})\s?)?"
    rf"(?:(?P<cur1>{_CURRENCY}|{_MISREAD_DOLLAR})\s?[:.]?\s?)?"
    rf"(?:(?P<sign2>{_MINUS})\s?)?(?P<body>{_BODY})"
    rf"(?P<percent>\s?%)?(?:\s?(?P<cur2>{_CURRENCY})(?![^\W_]))?"
    rf"(?P<tail>{_MINUS}(?![\w.])|\s?(?:CR|DR)\b)?(?P<close>\s?\))?",
    re.IGNORECASE,
)
_POINT_CURRENCIES = frozenset({
    "$", "USD", "GBP", "JPY", "AUD", "NZD", "SGD", "HKD", "MYR", "INR", "THB", "PHP", "KRW", "CNY",
})  # fmt: skip
_COMMA_CURRENCIES = frozenset({"IDR", "VND", "BRL", "SEK", "NOK", "DKK", "PLN", "CZK", "TRY"})
_MAX_PLAIN_DIGITS = 9
"""A longer run of digits without separators is an identifier, not a number of things."""


@dataclass(frozen=True, slots=True)
class AmountMatch:
    """A number at `text[start:end]`, its currency and sign included.

    `currency` is an ISO 4217 code, or `$` when the dollar could be any. `mark` is the decimal
    mark that the text itself proves.
    """

    start: int
    end: int
    text: str
    value: float
    n_decimals: int
    currency: str | None = None
    is_percent: bool = False
    mark: str | None = None
    reasons: tuple[str, ...] = ()


def currency_code(printed: str) -> str | None:
    """The ISO 4217 code behind a printed symbol or code, `$` for a bare dollar sign."""
    key = printed.strip().rstrip(".").upper()
    if key == _BARE_SYMBOL:
        return _BARE_SYMBOL
    return _SYMBOLS.get(key) or (key if key in _CODES else None)


def parse_body(
    body: str, *, decimal_mark: str | None = None, is_money: bool = True
) -> tuple[ParsedNumber, bool] | None:
    """The number of a run of digit-like characters, and whether it had to be repaired."""
    fixed = repair_digits(body)
    if fixed is None:
        return None
    tight = re.sub(r"\s?([.,])\s?(?=[0-9])", r"\1", fixed)
    parsed = parse_number(tight, decimal_mark=decimal_mark, is_money=is_money)
    if parsed is None:
        return None
    return parsed, tight != body


def _mark_of(currency: str | None) -> str | None:
    """The decimal mark of the countries that use a currency, None where they differ (euro)."""
    if currency in _POINT_CURRENCIES:
        return "."
    return "," if currency in _COMMA_CURRENCIES else None


def _has_foreign_neighbour(text: str, start: int) -> bool:
    """Whether the run belongs to something longer: a code, a time, a phone number, a version."""
    before, before2 = text[start - 1 : start], text[start - 2 : start - 1] if start > 1 else ""
    if before.isalnum() or before == "#":
        return True
    if before in ("-", "/", ".", ",", ":") and before2.isdigit():
        return True
    return before in ("-", "/") and before2.isalpha()


def _runs_on(text: str, end: int, body: str) -> bool:
    """Whether what follows the run continues it."""
    after, after2 = text[end : end + 1], text[end + 1 : end + 2]
    if after.isdigit() or (after in ("/", ":", "-") and after2.isdigit()):
        return True
    return body.isdigit() and after.isalpha() and after2.isalnum()


def _is_negative(match: re.Match[str], number: ParsedNumber, currency: str | None) -> bool:
    if number.digits.strip("0.") == "":
        return False
    if match.group("sign1") or match.group("sign2"):
        return True
    tail = (match.group("tail") or "").strip().upper()
    if tail in {"-", "\u2212", "\u2013", "CR"}:
        return True
    in_parentheses = match.group("open") and match.group("close")
    is_money = number.n_decimals == 2 or currency is not None
    return bool(in_parentheses and is_money and not match.group("percent"))


def _outer_span(match: re.Match[str]) -> tuple[int, int]:
    """The span without a parenthesis whose partner is missing."""
    start, end = match.span()
    if match.group("open") and not match.group("close"):
        start = match.end("open")
    if match.group("close") and not match.group("open"):
        end = match.start("close")
    return start, end


def _from_match(
    match: re.Match[str], decimal_mark: str | None, *, is_money: bool
) -> AmountMatch | None:
    text, body = match.string, match.group("body")
    currency_text = match.group("cur1") or match.group("cur2")
    body_start, body_end = match.span("body")
    if match.group("cur1") is None and _has_foreign_neighbour(text, body_start):
        return None
    if match.group("cur2") is None and _runs_on(text, body_end, body):
        return None
    is_misread_dollar = (currency_text or "").upper() == "S"
    currency = currency_code("$" if is_misread_dollar else currency_text or "")
    mark = decimal_mark or _mark_of(currency)
    parsed = parse_body(body, decimal_mark=mark, is_money=is_money)
    if parsed is None:
        return None
    number, repaired = parsed
    if currency_text is None and body.isdigit() and len(body) > _MAX_PLAIN_DIGITS:
        return None
    start, end = _outer_span(match)
    return AmountMatch(
        start=start,
        end=end,
        text=text[start:end],
        value=-number.value if _is_negative(match, number, currency_text) else number.value,
        n_decimals=number.n_decimals,
        currency=currency,
        is_percent=match.group("percent") is not None,
        mark=number.mark,
        reasons=(*((OCR_REPAIRED,) if repaired or is_misread_dollar else ()), *number.reasons),
    )


def find_amounts(
    text: str, *, decimal_mark: str | None = None, is_money: bool = True
) -> list[AmountMatch]:
    """All numbers of `text` that may be amounts, left to right.

    Whole numbers and percentages are included (see `n_decimals`, `is_percent`); times, phone
    numbers and long identifiers are not. Dates are the caller's to exclude.

    Args:
        text: One printed line.
        decimal_mark: `.` or `,` where the locale or the document says so (`infer_decimal_mark`).
        is_money: See `number_format.parse_number`.
    """
    if not any(c.isdigit() for c in text):
        return []
    found: list[AmountMatch] = []
    position = 0
    while (match := _AMOUNT.search(text, position)) is not None:
        amount = _from_match(match, decimal_mark, is_money=is_money)
        if amount is not None:
            found.append(amount)
        position = max(match.end(), match.start() + 1)
    return found


def infer_decimal_mark(texts: Iterable[str]) -> str | None:
    """The decimal mark that a document's own numbers prove, or None when they disagree or are few.

    One mark has to be at least three times as frequent as the other.
    """
    marks = Counter(
        amount.mark
        for text in texts
        for amount in find_amounts(text)
        if amount.mark and ODD_GROUPING not in amount.reasons
    )
    if not marks:
        return None
    (best, n_best), *others = marks.most_common()
    n_other = others[0][1] if others else 0
    return best if n_best >= 3 * n_other and n_best else None
