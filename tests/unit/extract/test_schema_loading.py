from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
from pathlib import Path
from typing import Any

import jsonschema
import pydantic
import pytest

from edge_runtime.errors import SchemaError
from edge_runtime.extract.schema import ExtractionSchema, FieldKind
from edge_runtime.extract.schema_loading import load_schema, preset_names


def schema_of(properties: dict[str, Any], **more: Any) -> ExtractionSchema:
    return load_schema({"type": "object", "properties": properties, **more})


def kinds(schema: ExtractionSchema) -> dict[str, FieldKind]:
    return {field.path: field.kind for field in schema.fields}


@pytest.mark.parametrize("name", ["auto", "form", "id-card", "invoice", "receipt"])
def test_presets_load_and_are_valid_json_schemas(name: str) -> None:
    schema = load_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema.root)
    assert schema.name == name
    assert schema.is_open == (name in {"auto", "form"})
    assert name in preset_names()


def test_references_merges_and_nullable_unions_are_resolved() -> None:
    schema = load_schema(
        {
            "type": "object",
            "properties": {
                "seller": {"$ref": "#/$defs/Party", "description": "who sells"},
                "currency": {"anyOf": [{"$ref": "#/$defs/Currency"}, {"type": "null"}]},
                "due": {"allOf": [{"type": ["string", "null"]}, {"format": "date"}]},
            },
            "required": ["seller"],
            "$defs": {
                "Party": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "vat id": {"type": "string"}},
                    "required": ["name"],
                },
                "Currency": {"type": "string", "enum": ["EUR", "USD"]},
            },
        }
    )
    assert kinds(schema) == {
        "seller/name": FieldKind.STRING,
        "seller/vat id": FieldKind.STRING,
        "currency": FieldKind.ENUM,
        "due": FieldKind.DATE,
    }
    currency = schema.field("currency")
    assert currency is not None
    assert (currency.enum, currency.nullable, currency.required) == (("EUR", "USD"), True, False)
    assert "$ref" not in json.dumps(schema.root)


def test_optional_and_nullable_are_kept_apart() -> None:
    schema = schema_of(
        {
            "must": {"type": "string"},
            "may_be_null": {"type": ["string", "null"]},
            "may_be_left_out": {"type": "string"},
        },
        required=["must", "may_be_null"],
    )
    flags = {f.path: (f.required, f.nullable) for f in schema.fields}
    assert flags == {
        "must": (True, False),
        "may_be_null": (True, True),
        "may_be_left_out": (False, False),
    }


def test_an_enum_without_null_is_not_nullable_whatever_the_type_says() -> None:
    schema = schema_of({"size": {"type": ["string", "null"], "enum": ["S", "M"]}})
    assert not schema.fields[0].nullable


@pytest.mark.parametrize(
    ("name", "child", "kind"),
    [
        ("total", {"type": "number"}, FieldKind.AMOUNT),
        ("unitPrice", {"type": "number"}, FieldKind.AMOUNT),
        ("total", {"type": "string"}, FieldKind.AMOUNT),
        ("weight", {"type": "number"}, FieldKind.NUMBER),
        ("tax_rate", {"type": "number"}, FieldKind.NUMBER),
        ("quantity", {"type": "integer"}, FieldKind.INTEGER),
        ("paid", {"type": "boolean"}, FieldKind.BOOLEAN),
        ("due_date", {"type": "string"}, FieldKind.DATE),
        ("Rechnungsdatum", {"type": "string"}, FieldKind.DATE),
        ("candidate", {"type": "string"}, FieldKind.STRING),
        ("tax_id", {"type": "string"}, FieldKind.STRING),
        ("invoice_number", {"type": "string"}, FieldKind.STRING),
        ("when", {"type": "string", "description": "Date of the visit"}, FieldKind.DATE),
        ("when", {"type": "string", "format": "date-time"}, FieldKind.DATE),
        ("contact", {"type": "string", "format": "email"}, FieldKind.EMAIL),
        ("phone", {"type": "string"}, FieldKind.PHONE),
        ("website", {"type": "string"}, FieldKind.URL),
        ("billing_address", {"type": "string"}, FieldKind.TEXT),
        ("x", {"type": "string", "x-kind": "amount"}, FieldKind.AMOUNT),
        ("sex", {"enum": ["F", "M"]}, FieldKind.ENUM),
        ("anything", {}, FieldKind.STRING),
    ],
)
def test_kinds_follow_from_type_format_and_name(
    name: str, child: dict[str, Any], kind: FieldKind
) -> None:
    assert schema_of({name: child}).fields[0].kind is kind


