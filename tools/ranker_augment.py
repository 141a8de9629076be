"""Variants of training documents: recognition noise, tighter layouts, other names and addresses.

Names and addresses are made up from word lists, so that what is learned is what such lines look
like in many countries rather than who the merchants of the training documents are.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tools.ranker_words import (
    COUNTRIES,
    FORMS,
    HEADER_NOTES,
    ISSUE_LABELS,
    MONTHS,
    NAMES,
    STATES,
    TOWNS,
    TRADES,
)

_CONFUSIONS = dict(
    pair for pair in ("O0", "0O", "I1", "1I", "l1", "S5", "5S", "B8", "8B", "EF", "CG", "UJ", "TI",
                      "NH", "DO", ".,", ",.", "il", "ec", "ao")
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A recognised box: corners and text."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str
    score: float = 0.99

    @property
    def height(self) -> float:
        return self.y1 - self.y0


def made_up_name(rng: random.Random) -> list[str]:
    """A company name, on one line or two."""
    words = rng.sample(NAMES, rng.choice((1, 1, 2, 2, 3)))
    if rng.random() < 0.7:
        words.append(rng.choice(TRADES))
    if rng.random() < 0.2:
        words.insert(rng.randrange(len(words) + 1), rng.choice(("&", "and")))
        words = [w for i, w in enumerate(words) if not (i in (0, len(words) - 1) and w in "&and")]
    form = rng.choice(FORMS) if rng.random() < 0.6 else ""
    style = rng.random()
    text = " ".join(words)
    text = text.upper() if style < 0.6 else text
    if form and rng.random() < 0.25:
        return [text, form.upper() if style < 0.6 else form]
    lines = [f"{text} {form}".strip()]
    if rng.random() < 0.3:
        code = f"({rng.randrange(10**5, 10**7)}-{rng.choice('AKMTUVWX')})"
        lines = [f"{lines[0]} {code}"] if rng.random() < 0.5 else [*lines, code]
    return lines


def name_without_code(lines: Sequence[str]) -> str:
    """The name that `made_up_name` printed, without its registration number."""
    kept = [line.split(" (" if not line.startswith("(") else "(")[0] for line in lines]
    return " ".join(line for line in kept if line)


def _american(rng: random.Random, n: int, name: str, town: str) -> list[str]:
    street = rng.choice(("Street", "St.", "Avenue", "Ave", "Road", "Blvd", "Lane", "Drive"))
    lines = [f"{n} {name} {street}", f"{town}, {rng.choice(STATES[:7])} {_digits(rng, 5)}"]
    if rng.random() < 0.3:
        lines.insert(1, rng.choice((f"Suite {n}", f"Floor {n % 30}", f"Unit {n}B")))
    return lines


def _british(rng: random.Random, n: int, name: str, town: str) -> list[str]:
    code = f"{town[:2].upper()}{n % 20} {n % 9}{rng.choice('AB')}N"
    return [f"{n} {name} Road", town, code]


def _german(rng: random.Random, n: int, name: str, town: str) -> list[str]:
    forms = (f"{name}straße {n}", f"{name}str. {n}", f"Am {name}platz {n}", f"{name} Weg {n}")
    return [rng.choice(forms), f"{_digits(rng, 5)} {town}"]


def _french(rng: random.Random, n: int, name: str, town: str) -> list[str]:
    return [f"{n}, rue {name}", f"{_digits(rng, 5)} {town}"]


def _spanish(rng: random.Random, n: int, name: str, town: str) -> list[str]:
    return [f"Calle {name} {n}", f"{_digits(rng, 5)} {town}"]


def _italian(rng: random.Random, n: int, name: str, town: str) -> list[str]:
    return [f"Via {name} {n}", f"{_digits(rng, 5)} {town} ({town[:2].upper()})"]


def _dutch(rng: random.Random, n: int, name: str, town: str) -> list[str]:
    return [f"{name}straat {n}", f"{_digits(rng, 4)} {town[:2].upper()} {town}"]


def _indian(rng: random.Random, n: int, name: str, town: str) -> list[str]:
    return [f"Plot {n}, {name} Nagar", f"{rng.choice(NAMES)} Road", f"{town} - {_digits(rng, 6)}"]


def _malay(rng: random.Random, n: int, name: str, town: str) -> list[str]:
    streets = (f"No.{n}, Jalan {name} {n % 20}/{n % 9},", f"Lot {n}, Jalan {name},")
    areas = (
        f"Taman {rng.choice(NAMES)},",
        f"Bandar Baru {name},",
        f"Seksyen {n % 30},",
        f"Kawasan Perindustrian {name},",
    )
    state = f"{rng.choice(STATES[7:11])}{rng.choice(('.', '', ','))}"
    lines = [
        rng.choice((*streets, f"{n}, Lorong {name} {n % 9}")),
        rng.choice(areas),
        f"{_digits(rng, 5)} {town}, {state}",
    ]
    if rng.random() < 0.3:
        return [lines[0], f"{lines[1]} {lines[2]}"]
    if rng.random() < 0.2:
        return [f"{name} Mall, Level {n % 5},", *lines]
    return lines


def _digits(rng: random.Random, n: int) -> str:
    return str(rng.randrange(10 ** (n - 1), 10**n))


_COUNTRY_FORMS = (
    _american,
    _british,
    _german,
    _french,
    _spanish,
    _italian,
    _dutch,
    _indian,
    _malay,
    _malay,
)


def _street(rng: random.Random) -> list[str]:
    form = rng.choice(_COUNTRY_FORMS)
    lines = form(rng, rng.randrange(1, 300), rng.choice(NAMES), rng.choice(TOWNS))
    if rng.random() < 0.2:
        lines[-1] = f"{lines[-1].rstrip(',.')}, {rng.choice(COUNTRIES)}"
    elif rng.random() < 0.1:
        lines.append(rng.choice(COUNTRIES))
    return lines


def made_up_address(rng: random.Random) -> list[str]:
    """An address of one to five lines."""
    lines = _street(rng)
    if rng.random() < 0.5:
        lines = [line.upper() for line in lines]
    if rng.random() < 0.1:
        lines = [", ".join(line.rstrip(",") for line in lines)]
    return lines


def with_block(rows: Sequence[Row], taken: Sequence[int], lines: Sequence[str]) -> list[Row]:
    """`rows` with the rows numbered `taken` replaced by `lines`; what is below moves."""
    old = [rows[i] for i in taken]
    height = sum(r.height for r in old) / len(old)
    pitch = height * 1.12
    if len(old) > 1:
        tops = sorted(r.y0 for r in old)
        steps = [b - a for a, b in itertools.pairwise(tops) if b - a > 0.5 * height]
        pitch = sum(steps) / len(steps) if steps else pitch
    top, bottom = min(r.y0 for r in old), max(r.y1 for r in old)
    x0, x1 = min(r.x0 for r in old), max(r.x1 for r in old)
    wide = max((r.x1 - r.x0) / max(len(r.text), 1) for r in old)
    center = (x0 + x1) / 2
    made: list[Row] = []
    for number, text in enumerate(lines):
        half = wide * len(text) / 2
        left = x0 if abs(sum(r.x0 for r in old) / len(old) - x0) < 0.3 * height else center - half
        made.append(
            Row(left, top + number * pitch, left + 2 * half, top + number * pitch + height, text)
        )
    shift = top + (len(lines) - 1) * pitch + height - bottom
    gone = set(taken)
    rest = [
        replace(r, y0=r.y0 + shift, y1=r.y1 + shift) if r.y0 > bottom - 0.5 * height else r
        for i, r in enumerate(rows)
        if i not in gone
    ]
    return rest + made


def tightened(rows: Sequence[Row], rng: random.Random) -> list[Row]:
    """The same rows with blank space between them shrunk or stretched."""
    ordered = sorted(range(len(rows)), key=lambda i: rows[i].y0)
    limit, stretch = rng.choice((0.1, 0.3, 0.6)), rng.choice((1.0, 1.0, 1.5))
    moved: dict[int, float] = {}
    shift, floor = 0.0, None
    for i in ordered:
        row = rows[i]
        if floor is not None and row.y0 > floor:
            gap = row.y0 - floor
            wanted = min(gap * stretch, limit * row.height) if stretch == 1.0 else gap * stretch
            shift += wanted - gap
        moved[i] = shift
        floor = row.y1 if floor is None else max(floor, row.y1)
    return [replace(r, y0=r.y0 + moved[i], y1=r.y1 + moved[i]) for i, r in enumerate(rows)]


def without_some(
    rows: Sequence[Row], keep: Sequence[int], rng: random.Random, rate: float
) -> list[Row]:
    """Rows with a share of those left out that are not in `keep`."""
    kept = set(keep)
    return [r for i, r in enumerate(rows) if i in kept or rng.random() >= rate]


def noisy_text(text: str, rng: random.Random, rate: float) -> str:
    """`text` with lookalike letters and lost blanks."""
    if rng.random() < 0.15:
        text = "".join(c for c in text if c != " " or rng.random() > 0.35)
    return "".join(
        _CONFUSIONS.get(c, c) if rng.random() < rate else c for c in text if rng.random() > rate / 6
    )


def noisy(rows: Sequence[Row], rng: random.Random) -> list[Row]:
    """Rows as a recogniser might have read them: noise, case, jittered boxes, doubtful scores."""
    titled = rng.random() < 0.4
    rate = rng.choice((0.0, 0.004, 0.01))
    made: list[Row] = []
    for row in rows:
        text = (
            row.text.title() if titled and row.text.isupper() and rng.random() < 0.8 else row.text
        )
        changed = noisy_text(text, rng, rate)
        if not changed.strip():
            continue
        j = row.height * 0.06
        made.append(
            Row(
                row.x0 + rng.uniform(-j, j),
                row.y0 + rng.uniform(-j, j),
                row.x1 + rng.uniform(-j, j),
                row.y1 + rng.uniform(-j, j),
                changed,
                min(1.0, rng.uniform(0.93, 1.0) - 0.03 * (changed != text)),
            )
        )
    return made


DATE_LABELS: dict[str, tuple[str, ...]] = {
    "due": ("Due Date", "Payment Due", "Due", "Pay by", "Fällig am", "Zahlbar bis", "Vencimiento",
            "Échéance", "Scadenza"),
    "delivery": ("Delivery Date", "Ship Date", "Shipped", "Lieferdatum", "Date de livraison"),
    "order": ("Order Date", "Ordered on", "Bestelldatum", "PO Date"),
    "expiry": ("Expiry Date", "Valid until", "Best before", "Exp"),
    "birth": ("Date of Birth", "DOB", "Birth Date"),
    "print": ("Printed on", "Print Date", "Reprint"),
    "period": ("Period from", "From", "To", "Member since", "Promotion ends", "Gst effective from"),
}  # fmt: skip


def printed_date(rng: random.Random) -> tuple[str, str]:
    """A day as it may be printed, and its ISO form."""
    y, m, d = rng.randrange(2008, 2027), rng.randrange(1, 13), rng.randrange(13, 29)
    texts = (
        f"{d:02d}/{m:02d}/{y}",
        f"{d:02d}-{m:02d}-{y}",
        f"{d:02d}.{m:02d}.{y}",
        f"{y}-{m:02d}-{d:02d}",
        f"{d} {MONTHS[m - 1]} {y}",
        f"{d:02d}/{m:02d}/{y % 100:02d}",
        f"{MONTHS[m - 1]} {d}, {y}",
    )
    return rng.choice(texts), f"{y}-{m:02d}-{d:02d}"


def with_dates(
    rows: Sequence[Row], dates: Sequence[tuple[str, str]], rng: random.Random
) -> list[Row]:
    """`rows` with labelled dates put between them, each label in the same box or beside it."""
    current = list(rows)
    for label, text in dates:
        at = rng.random()
        ordered = sorted(current, key=lambda r: r.y0)
        anchor = ordered[min(int(at * len(ordered)), len(ordered) - 1)]
        height = anchor.height
        current = [
            replace(r, y0=r.y0 + 1.2 * height, y1=r.y1 + 1.2 * height)
            if r.y0 > anchor.y0 + 0.6 * height
            else r
            for r in current
        ]
        top = anchor.y0 + 1.2 * height
        left = min(r.x0 for r in current)
        wide = height * 0.5
        mark = rng.choice((":", " :", ""))
        if rng.random() < 0.5:
            joined = f"{label}{mark} {text}"
            current.append(Row(left, top, left + wide * len(joined), top + height, joined))
        else:
            name = f"{label}{mark}"
            x = left + wide * len(name) + rng.choice((1.0, 3.0, 8.0)) * height
            current.append(Row(left, top, left + wide * len(name), top + height, name))
            current.append(Row(x, top, x + wide * len(text), top + height, text))
    return current


def dated_rows(
    rows: Sequence[Row], rng: random.Random
) -> tuple[list[Row], list[tuple[str, str, str]]]:
    """`rows` with other dates added, and (kind, label, ISO day) of each."""
    kinds = rng.sample(sorted(DATE_LABELS), rng.choice((1, 1, 2, 3)))
    added, told = [], []
    for kind in kinds:
        text, iso = printed_date(rng)
        label = rng.choice(DATE_LABELS[kind])
        added.append((label, text))
        told.append((kind, label, iso))
    return with_dates(rows, added, rng), told


def issue_label(rng: random.Random) -> str:
    """A label for the day a document was issued."""
    return rng.choice(ISSUE_LABELS)


def with_header(
    rows: Sequence[Row], name_rows: Sequence[int], rng: random.Random, *, has_form: bool
) -> list[Row]:
    """`rows` with a line above or below the name that could be mistaken for it.

    A brand, a branch or a person is only put there when the name itself shows a legal form, so
    that the right answer stays clear.
    """
    first = min((rows[i] for i in name_rows), key=lambda r: r.y0)
    last = max((rows[i] for i in name_rows), key=lambda r: r.y1)
    height = first.height
    notes = [rng.choice(HEADER_NOTES), str(rng.randrange(1000, 10**8))]
    if has_form:
        brand = " ".join(rng.sample(NAMES, rng.choice((1, 2))))
        notes += [brand, brand.upper(), f"{brand} {rng.choice(TRADES)}".upper()]
        notes += [f"{rng.choice(TOWNS)} Branch", " ".join(rng.sample(NAMES, 2)).lower()]
    text = rng.choice(notes)
    below = has_form and rng.random() < 0.3
    edge = last.y1 if below else first.y0
    gap = height * rng.choice((0.1, 0.3, 1.0, 3.0))
    size = height * rng.choice((1.0, 1.0, 1.3, 1.8))
    moved = [
        replace(r, y0=r.y0 + size + gap, y1=r.y1 + size + gap) if r.y0 >= edge - 0.3 * height else r
        for r in rows
    ]
    center, half = (first.x0 + first.x1) / 2, 0.25 * size * len(text)
    return [*moved, Row(center - half, edge + gap / 2, center + half, edge + gap / 2 + size, text)]
