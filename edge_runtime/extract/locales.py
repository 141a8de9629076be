"""How languages write dates and numbers, as far as extraction has to know.

Conventions follow the Unicode CLDR (number symbols and short date formats of the locales named).
"""

from __future__ import annotations

_POINT_LANGUAGES = frozenset(
    {"en", "zh", "ja", "ko", "th", "ms", "he", "hi", "bn", "ta", "te", "ur", "fil", "tl", "sw"}
)
_POINT_LOCALES = frozenset(
    {"de_ch", "de_li", "fr_ch", "it_ch", "es_mx", "es_us", "es_gt", "es_pe", "es_do", "es_sv"}
)
_COMMA_LOCALES = frozenset({"en_za"})
_MONTH_FIRST_LOCALES = frozenset({"en_us", "en_ph", "fil_ph", "es_us", "es_pr"})
_YEAR_FIRST_LANGUAGES = frozenset({"zh", "ja", "ko", "hu", "lt", "mn"})


def _key(locale: str) -> tuple[str, str]:
    """Language, and language_region, of a tag such as `de-CH` or `de_CH.UTF-8`, lower-case."""
    pieces = locale.split(".", maxsplit=1)[0].replace("-", "_").lower().split("_")
    region = next((p for p in pieces[1:] if len(p) == 2 and p.isalpha()), "")
    return pieces[0], f"{pieces[0]}_{region}" if region else pieces[0]


def decimal_mark(locale: str | None) -> str | None:
    """`.` or `,`, or None when the locale is not given."""
    if not locale:
        return None
    language, full = _key(locale)
    if full in _COMMA_LOCALES:
        return ","
    return "." if language in _POINT_LANGUAGES or full in _POINT_LOCALES else ","


def day_first(locale: str | None) -> bool | None:
    """Whether 03/04 is the third of April; None when the locale leaves it open.

    Plain `en` says nothing: Britain and the United States differ.
    """
    if not locale:
        return None
    language, full = _key(locale)
    if full in _MONTH_FIRST_LOCALES:
        return False
    if full == "en":
        return None
    return language not in _YEAR_FIRST_LANGUAGES