def test_lists_of_objects_and_of_scalars() -> None:
    schema = schema_of(
        {
            "items": {
                "type": "array",
                "maxItems": 3,
                "items": {"type": "object", "properties": {"name": {"type": "string"}}},
            },
            "tags": {"type": "array", "items": {"type": "string"}},
        }
    )
    items, tags = schema.arrays
    assert [f.path for f in items.item_fields] == ["name"]
    assert (items.is_scalar, items.max_items) == (False, 3)
    assert (tags.is_scalar, [f.path for f in tags.item_fields]) == (True, [""])


def test_extension_keywords_become_hints() -> None:
    schema = schema_of(
        {
            "shop": {
                "type": "string",
                "title": "Shop name",
                "pattern": "^S",
                "x-labels": ["store"],
                "x-position": "top",
                "x-multiline": True,
                "x-day-first": True,
                "x-free-text": True,
                "x-locale": "de",
            }
        }
    )
    field = schema.fields[0]
    assert field.labels == ("shop", "Shop name", "store")
    assert field.hints.position == "top"
    assert field.hints.patterns == ("^S",)
    assert field.hints.multiline
    assert field.hints.day_first
    assert field.hints.free_text
    assert field.hints.locale == "de"


def test_names_with_slashes_are_escaped() -> None:
    assert schema_of({"a/b~c": {"type": "string"}}).fields[0].path == "a~1b~0c"


