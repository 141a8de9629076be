"""JSON Schema (2020-12 and draft 7) into one self-contained tree that extraction can walk.

References are inlined, `allOf` is merged, and a union with null becomes a nullable type, so that
the result holds no `$ref`, `$defs` or `allOf`. Anything that could not be honoured is an error
with its place; nothing is ignored silently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from edge_runtime.errors import SchemaError
from edge_runtime.extract.schema import unescape_name

Schema: TypeAlias = dict[str, Any]

SCHEMA_HINT = "edge-run schema show receipt prints a schema that works"

TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_ANNOTATIONS = frozenset(
    {
        "title", "description", "default", "examples", "format", "deprecated", "readOnly",
        "writeOnly", "$schema", "$id", "$comment", "$anchor", "contentMediaType",
        "contentEncoding",
    }
)  # fmt: skip
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
_STRUCTURE = frozenset(
    {
        "type", "enum", "const", "properties", "required", "additionalProperties", "items",
        "uniqueItems", "pattern", "$ref", "$defs", "definitions", "allOf", "anyOf", "oneOf",
    }
)  # fmt: skip
_KNOWN = _ANNOTATIONS | _NUMBERS | _COUNTS | _STRUCTURE
_HINTS = {
    "nullable": 'write "type": ["string", "null"] instead',
    "not": "say what is allowed instead of what is not",
    "if": "write one schema that covers both cases",
    "patternProperties": "name the properties, or use the preset 'auto' for open keys",
}
_MAX_DEPTH = 24


def schema_error(message: str, path: str, *, hint: str | None = None) -> SchemaError:
    """An error that names the place in the user's schema."""
    where = path or "#"
    return SchemaError(f"{message} (at {where})", hint=hint or SCHEMA_HINT, details={"path": where})


def resolve_schema(document: Mapping[str, Any]) -> Schema:
    """`document` without references, merges and null unions.

    Raises:
        SchemaError: a keyword is unknown or unsupported, malformed, or a reference is recursive,
            missing or remote.
    """
    return _Resolver(dict(document)).resolve(dict(document), "#", ())


class _Resolver:
    def __init__(self, document: Schema) -> None:
        self._document = document

    def resolve(self, node: Any, path: str, trail: tuple[str, ...]) -> Schema:
        if node is True:
            return {}
        if not isinstance(node, dict):
            raise schema_error("A schema has to be an object", path)
        if path.count("/") > 4 * _MAX_DEPTH or len(trail) > _MAX_DEPTH:
            raise schema_error("The schema is nested too deeply", path)
        schema = cast("Schema", node)
        check_keywords(schema, path)
        left_out = {"$defs", "definitions", "allOf", "$ref"}
        result = {k: v for k, v in schema.items() if k not in left_out}
        self._resolve_children(result, path, trail)
        result = self._flatten_union(result, path, trail)
        if "$ref" in schema:
            target = self._follow(schema["$ref"], path, trail)
            result = merge(target, result, path, prefer_second=True)
        for number, part in enumerate(schema.get("allOf", ())):
            where = f"{path}/allOf/{number}"
            result = merge(result, self.resolve(part, where, trail), where)
        return result

    def _follow(self, reference: str, path: str, trail: tuple[str, ...]) -> Schema:
        if reference in trail:
            chain = " -> ".join((*trail[trail.index(reference) :], reference))
            raise schema_error(
                f"The schema refers to itself: {chain}",
                path,
                hint="extraction needs a tree of fixed depth; write the levels out",
            )
        return self.resolve(self._look_up(reference, path), reference, (*trail, reference))

    def _look_up(self, reference: str, path: str) -> Any:
        if reference == "#":
            return self._document
        if not reference.startswith("#/"):
            raise schema_error(
                f"The reference {reference!r} leaves the file",
                path,
                hint="copy the definition into $defs; schemas are not fetched",
            )
        node: Any = self._document
        for piece in reference[2:].split("/"):
            name = unescape_name(piece)
            if (
                isinstance(node, list)
                and name.isdigit()
                and int(name) < len(cast("list[Any]", node))
            ):
                node = node[int(name)]
            elif isinstance(node, dict) and name in node:
                node = cast("Any", node[name])
            else:
                raise schema_error(f"The reference {reference!r} points to nothing", path)
        return node

    def _resolve_children(self, schema: Schema, path: str, trail: tuple[str, ...]) -> None:
        properties = schema.get("properties")
        if properties is not None:
            schema["properties"] = {
                name: self.resolve(child, f"{path}/properties/{name}", trail)
                for name, child in properties.items()
            }
        if "items" in schema:
            schema["items"] = self.resolve(schema["items"], f"{path}/items", trail)
        if isinstance(schema.get("additionalProperties"), dict):
            schema["additionalProperties"] = self.resolve(
                schema["additionalProperties"], f"{path}/additionalProperties", trail
            )

    def _flatten_union(self, schema: Schema, path: str, trail: tuple[str, ...]) -> Schema:
        for keyword in ("anyOf", "oneOf"):
            parts = schema.pop(keyword, None)
            if parts is None:
                continue
            branches = [
                self.resolve(part, f"{path}/{keyword}/{i}", trail) for i, part in enumerate(parts)
            ]
            united = _unite(branches, f"{path}/{keyword}")
            schema = merge(united, schema, path, prefer_second=True)
        return schema


