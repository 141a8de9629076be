"""Characters that recognisers confuse inside numbers, and their repair."""

from __future__ import annotations

import unicodedata

DIGIT_LIKE = "OoQDIl|!SsBZz"
"""Letters that stand for a digit when their neighbours are digits."""

DIGIT_REPAIR = str.maketrans(
    {
        "O": "0",
        "o": "0",
        "Q": "0",
        "D": "0",
        "I": "1",
        "l": "1",
        "|": "1",
        "!": "1",
        "S": "5",
        "s": "5",
        "B": "8",
        "Z": "2",
        "z": "2",
    }
)

OCR_REPAIRED = "ocr_repaired"


def repair_digits(text: str) -> str | None:
    """`text` with look-alike letters turned into digits; None when digits are the minority.

    Characters that are neither digits nor look-alikes stay and do not count.
    """
    n_digits = sum(c.isdigit() for c in text)
    n_letters = sum(c in DIGIT_LIKE for c in text)
    if n_letters == 0:
        return text
    if n_digits < n_letters or n_digits == 0:
        return None
    return text.translate(DIGIT_REPAIR)


def fold(text: str) -> str:
    """`text` without case, diacritics and compatibility forms, spaces collapsed."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(c for c in decomposed if not unicodedata.combining(c))
    return " ".join(bare.split())


def fold_alnum(text: str) -> str:
    """Only the letters and digits of `fold(text)`."""
    return "".join(c for c in fold(text) if c.isalnum())
