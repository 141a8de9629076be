"""The short way to write a schema: `{"total": "amount", "items": [{"name": "string"}]}`.

A template names the wanted keys and a kind for each; every value is nullable and every key is
always there. `"date: day of purchase"` adds a description, `"EUR|USD|MYR"` lists options, a list
with one entry is a list, an empty text or null means `string`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edge_runtime.extract.schema import join_path
from edge_runtime.extract.schema_resolving import Schema, schema_error

_KINDS: dict[str, Schema] = {
    "string": {"type": "string"},
    "text": {"type": "string", "x-kind": "text", "x-multiline": True},
    "date": {"type": "string", "format": "date"},
    "amount": {"type": "number", "x-kind": "amount"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "email": {"type": "string", "format": "email"},
    "phone": {"type": "string", "x-kind": "phone"},
    "url": {"type": "string", "format": "uri"},
}
_ALIASES = {
    "": "string",
    "str": "string",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "money": "amount",
    "currency_amount": "amount",
    "int": "integer",
    "bool": "boolean",
    "datetime": "date",
    "uri": "url",
    "multiline": "text",
    "verbatim-string": "string",
}


def is_json_schema(document: Mapping[str, Any]) -> bool:
    """Whether a dictionary is a JSON Schema rather than a template."""
    if any(keyword in document for keyword in ("$schema", "$ref", "$defs", "allOf", "x-open")):
        return True
    return document.get("type") == "object" or isinstance(document.get("properties"), dict)


def template_to_json_schema(template: Mapping[str, Any]) -> Schema:
    """The JSON Schema that a template stands for.

    Raises:
        SchemaError: a kind is unknown or the shape is not one of a template.
    """
    return _object(template, "")


def _object(template: Mapping[str, Any], path: str) -> Schema:
    if not template:
        raise schema_error("The template names no keys", path)
    properties = {name: _value(value, join_path(path, name)) for name, value in template.items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _value(value: Any, path: str) -> Schema:
    if value is None:
        return _nullable(_KINDS["string"])
    if isinstance(value, str):
        return _kind(value, path)
    if isinstance(value, Mapping):
        return _object(value, path)
    if isinstance(value, list):
        return _list(value, path)
    raise schema_error(
        f"A template says what to find, not {value!r}", path, hint='write "number" or "boolean"'
    )


def _list(value: list[Any], path: str) -> Schema:
    if len(value) == 1:
        inner = _value(value[0], f"{path}/0")
        if isinstance(value[0], str):
            inner["type"] = next(t for t in inner["type"] if t != "null")
            if "enum" in inner:
                inner["enum"] = [o for o in inner["enum"] if o is not None]
        return {"type": "array", "items": inner}
    if len(value) > 1 and all(isinstance(option, str) for option in value):
        return {"type": ["string", "null"], "enum": [*value, None]}
    raise schema_error("A list in a template holds one entry, or several options", path)


def _kind(text: str, path: str) -> Schema:
    kind, _, description = (part.strip() for part in text.partition(":"))
    if "|" in kind:
        options = [option.strip() for option in kind.split("|") if option.strip()]
        schema: Schema = {"type": ["string", "null"], "enum": [*options, None]}
    else:
        name = kind.lower().removesuffix("?")
        name = _ALIASES.get(name, name)
        if name not in _KINDS:
            raise schema_error(
                f"The kind {kind!r} is not known", path, hint="one of " + ", ".join(_KINDS)
            )
        schema = _nullable(_KINDS[name])
    if description:
        schema["description"] = description
    return schema


def _nullable(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}