def check_keywords(schema: Schema, path: str) -> None:
    """Refuse keywords that are unknown, unsupported or malformed."""
    for keyword, value in schema.items():
        if keyword not in _KNOWN and not keyword.startswith("x-"):
            raise schema_error(
                f"The keyword {keyword!r} is not supported", path, hint=_HINTS.get(keyword)
            )
        problem = _problem_with(keyword, value)
        if problem:
            raise schema_error(f"{keyword!r} {problem}", path)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(cast("list[Any]", value))


def _are_types(value: Any) -> bool:
    names = cast("list[Any]", value if isinstance(value, list) else [value])
    return bool(names) and all(isinstance(n, str) and n in TYPES for n in names)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in cast("list[Any]", value))


_RULES: tuple[tuple[frozenset[str], Callable[[Any], bool], str], ...] = (
    (frozenset({"type"}), _are_types, "names no JSON type"),
    (
        frozenset({"properties", "$defs", "definitions"}),
        lambda v: isinstance(v, dict),
        "has to be an object",
    ),
    (frozenset({"required"}), _are_names, "has to be a list of property names"),
    (frozenset({"enum"}), _is_list, "has to be a list with options"),
    (frozenset({"allOf", "anyOf", "oneOf"}), _is_list, "has to be a list of schemas"),
    (frozenset({"items"}), lambda v: isinstance(v, dict | bool), "has to be one schema"),
    (
        frozenset({"additionalProperties"}),
        lambda v: isinstance(v, dict | bool),
        "has to be a schema or a boolean",
    ),
    (
        frozenset({"pattern", "$ref", "title", "description", "format", "$schema", "$id"}),
        lambda v: isinstance(v, str),
        "has to be a text",
    ),
    (frozenset({"uniqueItems"}), lambda v: isinstance(v, bool), "has to be true or false"),
    (_NUMBERS, _is_number, "has to be a number"),
    (_COUNTS, _is_count, "has to be a whole number, 0 or more"),
)


def _problem_with(keyword: str, value: Any) -> str | None:
    """What is wrong with a keyword's value, by the JSON Schema meta-schema, or None."""
    for keywords, is_right, problem in _RULES:
        if keyword in keywords and not is_right(value):
            return f"{problem}: {value!r}"[:200]
    return _problem_with_pattern(value) if keyword == "pattern" else None


def _problem_with_pattern(value: str) -> str | None:
    try:
        re.compile(value)
    except re.error as err:
        return f"is not a regular expression: {err}"
    return None


def types_of(schema: Mapping[str, Any]) -> list[str]:
    """The JSON types that a resolved schema allows; empty when it leaves them open."""
    declared = schema.get("type")
    if declared is not None:
        return [declared] if isinstance(declared, str) else list(declared)
    if "properties" in schema:
        return ["object"]
    if "items" in schema:
        return ["array"]
    return []


