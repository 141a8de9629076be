"""Calendar dates in printed text: where they stand and which day they mean.

Dates are read with the reading that the digits force; where day and month could be swapped the
order comes from the caller (`day_first`), and without one day-first is taken and flagged.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass

from edge_runtime.extract.confusions import DIGIT_REPAIR, OCR_REPAIRED, repair_digits
from edge_runtime.extract.month_names import month_number

AMBIGUOUS_DATE = "ambiguous_date"
UNUSUAL_ORDER = "date_order_contradicts_locale"
TWO_DIGIT_YEAR = "two_digit_year"
COMPACT_DATE = "compact_date"

_FIRST_YEAR, _LAST_YEAR = 1900, 2099
_PIVOT = 69  # POSIX strptime: 69..99 are 19xx

_D = r"[0-9OoQDIl|SsBZz]"
_NUMERIC = re.compile(
    rf"(?<![0-9A-Za-z/.,])(?P<a>{_D}{{4}}|{_D}{{1,2}})(?P<s1>\s?[/.\-\u2013,]\s?)(?P<b>{_D}{{1,2}})"
    rf"(?P<s2>\s?[/.\-\u2013,]\s?)"
    rf"(?P<c>{_D}{{4}}(?!{_D}{{3}}|:[0-9]{{2}})|{_D}{{2}}(?!{_D}{{3}})|{_D}(?![0-9A-Za-z]))"
    r"(?=[0-9]{1,2}:[0-9]{2}|T[0-9]{2}|(?![0-9/]|[.,][0-9]))"
)
_NAME = r"[^\W\d_]{3,11}"
_GAP = r"[\s.,/\-\u2013']{0,3}"
_DAY_MONTH_YEAR = re.compile(
    r"(?<![0-9A-Za-z/.,])(?P<d>[0-9OoIl|]{1,2})(?:st|nd|rd|th|er|e|º|°|ª)?"
    rf"{_GAP}(?:de\s+|of\s+)?(?P<m>{_NAME})\.?{_GAP}(?:de\s+|del\s+|of\s+)?"
    r"(?P<y>[0-9OoIl|]{4}|[0-9]{2})(?![0-9OoIl|]{1,2}(?!:)|[/.,\-][0-9]|:[0-9])",
    re.IGNORECASE,
)
_MONTH_DAY_YEAR = re.compile(
    rf"(?<![^\W_])(?P<m>{_NAME})\.?[\s.\-/]{{0,2}}(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)?"
    r"(?:\s?[,.\-/']\s?|\s)(?P<y>[0-9]{4}|[0-9]{2})(?![0-9]|[/.,\-][0-9]|:[0-9])",
    re.IGNORECASE,
)
_YEAR_MONTH_DAY = re.compile(
    rf"(?<![0-9A-Za-z])(?P<y>[0-9]{{4}})[\s./\-]{{1,2}}(?P<m>{_NAME})\.?[\s./\-]{{1,2}}"
    r"(?P<d>[0-9]{1,2})(?![0-9])",
    re.IGNORECASE,
)
_IDEOGRAPHIC = re.compile(
    r"(?P<y>[0-9]{4})\s?[年년]\s?(?P<m>[0-9]{1,2})\s?[月월]\s?(?P<d>[0-9]{1,2})\s?[日일号]"
)
_COMPACT = re.compile(
    r"(?<![0-9A-Za-z.,/\-])(?P<y>(?:19|20)[0-9]{2})(?P<m>[01][0-9])(?P<d>[0-3][0-9])"
    r"(?![0-9A-Za-z.,\-]|/(?![0-9]{4,6}))"
)


@dataclass(frozen=True, slots=True)
class DateMatch:
    """A date at `text[start:end]`; `iso` is `YYYY-MM-DD`.

    `order` tells what the digits themselves prove: `dmy`, `mdy` or None when either would do or
    the order is not in question.
    """

    start: int
    end: int
    text: str
    iso: str
    reasons: tuple[str, ...] = ()
    order: str | None = None


def _full_year(year: int, n_digits: int) -> int:
    if n_digits > 2:
        return year
    return year + (2000 if year < _PIVOT else 1900)


def _iso(year: int, month: int, day: int) -> str | None:
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    try:
        return dt.date(year, month, day).isoformat()
    except ValueError:
        return None


def _order_day_month(
    first: int, second: int, *, certain: bool, day_first: bool | None
) -> tuple[int, int, list[str], str | None] | None:
    """Day, month, reasons and proven order of two numbers, or None when neither order is a date."""
    if first > 12 and second > 12:
        return None
    if first > 12 or second > 12:
        order = "dmy" if first > 12 else "mdy"
        day, month = (first, second) if first > 12 else (second, first)
        if certain and order == "mdy":
            return None
        contradicts = day_first is not None and day_first != (order == "dmy")
        return day, month, [UNUSUAL_ORDER] if contradicts else [], order
    if certain or day_first is not None or first == second:
        if not certain and day_first is False:
            return second, first, [], None
        return first, second, [], None
    return first, second, [AMBIGUOUS_DATE], None


def _is_part_of_longer(match: re.Match[str], marks: list[str]) -> bool:
    """Whether a dash ties the match to more digits: a phone number or a code, not a range."""
    if "-" not in marks:
        return False
    text, (start, end) = match.string, match.span()
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    return (before[-1:] == "-" and before[:1].isalnum()) or (
        after[:1] == "-" and after[1:].isalnum()
    )


def _separators_fit(marks: list[str], a: str, b: str, c: str) -> bool:
    """Whether two separators make a date; different or comma-like ones need full width."""
    if marks[0] != marks[1]:
        return "," not in marks and 4 in (len(a), len(c))
    return marks[0] != "," or (len(a), len(b), len(c)) == (2, 2, 4)


def _from_numeric(match: re.Match[str], day_first: bool | None) -> DateMatch | None:
    printed = match.group("a", "b", "c")
    if repair_digits("".join(printed)) is None:
        return None
    a, b, c = (piece.translate(DIGIT_REPAIR) for piece in printed)
    separators = match.group("s1", "s2")
    marks = [s.strip() for s in separators]
    if not _separators_fit(marks, a, b, c) or _is_part_of_longer(match, marks):
        return None
    repaired = (a, b, c) != printed or marks[0] != marks[1] or "," in marks
    reasons: list[str] = [OCR_REPAIRED] if repaired else []
    order = None
    if len(a) == 4 and len(c) <= 2:
        year, month, day = int(a), int(b), int(c)
    elif len(a) <= 2 and len(c) in (2, 4):
        if len(c) == 2 and "." in marks and any(" " in s for s in separators):
            return None  # '12. 5. 18' is far more often a row of figures
        certain = marks == [".", "."]
        placed = _order_day_month(int(a), int(b), certain=certain, day_first=day_first)
        if placed is None:
            return None
        day, month, more, order = placed
        year = _full_year(int(c), len(c))
        reasons += more
        if len(c) == 2:
            reasons.append(TWO_DIGIT_YEAR)
    else:
        return None
    iso = _iso(year, month, day)
    if iso is None:
        return None
    return DateMatch(*match.span(), match.group(0), iso, tuple(reasons), order)


def _from_named(match: re.Match[str]) -> DateMatch | None:
    word = match.group("m")
    month = int(word) if word.isdigit() else month_number(word)
    day, year = repair_digits(match.group("d")), repair_digits(match.group("y"))
    if month is None or not day or not year:
        return None
    iso = _iso(_full_year(int(year), len(year)), month, int(day))
    if iso is None:
        return None
    reasons = [OCR_REPAIRED] if (day, year) != match.group("d", "y") else []
    if len(year) == 2:
        reasons.append(TWO_DIGIT_YEAR)
    return DateMatch(match.start(), match.end(), match.group(0), iso, tuple(reasons))


def find_dates(text: str, *, day_first: bool | None = None) -> list[DateMatch]:
    """All dates of `text` from left to right, without overlaps.

    Args:
        text: One line or a whole text.
        day_first: Order of an ambiguous numeric date; None flags it.
    """
    if sum(c.isdigit() for c in text) < 3:
        return []
    found: list[DateMatch | None] = [_from_numeric(m, day_first) for m in _NUMERIC.finditer(text)]
    if any(c.isalpha() for c in text):
        for pattern in (_DAY_MONTH_YEAR, _MONTH_DAY_YEAR, _YEAR_MONTH_DAY, _IDEOGRAPHIC):
            found += [_from_named(m) for m in pattern.finditer(text)]
    for match in _COMPACT.finditer(text):
        iso = _iso(*(int(match.group(g)) for g in "ymd"))
        if iso:
            found.append(DateMatch(*match.span(), match.group(0), iso, (COMPACT_DATE,)))
    chosen: list[DateMatch] = []
    for date in sorted((d for d in found if d), key=lambda d: (d.start, -d.end)):
        if not chosen or date.start >= chosen[-1].end:
            chosen.append(date)
    return chosen


def infer_day_first(texts: Iterable[str]) -> bool | None:
    """What the dates of a document prove about the order of day and month.

    True or False when every date that decides agrees, None when none decides or they disagree.
    """
    proven = {date.order for text in texts for date in find_dates(text)} - {None}
    return proven == {"dmy"} if len(proven) == 1 else None
