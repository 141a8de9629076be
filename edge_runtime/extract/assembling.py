"""Extracted fields put together into the object that the user's schema describes.

A value that is absent is null where the schema allows null, and left out where the schema makes
it optional without allowing null. A required value that is absent and may not be null becomes
null all the same and is reported by `missing_required`: nothing is ever made up to fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from edge_runtime.extract.schema import ExtractionSchema, join_path, unescape_name
from edge_runtime.extract.schema_resolving import Schema, types_of
from edge_runtime.values import FieldValue

SCHEMA_VIOLATION = "violates_schema"

_MONEY_DECIMALS = 2
_ABSENT = object()
_Check: TypeAlias = Callable[[Any], bool]


def to_json_type(value: Any, json_schema: Mapping[str, Any]) -> Any:
    """`value` in a type that the property allows: 12.5 as `"12.50"` where text is wanted."""
    kinds = types_of(json_schema)
    if not kinds or value is None:
        return value
    if isinstance(value, bool):
        return value if "boolean" in kinds or "string" not in kinds else str(value).lower()
    if isinstance(value, int | float):
        if "number" in kinds:
            return value
        if "integer" in kinds and float(value).is_integer():
            return int(value)
        if "string" in kinds:
            return _number_text(value)
    return value


def _number_text(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    as_money = f"{value:.{_MONEY_DECIMALS}f}"
    return as_money if math.isclose(float(as_money), value, abs_tol=1e-9) else repr(value)


def violations(value: Any, json_schema: Mapping[str, Any]) -> list[str]:
    """Keywords of a scalar's resolved schema that `value` does not satisfy."""
    checks: dict[str, _Check] = {"enum": _is_one_of(value), "const": _equals(value)}
    checks["type"] = lambda kinds: _has_type(value, types_of({"type": kinds}))
    if isinstance(value, str):
        checks |= _text_checks(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        checks |= _number_checks(value)
    return [k for k, holds in checks.items() if k in json_schema and not holds(json_schema[k])]


def _equals(value: Any) -> _Check:
    return lambda option: _same(value, option)


def _is_one_of(value: Any) -> _Check:
    return lambda options: any(_same(value, option) for option in options)


def _text_checks(value: str) -> dict[str, _Check]:
    return {
        "minLength": lambda n: len(value) >= n,
        "maxLength": lambda n: len(value) <= n,
        "pattern": lambda p: re.search(p, value) is not None,
    }


def _number_checks(value: float) -> dict[str, _Check]:
    return {
        "minimum": lambda n: value >= n,
        "maximum": lambda n: value <= n,
        "exclusiveMinimum": lambda n: value > n,
        "exclusiveMaximum": lambda n: value < n,
        "multipleOf": lambda n: _is_multiple(value, n),
    }


def _same(a: Any, b: Any) -> bool:
    """Equality of JSON values: `True` is not 1."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def _has_type(value: Any, kinds: list[str]) -> bool:
    if value is None:
        return "null" in kinds
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, int):
        return "integer" in kinds or "number" in kinds
    if isinstance(value, float):
        return "number" in kinds or ("integer" in kinds and value.is_integer())
    if isinstance(value, str):
        return "string" in kinds
    return ("array" if isinstance(value, list) else "object") in kinds


def _is_multiple(value: float, of: float) -> bool:
    ratio = value / of
    return math.isclose(ratio, round(ratio), abs_tol=1e-9)


def assemble(schema: ExtractionSchema, fields: Iterable[FieldValue]) -> Any:
    """The plain `data` object.

    A value that violates its own schema (too long, out of range) counts as absent here; it stays
    readable in its field.
    """
    by_path = {field.path: field for field in fields}
    data = _object(schema.root, "", by_path)
    if schema.is_open:
        _add_open_keys(schema, data, by_path)
    return data


def _object(schema: Schema, prefix: str, by_path: Mapping[str, FieldValue]) -> dict[str, Any]:
    required = set(schema.get("required", ()))
    data: dict[str, Any] = {}
    for name, child in schema.get("properties", {}).items():
        value = _value(child, join_path(prefix, name), by_path)
        if value is not _ABSENT:
            data[name] = value
        elif _allows_null(child) or name in required:
            data[name] = None
    return data


def _value(schema: Schema, path: str, by_path: Mapping[str, FieldValue]) -> Any:
    kinds = types_of(schema)
    if "object" in kinds:
        inner = _object(schema, path, by_path)
        has_value = any(v is not None and v != {} for v in inner.values())
        return inner if has_value or "null" not in kinds else _ABSENT
    if "array" in kinds:
        return _array(schema, path, by_path)
    field = by_path.get(path)
    if field is None or field.value is None:
        return _ABSENT
    value = to_json_type(field.value, schema)
    return _ABSENT if violations(value, schema) else value


def _array(schema: Schema, path: str, by_path: Mapping[str, FieldValue]) -> Any:
    prefix = f"{path}/"
    numbers = sorted(
        {
            int(piece)
            for key, field in by_path.items()
            if key.startswith(prefix)
            and field.value is not None
            and (piece := key[len(prefix) :].split("/", maxsplit=1)[0]).isdigit()
        }
    )
    items = [_value(schema["items"], join_path(path, n), by_path) for n in numbers]
    found = [item for item in items if item is not _ABSENT]
    limit = schema.get("maxItems")
    if not found and "null" in types_of(schema):
        return _ABSENT
    return found[:limit] if limit is not None else found


def _allows_null(schema: Schema) -> bool:
    if "enum" in schema:
        return None in schema["enum"]
    return "null" in types_of(schema) or not types_of(schema)


def _add_open_keys(
    schema: ExtractionSchema, data: dict[str, Any], by_path: Mapping[str, FieldValue]
) -> None:
    """Keys found in the document; a key that stands there several times gets a list."""
    named = {spec.path for spec in schema.fields}
    lists = tuple(f"{spec.path}/" for spec in schema.arrays)
    for path, field in by_path.items():
        if path in named or path.startswith(lists) or field.value is None:
            continue
        first, *rest = path.split("/")
        key = unescape_name(first)
        if rest:
            data.setdefault(key, []).append(field.value)
        else:
            data[key] = field.value


def in_order_of(data: Any, fields: Iterable[FieldValue]) -> tuple[FieldValue, ...]:
    """Fields in the order of the assembled data; they are decided in another."""
    order = {path: number for number, path in enumerate(_paths(data, ""))}
    return tuple(sorted(fields, key=lambda field: order.get(field.path, len(order))))


def _paths(data: Any, prefix: str) -> Iterator[str]:
    if prefix:
        yield prefix
    if isinstance(data, dict):
        for name, value in cast("dict[str, Any]", data).items():
            yield from _paths(value, join_path(prefix, name))
    elif isinstance(data, list):
        for number, value in enumerate(cast("list[Any]", data)):
            yield from _paths(value, join_path(prefix, number))


def missing_required(schema: ExtractionSchema, data: Any) -> tuple[str, ...]:
    """Paths in assembled `data` that the schema forbids to be null, or lists that are too short.

    While this is not empty, `data` cannot satisfy the schema.
    """
    return tuple(_unmet(schema.root, data, ""))


def _unmet(schema: Schema, data: Any, path: str) -> Iterator[str]:
    if data is None:
        if not _allows_null(schema):
            yield path
    elif isinstance(data, dict):
        for name, child in schema.get("properties", {}).items():
            if name in data:
                yield from _unmet(child, data[name], join_path(path, name))
    elif isinstance(data, list) and "items" in schema:
        if len(cast("list[Any]", data)) < schema.get("minItems", 0):
            yield path
        for number, item in enumerate(cast("list[Any]", data)):
            yield from _unmet(schema["items"], item, join_path(path, number))
