"""Made-up closing parts of bills: subtotal, tax, total, payment and change that add up.

The closing part of a training document is replaced by one of many arrangements and languages, so
that a total is recognised by what the words and the arithmetic say rather than by the habits of
the merchants in the training documents.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from edge_runtime.extract.document_facts import DocumentFacts
from tools.ranker_augment import Row
from tools.ranker_words import (
    CASH,
    CHANGE,
    DISCOUNT,
    OTHER_SUMS,
    QUANTITY,
    ROUNDED,
    ROUNDING,
    SERVICE,
    SUBTOTAL,
    TAX,
    TOTAL,
)

_SUMMARY = {
    *("total", "grand", "subtotal", "tax", "cash", "change", "rounding"),
    *("discount", "service", "excluding", "including", "summary"),
}
_MOST_CENTS = 10**7


@dataclass(frozen=True)
class Closing:
    """Labels with cents (None prints the text instead), and the answer."""

    rows: list[tuple[str, int | None, str]]
    answer_cents: int


def closing(total: int, rng: random.Random) -> Closing:
    """An arrangement that ends in `total` or in its rounding."""
    rows: list[tuple[str, int | None, str]] = []

    def say(label: str, cents: int | None, text: str = "") -> None:
        rows.append((label, cents, text))

    if rng.random() < 0.35:
        say(rng.choice(QUANTITY), None, str(rng.randrange(1, 15)))
    rate = rng.choice((0, 0, 6, 6, 7, 10, 19, 20))
    tax = total - round(total * 100 / (100 + rate))
    net = total - tax
    service = round(net * 0.1) if rng.random() < 0.12 else 0
    discount = round(net * 0.08) if rng.random() < 0.2 else 0
    if rng.random() < 0.6:
        say(rng.choice(SUBTOTAL), net - service + discount)
    if discount or rng.random() < 0.15:
        say(rng.choice(DISCOUNT), -discount if rng.random() < 0.4 else discount)
    if service:
        say(rng.choice(SERVICE), service)
    if rng.random() < 0.15:
        _say_rates(say, net, tax, rng)
    elif (tax and rng.random() < 0.8) or rng.random() < 0.15:
        say(rng.choice(TAX), tax)
    if rng.random() < 0.12:
        say(rng.choice(OTHER_SUMS), rng.choice((0, net // 3, net // 7)))
    answer = _say_total(say, total, rng)
    if rng.random() < 0.65:
        _say_payment(say, answer, rng)
    if tax and rng.random() < 0.4:
        say(rng.choice(("GST Summary", "Tax Summary", "GST Analysis")), None, "Amount Tax")
        say(f"SR @{rate}%", net, f"{tax / 100:.2f}")
        if rng.random() < 0.4:
            say("Total", net, f"{tax / 100:.2f}")
    return Closing(rows, answer)


def _say_rates(say, net: int, tax: int, rng: random.Random) -> None:
    """Totals by tax rate, which are not what is to be paid."""
    names = rng.choice(
        (
            ("Total 0% Supplies", "Total 6% Supplies", "Total GST"),
            ("Zero Rated Total", "Standard Rated Total", "Tax"),
            ("Total Z", "Total S", "GST 6%"),
            ("Total 7% netto", "Total 19% netto", "MwSt. gesamt"),
            ("Exempt sales", "Taxable sales", "Tax total"),
        )
    )
    share = 0 if rng.random() < 0.6 else net // 3
    if tax == 0:
        share = net
    for name, cents in zip(names, (share, net - share, tax), strict=True):
        say(name, cents)


def _say_total(say, total: int, rng: random.Random) -> int:
    rounded = 5 * round(total / 5)
    kind = rng.random()
    if kind < 0.2:
        say(rng.choice(TOTAL), total)
        say(rng.choice(ROUNDING), rounded - total)
        say(rng.choice(ROUNDED), rounded)
        return rounded
    if kind < 0.3:
        say(rng.choice(ROUNDING), 0)
    say(rng.choice(TOTAL), total)
    if kind > 0.85:
        say(rng.choice(TOTAL), total)
    return total


def _say_payment(say, answer: int, rng: random.Random) -> None:
    exact = rng.random() < 0.4
    step = rng.choice((100, 500, 1000, 5000))
    paid = answer if exact else (answer // step + 1) * step
    say(rng.choice(CASH), paid)
    if not exact or rng.random() < 0.5:
        say(rng.choice(CHANGE), paid - answer)


def with_closing(
    rows: Sequence[Row], answer: float, rng: random.Random, facts: DocumentFacts
) -> tuple[list[Row], float] | None:
    """`rows` with another closing part, and the new total; None when there is nothing to replace.

    `facts` are those of the document made of exactly these rows.
    """
    cents = round(answer * 100)
    if not 0 < cents < _MOST_CENTS:
        return None
    gone_rows = {
        p.run.row
        for p in facts.amounts
        if (p.left & _SUMMARY or (p.above & _SUMMARY and not any(c.isalpha() for c in p.left_text)))
        and not p.left & {"price"}
    }
    gone = {line.index for row in gone_rows for run in facts.layout.rows[row] for line in run.lines}
    if not gone or len(gone) > 0.7 * len(rows):
        return None
    made = closing(cents, rng)
    old = [rows[i] for i in gone]
    height = sorted(r.height for r in old)[len(old) // 2]
    top, bottom = min(r.y0 for r in old), max(r.y1 for r in old)
    left, right = min(r.x0 for r in rows), max(r.x1 for r in rows)
    pitch = height * rng.uniform(1.05, 1.6)
    kept = [r for i, r in enumerate(rows) if i not in gone]
    above = [r for r in kept if r.y0 < bottom]
    floor = max((r.y1 for r in above), default=top) + 0.3 * height
    start = max(top, floor) if any(r.y0 > top for r in above) else top
    shift = start + len(made.rows) * pitch - bottom
    current = [replace(r, y0=r.y0 + shift, y1=r.y1 + shift) if r.y0 >= bottom else r for r in kept]
    current += _drawn(made, left, right, start, pitch, height, rng)
    return current, made.answer_cents / 100


def _drawn(
    made: Closing,
    left: float,
    right: float,
    start: float,
    pitch: float,
    height: float,
    rng: random.Random,
) -> list[Row]:
    currency = rng.choice(("", "", "", "RM", "RM ", "$", "€ ", "USD "))
    mark = rng.choice(("", "", ":", " :", "...."))
    upper, glued = rng.random() < 0.4, rng.random() < 0.15
    indent = rng.choice((0.0, 0.0, 0.25))
    wide = 0.5 * height
    drawn: list[Row] = []
    for number, (label, cents, extra) in enumerate(made.rows):
        name = (label.upper() if upper else label) + mark
        if cents is None:
            texts = [extra]
        else:
            sign = "-" if cents < 0 else ""
            texts = [f"{sign}{currency}{abs(cents) / 100:.2f}"] + ([extra] if extra else [])
        y = start + number * pitch
        x0 = left + indent * (right - left)
        if glued:
            joined = f"{name} {' '.join(texts)}"
            drawn.append(Row(x0, y, x0 + wide * len(joined), y + height, joined))
            continue
        drawn.append(Row(x0, y, x0 + wide * len(name), y + height, name))
        x1 = right
        for text in reversed(texts):
            drawn.append(Row(x1 - wide * len(text), y, x1, y + height, text))
            x1 -= wide * (len(text) + 4)
    return drawn
