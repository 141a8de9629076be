"""A printed line as numbers: what its text looks like and where it stands.

`TEXT_NAMES` and `PLACE_NAMES` name the columns; weights are stored by name, so columns may be
added without touching trained weights.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from edge_runtime.extract.page_layout import Layout, Run
from edge_runtime.extract.vocabulary import (
    AREA_WORDS,
    COUNTRIES,
    LINE_CUES,
    ORGANISATION_WORDS,
    STREET_WORDS,
    UNIT_WORDS,
    classes_of,
    count_words,
    cue_key,
    legal_form_pattern,
)

_POSTCODE = re.compile(
    r"(?<![\d\-/.])(?:\d{4}\s?[A-Z]{2}|\d{5}-\d{4}|\d{5,6}|\d{4})(?![\d\-/.:])"
    r"|\b[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2}\b|\b[A-Z]\d[A-Z]\s?\d[A-Z]\d\b"
)
_HOUSE_NUMBER = re.compile(r"^\W*(?:no|lot|unit|nr|#)?[\s.,:]*[a-z]{0,2}[-\s]?\d", re.IGNORECASE)
_LONG_DIGITS = re.compile(r"\d[\d\s\-]{6,}\d")
_CODE_IN_PARENTHESES = re.compile(r"[(<\[{][^)>\]}]*\d[^)>\]}]*[)>\]}]?")
_DECIMAL = re.compile(r"\d[.,]\d{2}(?!\d)")
_DATE = re.compile(r"\d{1,4}[/\-.]\d{1,2}[/\-.]\d{2,4}")
_TIME = re.compile(r"\d{1,2}:\d{2}")
_IDENTIFIER = re.compile(r"(?=[A-Z\d/\-]*\d)[A-Z\d][A-Z\d/\-]{3,}")

_CLASSES = tuple(LINE_CUES)
_N_WORD_BUCKETS = (1, 2, 3, 5, 8)

TEXT_NAMES: tuple[str, ...] = (
    "legal_end",
    "legal_inside",
    "org_word",
    "org_words",
    "street",
    "streets",
    "unit",
    "area",
    "areas",
    "country",
    "postcode",
    "postcode_first",
    "house_number",
    "first_digit",
    "comma",
    "commas",
    "ends_comma",
    "ends_period",
    "ends_colon",
    "colon",
    "hyphen_end",
    "digit_share",
    "letter_share",
    "upper_share",
    "mixed_case",
    "symbol_share",
    "length",
    "short",
    "code_in_parentheses",
    "is_parenthesised",
    "long_digits",
    "decimal",
    "date",
    "time",
    "identifier",
    "ampersand",
    "at_sign",
    "slash",
    *(f"words_{n}" for n in _N_WORD_BUCKETS),
    *(f"is_{name}" for name in _CLASSES),
)

_ROW_BUCKETS = (1, 2, 3, 4, 6, 9, 14)
PLACE_NAMES: tuple[str, ...] = (
    "y",
    "y_bottom",
    *(f"row_{n}" for n in _ROW_BUCKETS),
    "height",
    "tall",
    "tallest",
    "gap_above",
    "gap_below",
    "centred",
    "width",
    "alone",
    "left_part",
    "right_part",
    "confidence",
    "unsure",
    "n_boxes",
)


@lru_cache(maxsize=20000)
def text_features(text: str) -> np.ndarray:
    """What the text looks like, float32 `(len(TEXT_NAMES),)`; cached, not to be written to."""
    key = cue_key(text)
    n = max(len(text), 1)
    n_letters = sum(c.isalpha() for c in text)
    n_digits = sum(c.isdigit() for c in text)
    n_upper = sum(c.isupper() for c in text)
    n_symbols = sum(not (c.isalnum() or c.isspace() or c in ",.&-'()/") for c in text)
    words = [w for w in re.split(r"[\s,/]+", text) if any(c.isalnum() for c in w)]
    forms = list(legal_form_pattern().finditer(key))
    ends = bool(forms) and not any(c.isalnum() for c in key[forms[-1].end() :])
    org = count_words(text, ORGANISATION_WORDS)
    street = count_words(text, STREET_WORDS)
    area = count_words(text, AREA_WORDS)
    postcode = _POSTCODE.search(text)
    commas = text.count(",")
    classes = classes_of(text, LINE_CUES)
    stripped = text.strip()
    values = [
        ends,
        bool(forms) and not ends,
        org > 0,
        min(org, 3) / 3,
        street > 0,
        min(street, 3) / 3,
        count_words(text, UNIT_WORDS) > 0,
        area > 0,
        min(area, 3) / 3,
        count_words(text, COUNTRIES) > 0,
        postcode is not None,
        postcode is not None and postcode.start() < 3,
        bool(_HOUSE_NUMBER.match(text)),
        stripped[:1].isdigit(),
        commas > 0,
        min(commas, 4) / 4,
        stripped.endswith(","),
        stripped.endswith("."),
        stripped.endswith(":"),
        ":" in text,
        stripped.endswith("-"),
        n_digits / n,
        n_letters / n,
        n_upper / max(n_letters, 1),
        0.1 < n_upper / max(n_letters, 1) < 0.9,
        n_symbols / n,
        min(n, 60) / 60,
        n <= 4,
        bool(_CODE_IN_PARENTHESES.search(text)),
        stripped[:1] in "(<[{" and stripped[-1:] in ")>]}",
        bool(_LONG_DIGITS.search(text)),
        bool(_DECIMAL.search(text)),
        bool(_DATE.search(text)),
        bool(_TIME.search(text)),
        bool(_IDENTIFIER.search(text)),
        "&" in text,
        "@" in text,
        "/" in text,
        *(len(words) >= bound for bound in _N_WORD_BUCKETS),
        *(name in classes for name in _CLASSES),
    ]
    return np.asarray(values, dtype=np.float32)


def place_features(layout: Layout) -> np.ndarray:
    """Where each run stands, float32 `(n_runs, len(PLACE_NAMES))`."""
    rows = np.zeros((len(layout.runs), len(PLACE_NAMES)), dtype=np.float32)
    tallest: dict[int, float] = {}
    first_row: dict[int, int] = {}
    for run in layout.runs:
        tallest[run.page] = max(tallest.get(run.page, 0.0), run.box.height)
        first_row.setdefault(run.page, run.row)
    for run in layout.runs:
        rows[run.index] = _place(layout, run, tallest[run.page], run.row - first_row[run.page])
    return rows


def _place(layout: Layout, run: Run, tallest: float, row_on_page: int) -> list[float]:
    extent, unit = layout.extent[run.page], layout.line_height[run.page]
    y = (run.box.center[1] - extent.y0) / max(extent.height, 1e-6)
    width = max(extent.width, 1e-6)
    offset = (run.box.center[0] - extent.center[0]) / width
    above, below = layout.above(run), layout.below(run)
    row = layout.rows[run.row]
    return [
        y,
        y > 0.7,
        *(row_on_page < bound for bound in _ROW_BUCKETS),
        min(run.box.height / unit, 3.0) / 3,
        run.box.height > 1.25 * unit,
        run.box.height > 0.9 * tallest,
        1.0 if above is None else max(-0.5, min(layout.gap(above, run), 1.0)),
        1.0 if below is None else max(-0.5, min(layout.gap(run, below), 1.0)),
        abs(offset) < 0.06,
        run.box.width / width,
        len(row) == 1,
        run.column == 0 and len(row) > 1,
        run.column > 0,
        run.confidence,
        run.confidence < 0.9,
        len(run.lines) > 1,
    ]
