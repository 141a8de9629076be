"""What a user wants from a document, as flat field specifications.

`ExtractionSchema.root` stays the standard's word on the shape of the result; `fields` and
`arrays` are what strategies work through. Paths are JSON pointers without the leading slash:
`seller/name`, with `~1` for a slash inside a name and `~0` for a tilde.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal


class FieldKind(StrEnum):
    """What sort of value a field holds; decides candidates and normalising."""

    STRING = "string"
    TEXT = "text"
    DATE = "date"
    AMOUNT = "amount"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    ENUM = "enum"
    EMAIL = "email"
    PHONE = "phone"
    URL = "url"


@dataclass(frozen=True, slots=True)
class FieldHints:
    """Optional knowledge about a field, from the schema's extension keywords.

    `position` (`x-position`): where on the page it usually stands. `multiline` (`x-multiline`):
    the value may run over several lines. `patterns`: regular expressions the printed value has to
    match (`pattern`, `x-patterns`). `day_first` (`x-day-first`): order of an ambiguous date.
    `free_text` (`x-free-text`): the value may be text that is not in the document.
    `locale` (`x-locale`): language tag that decides separators and date order.
    """

    position: Literal["top", "bottom"] | None = None
    multiline: bool = False
    patterns: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    day_first: bool | None = None
    free_text: bool = False
    locale: str | None = None


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One scalar to find.

    `labels` are words that may stand beside the value, the field's own name first. `nullable`
    means that the schema allows null, `required` that the key has to be there; the two are
    independent. `enum` holds the allowed values, empty when anything goes. `json_schema` is the
    resolved schema of this value.
    """

    path: str
    name: str
    kind: FieldKind
    description: str = ""
    labels: tuple[str, ...] = ()
    enum: tuple[Any, ...] = ()
    nullable: bool = False
    required: bool = False
    hints: FieldHints = field(default_factory=FieldHints)
    json_schema: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """A list to find: rows of a table, or plain values.

    `item_fields` have paths relative to one item. A list of scalars has exactly one item field
    with the empty path and `is_scalar` set.
    """

    path: str
    name: str
    item_fields: tuple[FieldSpec, ...]
    description: str = ""
    labels: tuple[str, ...] = ()
    is_scalar: bool = False
    nullable: bool = False
    required: bool = False
    max_items: int | None = None
    json_schema: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ExtractionSchema:
    """A whole extraction task.

    `root` is the resolved JSON Schema (no `$ref`, no `allOf`) that the result conforms to.
    `is_open` marks a schema whose keys are found in the document rather than given (the presets
    `auto` and `form`).
    """

    name: str
    title: str
    root: dict[str, Any]
    fields: tuple[FieldSpec, ...]
    arrays: tuple[ArraySpec, ...] = ()
    is_open: bool = False
    description: str = ""

    def field(self, path: str) -> FieldSpec | None:
        """The field at `path`, or None."""
        return next((spec for spec in self.fields if spec.path == path), None)


def escape_name(name: str) -> str:
    """A property name as one piece of a path (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def unescape_name(piece: str) -> str:
    """The property name behind one piece of a path."""
    return piece.replace("~1", "/").replace("~0", "~")


def join_path(prefix: str, name: str | int) -> str:
    """`prefix` extended by a property name or an item number."""
    piece = str(name) if isinstance(name, int) else escape_name(name)
    return f"{prefix}/{piece}" if prefix else piece
