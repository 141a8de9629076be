"""Words that name what a form asks for, in several languages.

A text without a colon is believed to be a label when it ends in one of these (`Project Code`), or
consists of them. They are common nouns of forms and letters, not names of particular documents.
"""

from __future__ import annotations

import re

from edge_runtime.extract.confusions import fold

_WORDS = (
    "account acct address affiliation age agency amount area attention attn author authorization "
    "balance birth brand budget business campaign cc cell circulation city class client code "
    "comments company compound concentration contact contract copies cost country county course "
    "currency customer date dated day deadline deliver delivery department dept description "
    "destination division document dob due duration effective email employee employer end expires "
    "expiry facsimile fax filed first form from gender grade group hours id incl initials "
    "institution investigator invoice issue issued item job last license licence location "
    "manager manufacturer market material medium message method mobile model month name names "
    "nationality no nos note notes num number objective occupation order organization origin page "
    "pages payee payer percent period phone place position postcode price priority product "
    "program project promotion publication purpose qty quantity rate re reason reasons received "
    "recipient ref reference region registration remarks reply reporter requested response "
    "revision route sample section sender serial service sex shipped shipping signature signed "
    "site size sold source speaker sponsor ssn start state status street subject supervisor "
    "supplier surname tax tel telefax telephone term time title to total type unit units until "
    "valid vendor via volume weight witness work year zip "
    "absender adresse anrede anschrift anzahl artikel bank bestellnummer betrag betreff datum "
    "empfaenger firma geburtsdatum iban kunde kundennummer kontonummer land menge nachname nr ort "
    "plz preis rechnungsnummer strasse telefon unterschrift vorname waehrung "
    "ville pays nom prenom objet montant numero client commande facture rue signataire "
    "apellido apellidos ciudad cliente direccion empresa fecha importe nombre pais telefono "
    "cognome citta data indirizzo nome oggetto paese via voornaam achternaam plaats postcode "
    "factuurnummer ordernummer klantnummer bedrijf alamat nama tarikh jumlah"
)
LABEL_WORDS: frozenset[str] = frozenset(_WORDS.split())
_LINK_WORDS = "of by and for the de du der des di in per &"
_LINKS = frozenset(_LINK_WORDS.split())

_GLUED = re.compile(r"[A-Z]{3,}(?=[A-Z][a-z]|[0-9])")
"""A label whose following space the recogniser dropped: `DATEMay 27`."""


def _key(word: str) -> str:
    return fold(word).strip(".,:;#()/'\"*-_")


def is_label_word(word: str) -> bool:
    """Whether a single word names something to fill in."""
    key = _key(word)
    parts = (part for part in key.split("/") if len(part) > 2)
    return key in LABEL_WORDS or any(part in LABEL_WORDS for part in parts)


def ends_in_label_word(text: str) -> bool:
    """Whether the last word that counts names something to fill in (`Received by`, `Lot No.`)."""
    words = [w for w in text.split() if _key(w)]
    while words and _key(words[-1]) in _LINKS:
        words.pop()
    return bool(words) and is_label_word(words[-1])


def label_prefix_length(text: str, *, max_words: int = 4) -> int:
    """Characters of the label that `text` begins with (`Project Code BD-FF`), 0 without one.

    The label has to end in a label word that starts with a capital, like every word before it.
    """
    glued = _GLUED.match(text)
    if glued and is_label_word(glued.group()):
        return glued.end()
    length, position = 0, 0
    for number, word in enumerate(text.split()):
        position = text.index(word, position) + len(word)
        is_link = _key(word) in _LINKS
        starts_well = word[0].isupper() or is_link
        if number >= max_words or not starts_well or any(c.isdigit() for c in word):
            break
        if is_label_word(word) or (is_link and length):
            length = position
    return length if length < len(text.rstrip()) else 0
