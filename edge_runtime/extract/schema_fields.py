"""A resolved JSON Schema flattened into the fields and lists that strategies fill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from edge_runtime.extract.confusions import fold
from edge_runtime.extract.field_kinds import field_kind, words_of
from edge_runtime.extract.schema import (
    ArraySpec,
    ExtractionSchema,
    FieldHints,
    FieldKind,
    FieldSpec,
    join_path,
)
from edge_runtime.extract.schema_resolving import (
    Schema,
    resolve_schema,
    schema_error,
    types_of,
)


def build_schema(document: Mapping[str, Any], *, name: str) -> ExtractionSchema:
    """The extraction task that a JSON Schema describes.

    Args:
        document: The schema as written, references and all.
        name: What results call it.

    Raises:
        SchemaError: it is invalid, cannot be honoured, or asks for nothing.
    """
    root = resolve_schema(document)
    kinds = types_of(root)
    if "object" not in kinds:
        raise schema_error("The schema has to describe an object", "#", hint='"type": "object"')
    is_open = _flag(root, "x-open", "#")
    fields: list[FieldSpec] = []
    arrays: list[ArraySpec] = []
    for spec in _walk(root, "", "#"):
        (fields if isinstance(spec, FieldSpec) else arrays).append(spec)  # type: ignore[arg-type]
    if not fields and not arrays and not is_open:
        raise schema_error("The schema asks for nothing: it has no properties", "#")
    return ExtractionSchema(
        name=name,
        title=root.get("title", name),
        root=root,
        fields=tuple(fields),
        arrays=tuple(arrays),
        is_open=bool(is_open),
        description=root.get("description", ""),
    )


def _walk(schema: Schema, prefix: str, where: str) -> Iterator[FieldSpec | ArraySpec]:
    """Specs of all properties below an object, nested objects included."""
    required = set(schema.get("required", ()))
    properties: dict[str, Schema] = schema.get("properties", {})
    for missing in sorted(required - set(properties)):
        raise schema_error(f"The required property {missing!r} is not described", where)
    for name, child in properties.items():
        path = join_path(prefix, name)
        here = f"{where}/properties/{name}"
        kinds = [t for t in types_of(child) if t != "null"]
        if "object" in kinds:
            if not child.get("properties"):
                raise schema_error(
                    "An object without properties cannot be extracted",
                    here,
                    hint="name its properties, or use the preset 'auto' for open keys",
                )
            yield from _walk(child, path, here)
        elif "array" in kinds:
            yield _array(name, child, path, here, required=name in required)
        elif types_of(child) == ["null"]:
            raise schema_error("A property that can only be null holds nothing to extract", here)
        else:
            yield _field(name, child, path, here, required=name in required)


def _array(name: str, schema: Schema, path: str, where: str, *, required: bool) -> ArraySpec:
    items = schema.get("items")
    if not items:
        raise schema_error("A list needs 'items' that say what it holds", where)
    kinds = [t for t in types_of(items) if t != "null"]
    if "array" in kinds:
        raise schema_error("Lists of lists are not supported", f"{where}/items")
    if "object" in kinds:
        inner = list(_walk(items, "", f"{where}/items"))
        nested = next((spec for spec in inner if isinstance(spec, ArraySpec)), None)
        if nested is not None:
            raise schema_error(
                f"A list inside the rows of a list is not supported: {nested.path!r}",
                f"{where}/items",
            )
        fields = tuple(spec for spec in inner if isinstance(spec, FieldSpec))
        if not fields:
            raise schema_error("The rows of a list need properties", f"{where}/items")
    else:
        fields = (_field(name, items, "", f"{where}/items", required=True),)
    return ArraySpec(
        path=path,
        name=name,
        item_fields=fields,
        description=schema.get("description", ""),
        labels=_labels(name, schema, where),
        is_scalar="object" not in kinds,
        nullable="null" in types_of(schema),
        required=required,
        max_items=schema.get("maxItems"),
        json_schema=schema,
    )


def _field(name: str, schema: Schema, path: str, where: str, *, required: bool) -> FieldSpec:
    kind = field_kind(name, schema, where)
    options = tuple(o for o in schema.get("enum", ()) if o is not None)
    if "const" in schema and schema["const"] is not None:
        options = (schema["const"],)
    nullable = "null" in types_of(schema)
    if "enum" in schema:
        nullable = None in schema["enum"] and (nullable or not types_of(schema))
    return FieldSpec(
        path=path,
        name=name,
        kind=kind,
        description=schema.get("description", ""),
        labels=_labels(name, schema, where),
        enum=options,
        nullable=nullable,
        required=required,
        hints=_hints(schema, where, kind),
        json_schema=schema,
    )


def _labels(name: str, schema: Schema, where: str) -> tuple[str, ...]:
    """Words that may stand beside the value: the name, the title, and those the schema lists."""
    title = schema.get("title")
    candidates = [
        " ".join(words_of(name)),
        *([title] if title else []),
        *_texts(schema, "x-labels", where),
    ]
    unique = {fold(label): label for label in reversed(candidates) if label.strip()}
    return tuple(reversed(unique.values()))


def _hints(schema: Schema, where: str, kind: FieldKind) -> FieldHints:
    position: Literal["top", "bottom"] | None = schema.get("x-position")
    if position not in (None, "top", "bottom"):
        raise schema_error('\'x-position\' has to be "top" or "bottom"', where)
    patterns = [
        *([schema["pattern"]] if "pattern" in schema else []),
        *_texts(schema, "x-patterns", where),
    ]
    multiline = _flag(schema, "x-multiline", where)
    locale = schema.get("x-locale")
    if locale is not None and not isinstance(locale, str):
        raise schema_error("'x-locale' has to be a language tag", where)
    return FieldHints(
        position=position,
        multiline=kind is FieldKind.TEXT if multiline is None else multiline,
        patterns=tuple(patterns),
        examples=tuple(str(e) for e in schema.get("examples", ()) if e is not None),
        day_first=_flag(schema, "x-day-first", where),
        free_text=bool(_flag(schema, "x-free-text", where)),
        locale=locale,
    )


def _texts(schema: Schema, keyword: str, where: str) -> list[str]:
    value = schema.get(keyword, [])
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise schema_error(f"{keyword!r} has to be a list of texts", where)
    return list(value)


def _flag(schema: Schema, keyword: str, where: str) -> bool | None:
    value = schema.get(keyword)
    if value is not None and not isinstance(value, bool):
        raise schema_error(f"{keyword!r} has to be true or false", where)
    return value
