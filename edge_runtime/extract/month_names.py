"""Month names of eight languages, without diacritics and in lower case."""

from __future__ import annotations

from edge_runtime.extract.confusions import fold

_NAMES: tuple[str, ...] = (
    # one row per month: English, German, French, Spanish, Italian, Dutch, Portuguese, Malay
    "january jan januar jaenner janner janvier janv enero ene gennaio gen januari janeiro",
    "february feb februar fevrier fevr febrero febbraio februari fevereiro fev",
    "march mar maerz marz mrz mars marzo maart mrt marco mac",
    "april apr avril avr abril abr aprile",
    "may mai mayo maggio mag mei maio",
    "june jun juni juin junio giugno giu junho",
    "july jul juli juillet juil julio luglio lug julho julai",
    "august aug aout agosto ago augustus ogos",
    "september sep sept septembre septiembre settembre set setembro",
    "october oct oktober okt octobre octubre ottobre ott outubro out",
    "november nov novembre noviembre novembro",
    "december dec dezember dez decembre diciembre dic dicembre desember dezembro disember dis",
)

MONTHS: dict[str, int] = {
    name: number for number, row in enumerate(_NAMES, start=1) for name in row.split()
}


def month_number(word: str) -> int | None:
    """1..12 for a month's name or usual abbreviation, None for any other word."""
    return MONTHS.get(fold(word).rstrip("."))
