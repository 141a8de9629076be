"""Repairs of recognised text that need no knowledge of what the text says."""

from __future__ import annotations

import re
import unicodedata

TEXT_REPAIRED = "ocr_repaired"

_WORD = re.compile(r"[^\W\d_]{2,}")
_LEGAL_REPAIRS = (
    (re.compile(r"\bS[DI][NH]\.?\s?B[HN][DU]\b\.?", re.IGNORECASE), "SDN BHD"),
    (re.compile(r"\bS[IDB]N\.?\s?B[HN][DU]\b\.?", re.IGNORECASE), "SDN BHD"),
)


def _fold_stray_accent(match: re.Match[str]) -> str:
    word = match.group(0)
    accented = [c for c in word if not c.isascii() and unicodedata.normalize("NFD", c)[0].isascii()]
    plain = [c for c in word if c.isascii()]
    if len(accented) != 1 or len(plain) < len(word) - 1:
        return word
    letter = accented[0]
    others_upper = all(c.isupper() for c in plain)
    if others_upper and len(word) > 2 and (letter.islower() or letter in "ÁÀÂÃĀ"):
        return word.replace(letter, unicodedata.normalize("NFD", letter)[0].upper())
    return word


def repair_text(text: str) -> tuple[str, tuple[str, ...]]:
    """`text` with a stray accent in an upper-case word undone, and the reason if it changed."""
    fixed = text if text.isascii() else _WORD.sub(_fold_stray_accent, text)
    return fixed, (TEXT_REPAIRED,) if fixed != text else ()