def merge(first: Schema, second: Schema, path: str, *, prefer_second: bool = False) -> Schema:
    """Both schemas at once, as `allOf` demands.

    Annotations of `second` win with `prefer_second` (siblings of a `$ref` describe the use).
    """
    result = dict(first)
    for keyword, value in second.items():
        if keyword not in result or result[keyword] == value:
            result[keyword] = value
        else:
            result[keyword] = _merge_keyword(
                keyword, result[keyword], value, path, prefer_second=prefer_second
            )
    return result


def _merge_keyword(keyword: str, a: Any, b: Any, path: str, *, prefer_second: bool) -> Any:
    if keyword in _ANNOTATIONS or keyword.startswith("x-"):
        return b if prefer_second else a
    if keyword == "properties":
        return {
            name: merge(a[name], b[name], path) if name in a and name in b else {**b, **a}[name]
            for name in dict.fromkeys([*a, *b])
        }
    if keyword == "required":
        return list(dict.fromkeys([*a, *b]))
    if keyword == "type":
        return _common_types(a, b, path)
    if keyword == "enum":
        both = [option for option in a if option in b]
        if both:
            return both
    if keyword in {"minimum", "exclusiveMinimum", "minLength", "minItems"}:
        return max(a, b)
    if keyword in {"maximum", "exclusiveMaximum", "maxLength", "maxItems"}:
        return min(a, b)
    if keyword == "additionalProperties" and (a is False or b is False):
        return False
    raise schema_error(f"Two values of {keyword!r} cannot both hold: {a!r} and {b!r}", path)


def _common_types(a: Any, b: Any, path: str) -> Any:
    first = [a] if isinstance(a, str) else list(a)
    second = [b] if isinstance(b, str) else list(b)
    both = [name for name in first if name in second]
    if not both and {"number", "integer"} <= {*first, *second}:
        both = ["integer"]
    if not both:
        raise schema_error(f"No value is both {a!r} and {b!r}", path)
    return both[0] if len(both) == 1 else both


def _unite(branches: list[Schema], path: str) -> Schema:
    """One schema for a union: nullable types, options, and alternatives between scalars."""
    others = [b for b in branches if types_of(b) != ["null"] and b.get("const", 0) is not None]
    nullable = len(others) < len(branches)
    if not others:
        return {"type": "null"}
    if len(others) > 1 and all("const" in b or "enum" in b for b in others):
        options = [o for b in others for o in (b["enum"] if "enum" in b else [b["const"]])]
        kinds = list(dict.fromkeys(t for b in others for t in types_of(b)))
        united: Schema = {"enum": list(dict.fromkeys(options))}
        if kinds:
            united["type"] = kinds[0] if len(kinds) == 1 else kinds
    elif len(others) > 1:
        united = _unite_scalars(others, path)
    else:
        united = dict(others[0])
    return _made_nullable(united) if nullable else united


def _unite_scalars(branches: list[Schema], path: str) -> Schema:
    """Alternatives between plain values: the first that is not text says what to look for."""
    kinds = [t for b in branches for t in types_of(b)]
    if not kinds or {"object", "array"} & set(kinds) or any(not types_of(b) for b in branches):
        raise schema_error(
            "A choice between objects, lists or untyped schemas is not supported",
            path,
            hint="write one schema that covers the cases, with nullable properties",
        )
    chosen = next((b for b in branches if "string" not in types_of(b)), branches[0])
    rest = [t for t in dict.fromkeys(kinds) if t not in types_of(chosen)]
    result = dict(chosen)
    result["type"] = [*types_of(chosen), *rest]
    return result


def _made_nullable(schema: Schema) -> Schema:
    result = dict(schema)
    if "const" in result:
        result["enum"] = [result.pop("const")]
    if "enum" in result and None not in result["enum"]:
        result["enum"] = [*result["enum"], None]
    kinds = types_of(result)
    if kinds and "null" not in kinds:
        result["type"] = [*kinds, "null"]
    return result
