"""Which number a run of digits and separators stands for, whatever the country.

The value itself decides where it can (`1.234,56`, `1'234.50`, `27,80`); where it cannot
(`1,234`) the decimal mark of the locale or of the rest of the document decides, and without one
the more usual reading is taken and flagged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

AMBIGUOUS_THOUSANDS = "ambiguous_thousands"
ODD_GROUPING = "odd_grouping"

_MOST_DIGITS = 18
"""More than any amount has, and than a float can tell apart."""

_APOSTROPHES = "'\u2019\u02bc`\u00b4"
_SPACES = " \u00a0\u202f\u2009"
_DASH_CENTS = re.compile(r"[.,]\s?[\-\u2013\u2014]{1,2}$")


@dataclass(frozen=True, slots=True)
class ParsedNumber:
    """`digits` is a plain decimal literal such as `1234.50`.

    `n_decimals` counts digits after the decimal mark, `mark` is the decimal mark that the text
    itself proves (`.` or `,`) or None.
    """

    digits: str
    n_decimals: int
    mark: str | None
    reasons: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The number."""
        return float(self.digits)


def _is_grouped(groups: list[str]) -> bool:
    """Whether digit groups are those of thousands: 1-3 then threes, or the Indian 2-2-3."""
    if not 1 <= len(groups[0]) <= 3 or len(groups[-1]) != 3:
        return False
    middle = groups[1:-1]
    if all(len(g) == 3 for g in middle):
        return True
    return len(groups[0]) <= 2 and all(len(g) == 2 for g in middle)


def _split_by_spaces(body: str) -> str | None:
    """`body` without spaces, when every space separates thousands; None when one does not."""
    pieces = re.split(rf"[{_SPACES}]+", body)
    if len(pieces) == 1:
        return body
    head = [*pieces[:-1], re.split(r"[.,]", pieces[-1])[0]]
    if all(p.isdigit() for p in head) and _is_grouped(head):
        return "".join(pieces)
    return None


def _with_decimal(whole: str, decimals: str, mark: str | None, *reasons: str) -> ParsedNumber:
    whole = whole or "0"
    digits = f"{whole}.{decimals}" if decimals else whole
    return ParsedNumber(digits, len(decimals), mark, reasons)


def _one_separator(
    mark: str, whole: str, tail: str, decimal_mark: str | None, *, is_money: bool
) -> ParsedNumber:
    """`1,234`: three digits after a single separator may be thousands or decimals."""
    if len(tail) != 3 or not 1 <= len(whole) <= 3 or whole.startswith("0"):
        return _with_decimal(whole, tail, mark if tail else None)
    if decimal_mark is not None and decimal_mark != mark:
        return ParsedNumber(whole + tail, 0, None)
    if decimal_mark == mark and not is_money:
        return _with_decimal(whole, tail, mark)
    if mark == "." and not is_money:
        return _with_decimal(whole, tail, None, AMBIGUOUS_THOUSANDS)
    return ParsedNumber(whole + tail, 0, None, (AMBIGUOUS_THOUSANDS,))


def _same_separator(mark: str, groups: list[str]) -> ParsedNumber | None:
    """`1.234.567`, or `1.234.56` where a mark was misread."""
    if _is_grouped(groups):
        return ParsedNumber("".join(groups), 0, "," if mark == "." else ".")
    if len(groups[-1]) in (1, 2) and (len(groups) == 2 or _is_grouped(groups[:-1])):
        return _with_decimal("".join(groups[:-1]), groups[-1], None, ODD_GROUPING)
    return None


def parse_number(
    body: str, *, decimal_mark: str | None = None, is_money: bool = True
) -> ParsedNumber | None:
    """The number that `body` prints, or None when it prints none.

    Args:
        body: Digits with `.`, `,`, apostrophes and spaces only; no sign, no currency.
        decimal_mark: `.` or `,` where the locale or the document says so.
        is_money: Money seldom has three decimals, other numbers do.
    """
    text = _DASH_CENTS.sub("", body.strip())
    if sum(c.isdigit() for c in text) > _MOST_DIGITS:
        return None
    joined = _split_by_spaces(text)
    if joined is None:
        return None
    had_spaces = joined != text
    text = re.sub(f"[{_APOSTROPHES}]", "'", joined)
    if not re.fullmatch(r"[0-9.,']*[0-9][0-9.,']*", text):
        return None
    text = text.rstrip(".,'")
    if "'" in text:
        swiss = re.fullmatch(r"([0-9']+)[.,]?([0-9]*)", text)
        if swiss is None or not _is_grouped(swiss[1].split("'")):
            return None
        return _with_decimal(swiss[1].replace("'", ""), swiss[2], None)
    marks = [c for c in text if c in ".,"]
    if not marks:
        return ParsedNumber(text, 0, None)
    if len(set(marks)) == 2:
        return _two_separators(text)
    mark = marks[0]
    groups = text.split(mark)
    if len(groups) > 2:
        return _same_separator(mark, groups)
    if had_spaces:
        return _with_decimal(groups[0], groups[1], mark)
    return _one_separator(mark, groups[0], groups[1], decimal_mark, is_money=is_money)


def _two_separators(text: str) -> ParsedNumber | None:
    """`1.234,56` or `1,234.56`: the last separator is the decimal mark."""
    mark = max(".,", key=text.rfind)
    group_mark = "." if mark == "," else ","
    head, tail = text.rsplit(mark, 1)
    if mark in head:
        return None
    groups = head.split(group_mark)
    if _is_grouped(groups):
        return _with_decimal("".join(groups), tail, mark)
    if all(groups) and len(tail) <= 2:
        return _with_decimal("".join(groups), tail, None, ODD_GROUPING)
    return None
