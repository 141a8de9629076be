from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from edge_runtime import resources
from edge_runtime.cli.error_report import SCHEMA_VERSION as ERROR_VERSION
from edge_runtime.cli.output import result_json
from edge_runtime.errors import ErrorCategory, UnreadableInput
from edge_runtime.values import Document, FieldStatus, LineSource, ResultStatus, RunResult


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    path = resources.find_data("pipelines", "result.schema.json")
    assert path is not None
    schema = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_result_matches_the_published_schema(
    result: RunResult, validator: jsonschema.Draft202012Validator
) -> None:
    validator.validate(json.loads(result_json.render_object(result)))
    validator.validate(json.loads(result_json.render_line(result)))


def test_keys_are_the_promised_ones(result: RunResult) -> None:
    found = result_json.result_object(result)
    assert {"status", "degraded", "source", "pages", "data", "fields", "timing", "models",
            "schema_version", "schema", "error"} <= set(found)  # fmt: skip
    assert found["schema"] == "receipt"
    assert found["data"]["total"] == 13.94
    assert found["fields"][1]["evidence"][0]["quad"] == [
        [150.0, 45.0], [195.0, 45.0], [195.0, 60.0], [150.0, 60.0]
    ]  # fmt: skip
    assert found["pages"][0]["lines"][2]["row"] == 1
    assert found["timing"]["stages"][1]["n_tokens"] == 405


def test_a_line_is_one_line(result: RunResult) -> None:
    text = result_json.render_line(result)
    assert text.endswith("\n")
    assert text.count("\n") == 1


def test_failed_result_matches_the_schema(
    result_with: Callable[..., RunResult], validator: jsonschema.Draft202012Validator
) -> None:
    error = UnreadableInput("no picture", hint="look").to_dict()
    failed = result_with(
        status=ResultStatus.FAILED, error=error, fields=(), data=None, document=Document("x", ())
    )
    validator.validate(result_json.result_object(failed))


@pytest.mark.parametrize(
    "damage",
    [
        lambda r: r.pop("timing"),
        lambda r: r.update(status="fine"),
        lambda r: r.update(error={"message": "x"}),
        lambda r: r["fields"][2].update(value="invented"),
        lambda r: r["fields"][0].update(confidence=1.5),
        lambda r: r["pages"][0]["lines"][0].pop("quad"),
        lambda r: r["pages"][0].update(rotation=45),
        lambda r: r.update(schema_version="2.0"),
    ],
)
def test_schema_refuses_other_shapes(
    result: RunResult,
    validator: jsonschema.Draft202012Validator,
    damage: Callable[[dict[str, Any]], None],
) -> None:
    damaged = copy.deepcopy(result_json.result_object(result))
    damage(damaged)
    assert not validator.is_valid(damaged)


def test_schema_names_every_status_and_category(
    validator: jsonschema.Draft202012Validator,
) -> None:
    schema: Any = validator.schema
    assert schema["properties"]["status"]["enum"] == [s.value for s in ResultStatus]
    assert schema["$defs"]["field"]["properties"]["status"]["enum"] == [
        s.value for s in FieldStatus
    ]
    assert schema["$defs"]["line"]["properties"]["source"]["enum"] == [s.value for s in LineSource]
    assert schema["$defs"]["error"]["properties"]["category"]["enum"] == [
        c.value for c in ErrorCategory
    ]
    assert ERROR_VERSION == result_json.SCHEMA_VERSION
    assert schema["$id"].endswith(result_json.SCHEMA_VERSION)
