"""What kind of value a schema property holds: from its type, format, name and description."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from edge_runtime.errors import SchemaError
from edge_runtime.extract.confusions import fold
from edge_runtime.extract.schema import FieldKind
from edge_runtime.extract.schema_resolving import types_of

_FORMATS: dict[str, FieldKind] = {
    "date": FieldKind.DATE,
    "date-time": FieldKind.DATE,
    "email": FieldKind.EMAIL,
    "idn-email": FieldKind.EMAIL,
    "uri": FieldKind.URL,
    "url": FieldKind.URL,
    "iri": FieldKind.URL,
    "uri-reference": FieldKind.URL,
    "hostname": FieldKind.URL,
    "phone": FieldKind.PHONE,
    "tel": FieldKind.PHONE,
    "amount": FieldKind.AMOUNT,
    "currency": FieldKind.AMOUNT,
    "decimal": FieldKind.NUMBER,
}


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_MONEY = _set(
    "total totals subtotal grandtotal amount amounts price cost costs tax vat gst fee fees "
    "charge charges balance paid change sum discount tip rounding cash deposit salary wage "
    "wages rent rents income payment proceeds royalties net gross betrag summe gesamt "
    "gesamtbetrag preis einzelpreis gesamtpreis mwst netto brutto rabatt montant prix tva "
    "remise importe precio iva descuento importo prezzo totale sconto bedrag prijs btw totaal "
    "korting valor preco jumlah harga"
)
_NOT_MONEY = _set(
    "id number no num nr code name rate percent percentage pct count quantity qty type method "
    "currency items pages units date status category class anzahl menge numero nummer"
)
_DATE = _set(
    "date dates datum fecha dob birthday birthdate expiry expires issued duedate due "
    "invoicedate orderdate geburtsdatum rechnungsdatum faelligkeit vencimiento scadenza "
    "echeance tarikh"
)
_NOT_DATE = _set("number no id format place by days amount name at author authority")
_TEXT = _set(
    "address addresses adresse anschrift direccion indirizzo endereco adres alamat notes note "
    "remarks remark comment comments terms description details beschreibung bemerkung "
    "bemerkungen descripcion descrizione omschrijving message body summary"
)
_EMAIL = _set("email emails mail")
_PHONE = _set(
    "phone telephone tel mobile fax telefon telefono telefoon telefax cell cellphone handy phones"
)
_URL = _set("url website homepage web webpage site weblink link uri")
_NOT_CONTACT = _set("type name date plan carrier provider")
_SPLIT = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def words_of(name: str) -> list[str]:
    """The words of a property name (`dueDate`, `invoice_no`), folded."""
    return [fold(word) for word in _SPLIT.split(name) if word]


def _is_date_name(words: list[str]) -> bool:
    if set(words) & _NOT_DATE:
        return False
    return bool(set(words) & _DATE) or any(w.endswith("datum") for w in words)


def _is_money_name(words: list[str]) -> bool:
    return bool(set(words) & _MONEY) and not set(words) & _NOT_MONEY


def _from_name(words: list[str]) -> FieldKind | None:
    """The kind that a text property's name gives away."""
    found = set(words)
    if not found & _NOT_CONTACT:
        if found & _EMAIL or {"e", "mail"} <= found:
            return FieldKind.EMAIL
        if found & _PHONE:
            return FieldKind.PHONE
        if found & _URL:
            return FieldKind.URL
    if _is_date_name(words):
        return FieldKind.DATE
    if _is_money_name(words):
        return FieldKind.AMOUNT
    if found & _TEXT and "name" not in found:
        return FieldKind.TEXT
    return None


def _described_as(description: str) -> FieldKind | None:
    """The kind a description states outright, by its first words."""
    start = fold(description)[:80]
    if re.search(r"\b(date|datum|fecha)\b", start) and not re.search(r"\b(amount|number)\b", start):
        return FieldKind.DATE
    if re.search(r"\b(e-?mail)\b", start):
        return FieldKind.EMAIL
    if re.search(r"\b(phone|telephone|telefon)\b", start):
        return FieldKind.PHONE
    return None


def field_kind(name: str, schema: Mapping[str, Any], path: str) -> FieldKind:
    """The kind of a scalar property with a resolved `schema`.

    Raises:
        SchemaError: `x-kind` names no kind.
    """
    explicit = schema.get("x-kind")
    if explicit is not None:
        try:
            return FieldKind(explicit)
        except ValueError as err:
            raise SchemaError(
                f"'x-kind' names no kind of value: {explicit!r} (at {path})",
                hint="one of " + ", ".join(FieldKind),
            ) from err
    options = [o for o in schema.get("enum", ()) if o is not None]
    kinds = [t for t in types_of(schema) if t != "null"]
    if options or "const" in schema:
        return (
            FieldKind.BOOLEAN
            if all(isinstance(o, bool) for o in options) and options
            else FieldKind.ENUM
        )
    words = words_of(name)
    match kinds[0] if kinds else "string":
        case "boolean":
            return FieldKind.BOOLEAN
        case "integer":
            return FieldKind.INTEGER
        case "number":
            as_format = _FORMATS.get(schema.get("format", ""))
            money = as_format is FieldKind.AMOUNT or _is_money_name(words)
            return FieldKind.AMOUNT if money else FieldKind.NUMBER
        case _:
            return (
                _FORMATS.get(schema.get("format", ""))
                or _from_name(words)
                or _described_as(schema.get("description", ""))
                or (FieldKind.TEXT if schema.get("x-multiline") is True else FieldKind.STRING)
            )
