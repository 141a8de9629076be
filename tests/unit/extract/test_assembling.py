from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_runtime.extract.assembling import assemble, missing_required, to_json_type, violations
from edge_runtime.extract.schema_loading import load_schema
from edge_runtime.values import FieldStatus, FieldValue


def found(path: str, value: Any) -> FieldValue:
    status = FieldStatus.MISSING if value is None else FieldStatus.OK
    return FieldValue(path, value, None, 1.0, status)


SALE = load_schema(
    {
        "type": "object",
        "properties": {
            "total": {"type": "number"},
            "date": {"type": ["string", "null"], "format": "date"},
            "shop": {"type": "string", "maxLength": 10},
            "note": {"type": "string"},
            "buyer": {
                "type": ["object", "null"],
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
            "items": {
                "type": "array",
                "maxItems": 2,
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "n": {"type": ["integer", "null"]}},
                },
            },
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["total", "date", "shop", "items"],
    }
)


def test_absent_values_are_null_or_left_out_as_the_schema_says() -> None:
    data = assemble(SALE, [])
    assert data == {
        "total": None,
        "date": None,
        "shop": None,
        "buyer": None,
        "items": [],
        "tags": [],
    }
    assert missing_required(SALE, data) == ("total", "shop")


def test_a_complete_result_validates() -> None:
    fields = [
        found("total", 12.5),
        found("shop", "ACME"),
        found("buyer/name", "Jo"),
        found("items/0/name", "Tea"),
        found("items/0/n", 2),
        found("items/1/n", None),
        found("items/2/name", "Milk"),
        found("tags/0", "red"),
    ]
    data = assemble(SALE, fields)
    jsonschema.validate(data, SALE.root)
    assert data == {
        "total": 12.5,
        "date": None,
        "shop": "ACME",
        "buyer": {"name": "Jo"},
        "items": [{"name": "Tea", "n": 2}, {"name": "Milk", "n": None}],
        "tags": ["red"],
    }
    assert missing_required(SALE, data) == ()


def test_values_that_violate_the_schema_stay_out_of_the_data() -> None:
    data = assemble(SALE, [found("shop", "a name that is too long"), found("total", "12")])
    assert data["shop"] is None
    assert data["total"] is None


def test_lists_keep_to_their_limit_and_report_being_short() -> None:
    rows = [found(f"items/{n}/name", str(n)) for n in range(12)]
    assert [row["name"] for row in assemble(SALE, rows)["items"]] == ["0", "1"]
    schema = load_schema(
        {
            "type": "object",
            "properties": {"t": {"type": "array", "minItems": 1, "items": {"type": "string"}}},
        }
    )
    assert missing_required(schema, assemble(schema, [])) == ("t",)


def test_open_schemas_take_the_keys_of_the_document() -> None:
    schema = load_schema("auto")
    data = assemble(
        schema, [found("Name", "Jo"), found("a~1b", "x"), found("Tel/0", "1"), found("Tel/1", "2")]
    )
    assert data == {"Name": "Jo", "a/b": "x", "Tel": ["1", "2"]}
    jsonschema.validate(data, schema.root)


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (12.5, {"type": "string"}, "12.50"),
        (3.125, {"type": "string"}, "3.125"),
        (3, {"type": ["string", "null"]}, "3"),
        (3.0, {"type": "integer"}, 3),
        (3.5, {"type": "integer"}, 3.5),
        (True, {"type": "string"}, "true"),
        (None, {"type": "string"}, None),
        ("x", {"type": "number"}, "x"),
        (1.5, {}, 1.5),
    ],
)
def test_values_take_the_type_that_is_wanted(
    value: Any, schema: dict[str, Any], expected: Any
) -> None:
    assert to_json_type(value, schema) == expected


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-50, 50), st.floats(-50, 50), st.text(max_size=5)
)
CONSTRAINTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "number", "integer", "boolean", ["string", "null"]]),
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "minLength": st.integers(0, 4),
        "maxLength": st.integers(0, 4),
        "pattern": st.sampled_from(["a", "^b", "[0-9]+"]),
        "minimum": st.integers(-9, 9),
        "maximum": st.integers(-9, 9),
        "exclusiveMinimum": st.integers(-9, 9),
        "exclusiveMaximum": st.integers(-9, 9),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
    },
)


@given(SCALARS, CONSTRAINTS)
def test_violations_agree_with_a_reference_validator(value: Any, schema: dict[str, Any]) -> None:
    expected = {
        error.validator for error in jsonschema.Draft202012Validator(schema).iter_errors(value)
    }
    ours = set(violations(value, schema))
    assert ours - {"multipleOf"} == expected - {"multipleOf"}
