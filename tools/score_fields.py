"""When an extracted value counts as right.

Two rules. *Exact*: the text as printed equals the reference, letter by letter. *Normalised*: both
mean the same: dates as calendar days, amounts as decimals, everything else as its letters and
digits without case, spaces and punctuation. The parsers here are deliberately not the ones the
package uses, so that a mistake there cannot cancel out.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from decimal import Decimal, InvalidOperation
from typing import Any

DATE = "date"
AMOUNT = "amount"
TEXT = "text"

_DATE_NAME = re.compile(r"(^|[^a-z])(date|datum|dob)([^a-z]|$)|date$", re.IGNORECASE)
_AMOUNT_NAME = re.compile(
    r"(^|[^a-z])(total|subtotal|amount|tax|price|balance|sum|cash|change)([^a-z]|$)", re.IGNORECASE
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMERIC_DATE = re.compile(r"(?<!\d)(\d{1,4})\s*[/.\-]\s*(\d{1,2})\s*[/.\-]\s*(\d{2,4})(?!\d)")
_NAMED_DATE = re.compile(
    r"(?<!\d)(\d{1,2})[\s/.\-]*([a-z]{3,9})[\s/.,\-']*(\d{4}|\d{2})(?!\d)", re.IGNORECASE
)
_NAMED_DATE_US = re.compile(
    r"([a-z]{3,9})[\s.]*(\d{1,2})(?:st|nd|rd|th)?[\s,]+(\d{4})(?!\d)", re.IGNORECASE
)
_COMPACT_DATE = re.compile(r"(?<!\d)(\d{2})(\d{2})((?:19|20)\d{2})(?!\d)")


def kind_of(name: str, reference: Any) -> str:
    """How to compare a field: by its name, and by whether the reference can be read that way."""
    if _DATE_NAME.search(name) and parse_date(str(reference)) is not None:
        return DATE
    is_number = isinstance(reference, (int, float)) and not isinstance(reference, bool)
    if is_number or (_AMOUNT_NAME.search(name) and parse_amount(str(reference)) is not None):
        return AMOUNT
    return TEXT


def alphanumerics(text: str) -> str:
    """Letters and digits only, compatibility-normalised, without case."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if c.isalnum())


def _day(year: str, month: int, day: int) -> dt.date | None:
    number = int(year)
    if len(year) == 2:
        number += 2000 if number < 70 else 1900
    try:
        return dt.date(number, month, day)
    except ValueError:
        return None


def parse_date(text: str) -> dt.date | None:
    """The first calendar day in `text`; day before month where both readings are possible."""
    if found := _NUMERIC_DATE.search(text):
        first, second, third = found.groups()
        if len(first) == 4:
            return _day(first, int(second), int(third))
        if len(first) <= 2:
            day, month = int(first), int(second)
            if month > 12 >= day:
                day, month = month, day
            return _day(third, month, day)
    for pattern, day_at, month_at in ((_NAMED_DATE, 1, 2), (_NAMED_DATE_US, 2, 1)):
        found = pattern.search(text)
        if found and found.group(month_at)[:3].lower() in _MONTHS:
            month = _MONTHS.index(found.group(month_at)[:3].lower()) + 1
            return _day(found.group(3), month, int(found.group(day_at)))
    if found := _COMPACT_DATE.search(text):
        return _day(found.group(3), int(found.group(2)), int(found.group(1)))
    return None


def parse_amount(text: str) -> Decimal | None:
    """The one number in `text` without currency and grouping, None if there is no such thing."""
    negative = bool(re.search(r"-\s*\D{0,4}\d|\d\s*-\s*$|^\s*\(.*\)\s*$", text))
    digits = re.sub(r"[^\d.,]", "", text).strip(".,")
    if not digits:
        return None
    last = max(digits.rfind("."), digits.rfind(","))
    if last >= 0 and len(digits) - last - 1 != 3:
        whole, cents = re.sub(r"[.,]", "", digits[:last]), digits[last + 1 :]
        digits = f"{whole or '0'}.{cents}"
    else:
        digits = re.sub(r"[.,]", "", digits)
    try:
        number = Decimal(digits)
    except InvalidOperation:
        return None
    return -number if negative else number


def exact_equal(raw: str | None, reference: Any) -> bool:
    """Whether the printed text is the reference, surrounding blanks aside."""
    return raw is not None and raw.strip() == str(reference).strip()


def normalised_equal(
    name: str, value: Any, raw: str | None, reference: Any, *, kind: str | None = None
) -> bool:
    """Whether the normalised `value` means the same as `reference`.

    `raw` is not looked at where there is a value: a value that was misread from right text is
    wrong. `kind` (date, amount, text) overrides the guess from the field's name.
    """
    del raw
    if value is None:
        return reference is None
    if reference is None:
        return False
    kind = kind or kind_of(name, reference)
    if kind == DATE:
        return parse_date(str(value)) == parse_date(str(reference))
    if kind == AMOUNT:
        wanted = parse_amount(str(reference))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            got: Decimal | None = Decimal(repr(value))
        else:
            got = parse_amount(str(value))
        return got is not None and wanted is not None and abs(got - wanted) < Decimal("0.005")
    return alphanumerics(str(value)) == alphanumerics(str(reference))
