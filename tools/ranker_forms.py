"""Made-up forms: labels with values inside the line, beside or below, in one or two columns."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tools import ranker_augment as augment
from tools.ranker_augment import Row
from tools.ranker_words import (
    FORM_LABELS,
    FORM_TITLES,
    NAMES,
    PLAIN_WORDS,
    TOWNS,
)


@dataclass(frozen=True)
class Entry:
    """A label and its value, as drawn."""

    label: str
    value: str


def made_up_value(label: str, rng: random.Random) -> str:
    """A value of the sort that the label asks for."""
    low = label.lower()
    if "mail" in low:
        return f"{rng.choice(NAMES).lower()}@{rng.choice(TOWNS).lower()}.example"
    if "web" in low:
        return f"www.{rng.choice(TOWNS).lower()}.example"
    if any(w in low for w in ("telephone", "mobile")):
        return f"+{rng.randrange(1, 99)} {rng.randrange(10, 999)} {rng.randrange(1000, 9999999)}"
    if any(
        w in low
        for w in ("name", "applicant", "contact", "patient", "by", "attn", "rep", "partner")
    ):
        return " ".join(rng.sample(NAMES, 2))
    if any(w in low for w in (" to", "customer", "bank", "cliente")) and "no" not in low.split():
        return augment.name_without_code(augment.made_up_name(rng))
    numbered = (
        "no",
        "nu",
        "ref",
        "id",
        "iban",
        "swift",
        "tin",
        "cod",
        "seat",
        "flight",
        "gate",
        "box",
    )
    if any(w in low for w in numbered) or rng.random() < 0.25:
        letters = "".join(rng.choice("ABCDEFGHKLMNPRSTUX") for _ in range(rng.randrange(4)))
        mark = rng.choice(("", "-", "/", " "))
        return f"{letters}{mark if letters else ''}{rng.randrange(10, 10 ** rng.randrange(3, 9))}"
    return " ".join(rng.sample(PLAIN_WORDS, rng.choice((1, 1, 2, 3)))).title()


def made_up_form(rng: random.Random) -> tuple[list[Row], list[Entry]]:
    """The boxes of a form and what stands in it."""
    labels = rng.sample(FORM_LABELS, rng.randrange(5, 13))
    entries = [Entry(label, made_up_value(label, rng)) for label in labels]
    height, wide = 20.0, 10.0
    mark, upper = rng.choice((":", ":", " :", "", "")), rng.random() < 0.3
    pitch = height * rng.choice((1.2, 1.5, 2.2))
    layout = rng.choice(("inline", "beside", "below", "cell", "mixed"))
    n_columns = rng.choice((1, 1, 2))
    column = 480.0
    rows = [Row(150.0, 0.0, 150.0 + wide * 14, height, rng.choice(FORM_TITLES))]
    y = 3 * height
    for start in range(0, len(entries), n_columns):
        deepest = 1
        for at, entry in enumerate(entries[start : start + n_columns]):
            x = 20.0 + at * column
            name = (entry.label.upper() if upper else entry.label) + mark
            how = layout if layout != "mixed" else rng.choice(("inline", "beside", "below", "cell"))
            rows += _drawn(name, entry.value, (x, y), how, rng)
            deepest = max(deepest, {"below": 2, "cell": 4}.get(how, 1))
        y += pitch + (deepest - 1) * height * 1.15
    if rng.random() < 0.5:
        rows.append(
            Row(20.0, y + height, 400.0, y + 2 * height, "Please keep this for your records.")
        )
    if rng.random() < 0.5:
        rows = augment.noisy(rows, rng)
    return rows, entries


def _drawn(
    name: str, value: str, corner: tuple[float, float], how: str, rng: random.Random
) -> Sequence[Row]:
    (x, y), height, wide = corner, 20.0, 10.0
    if how == "inline":
        text = f"{name} {value}"
        return [Row(x, y, x + wide * len(text), y + height, text)]
    label = Row(x, y, x + wide * len(name), y + height, name)
    if how in {"below", "cell"}:
        top = y + height * (1.15 if how == "below" else rng.uniform(1.4, 3.0))
        shift = 0.0 if how == "below" else rng.choice((0.0, 0.0, 40.0, 120.0))
        left = x + shift
        return [label, Row(left, top, left + wide * len(value), top + height, value)]
    left = max(label.x1 + rng.choice((12.0, 30.0)), x + rng.choice((0.0, 180.0)))
    return [label, Row(left, y, left + wide * len(value), y + height, value)]