@pytest.mark.parametrize(
    ("child", "named"),
    [
        ({"type": "strin"}, "strin"),
        ({"type": "object", "patternProperties": {}}, "patternProperties"),
        ({"not": {}}, "'not'"),
        ({"type": "string", "foo": 1}, "'foo'"),
        ({"type": "string", "pattern": "("}, "'pattern'"),
        ({"type": "string", "minLength": -1}, "'minLength'"),
        ({"type": "number", "minimum": "3"}, "'minimum'"),
        ({"enum": []}, "'enum'"),
        ({"$ref": "https://example.org/x.json"}, "leaves the file"),
        ({"$ref": "#/$defs/Nothing"}, "points to nothing"),
        ({"type": "array"}, "'items'"),
        (
            {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
            "Lists of lists",
        ),
        ({"type": "object"}, "without properties"),
        ({"type": "null"}, "null"),
        ({"allOf": [{"type": "string"}, {"type": "number"}]}, "both"),
        ({"anyOf": [{"type": "object"}, {"type": "string"}]}, "choice"),
        ({"type": "string", "x-position": "left"}, "x-position"),
        ({"type": "string", "x-labels": "store"}, "x-labels"),
        ({"type": "string", "x-kind": "colour"}, "x-kind"),
    ],
)
def test_what_cannot_be_honoured_is_named_with_its_place(child: dict[str, Any], named: str) -> None:
    with pytest.raises(SchemaError) as caught:
        schema_of({"child": child})
    assert named in caught.value.message
    assert "child" in caught.value.message


def test_recursion_is_refused_with_its_chain() -> None:
    with pytest.raises(SchemaError, match=r"refers to itself: #/\$defs/A -> #/\$defs/A"):
        load_schema(
            {
                "$ref": "#/$defs/A",
                "$defs": {"A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/A"}}}},
            }
        )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"type": "object", "properties": {}}, "asks for nothing"),
        ({"$schema": "x", "type": "array", "items": {"type": "string"}}, "describe an object"),
        ({"type": "object", "required": ["a"], "properties": {"b": {}}}, "'a' is not described"),
    ],
)
def test_schemas_that_ask_for_nothing_are_refused(document: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        load_schema(document)


def test_a_template_gives_nullable_keys_that_are_always_there() -> None:
    schema = load_schema(
        '{"total": "float", "date": "date: day of sale", "currency": "EUR|USD",'
        ' "seller": {"vat_id": "string", "mail": "email?"}, "note": "", "tags": ["string"],'
        ' "items": [{"name": "string", "price": "amount"}]}'
    )
    assert kinds(schema) == {
        "total": FieldKind.AMOUNT,
        "date": FieldKind.DATE,
        "currency": FieldKind.ENUM,
        "seller/vat_id": FieldKind.STRING,
        "seller/mail": FieldKind.EMAIL,
        "note": FieldKind.TEXT,
    }
    assert all(field.nullable and field.required for field in schema.fields)
    assert schema.fields[1].description == "day of sale"
    assert [array.path for array in schema.arrays] == ["tags", "items"]
    jsonschema.Draft202012Validator.check_schema(schema.root)


@pytest.mark.parametrize("template", ['{"a": "strin"}', '{"a": 3}', '{"a": []}', "{}"])
def test_a_bad_template_is_refused(template: str) -> None:
    with pytest.raises(SchemaError):
        load_schema(template)


def test_files_hold_schemas_or_templates(tmp_path: Path) -> None:
    path = tmp_path / "sale.schema.json"
    path.write_text('{"total": "amount"}', encoding="utf-8-sig")
    assert load_schema(str(path)).name == "sale"
    assert load_schema(path).fields[0].kind is FieldKind.AMOUNT


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe", b'{"a": ' * 3000])
def test_broken_files_are_schema_errors(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(SchemaError):
        load_schema(path)


@pytest.mark.parametrize(
    "ref", ["no-such-preset", "", "missing.json", "json:nothing", "no_module_x:A"]
)
def test_what_is_not_there_is_a_schema_error_with_a_hint(ref: str) -> None:
    with pytest.raises(SchemaError):
        load_schema(ref)


class Currency(enum.Enum):
    EURO = "EUR"
    DOLLAR = "USD"


class Row(pydantic.BaseModel):
    name: str
    price: decimal.Decimal


class Sale(pydantic.BaseModel):
    total: float
    due_date: dt.date | None
    currency: Currency | None = None
    rows: list[Row]


def test_pydantic_classes_are_read_and_their_data_fits() -> None:
    schema = load_schema(Sale)
    assert schema.name == "Sale"
    assert kinds(schema) == {
        "total": FieldKind.AMOUNT,
        "due_date": FieldKind.DATE,
        "currency": FieldKind.ENUM,
    }
    assert [f.kind for f in schema.arrays[0].item_fields] == [FieldKind.STRING, FieldKind.AMOUNT]


def test_a_class_is_found_in_a_module_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_documents_for_test.py").write_text(
        "import pydantic\n\n\nclass Bill(pydantic.BaseModel):\n    total: float\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    schema = load_schema("my_documents_for_test:Bill")
    assert schema.fields[0].path == "total"


def test_a_class_that_is_no_model_is_refused() -> None:
    with pytest.raises(SchemaError, match="pydantic"):
        load_schema("os:path")


@pytest.mark.parametrize(
    "ref",
    [
        "x" * 5000,
        "~no-such-user-here/s.json",
        "{bad",
        "{}",
        '{"type": "object"}',
        '{"type": "object", "properties": {"a": false}}',
        '{"type": "object", "properties": {"a": {"type": "strnig"}}}',
        "edge_runtime.errors:Nope",
        '{"a":' * 5000,
    ],
)
def test_every_refusal_has_a_hint(ref: str) -> None:
    with pytest.raises(SchemaError) as caught:
        load_schema(ref)
    assert caught.value.hint


def test_something_that_is_no_schema_at_all_is_refused() -> None:
    nonsense: Any = 5
    with pytest.raises(SchemaError, match="int is not a schema"):
        load_schema(nonsense)
