from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from edge_runtime import resources
from edge_runtime.config import Recipe, ReviewSettings, load_recipe, parse_recipe, recipe_names
from edge_runtime.errors import ConfigError
from edge_runtime.extract.review import ReviewRules
from edge_runtime.extract.schema_loading import load_schema

FOLDERS = resources.data_roots("pipelines")


@pytest.mark.parametrize("name", recipe_names(FOLDERS))
def test_shipped_recipes_load_and_name_schemas_that_exist(name: str) -> None:
    recipe = load_recipe(name, folders=FOLDERS)
    assert recipe.name == name
    load_schema(recipe.extraction.schema_ref)


def test_the_document_recipe_runs_all_stages() -> None:
    assert load_recipe("document", folders=FOLDERS).stages == (
        "load",
        "orient",
        "recognise",
        "extract",
    )


def test_review_defaults_are_those_of_the_rules() -> None:
    assert load_recipe("document", folders=FOLDERS).extraction.review is None
    assert ReviewRules(**ReviewSettings().model_dump()) == ReviewRules()


def test_a_recipe_cannot_be_changed() -> None:
    recipe = load_recipe("text", folders=FOLDERS)
    with pytest.raises(ValidationError):
        recipe.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"name": "x", "stages": ["load"], "foo": 1}, "foo"),
        ({"name": "x", "stages": ["load"], "input": {"dip": 3}}, "input.dip"),
        ({"name": "x", "stages": ["load"], "input": {"dpi": "200"}}, "input.dpi"),
        ({"name": "x", "stages": ["load"], "input": {"dpi": 5}}, "input.dpi"),
        ({"name": "x", "stages": []}, "stages"),
        ({"name": "x", "stages": ["load", "guess"]}, "stages.1"),
        ({"name": "x", "stages": ["recognise", "load"]}, "order"),
        ({"name": "x", "stages": ["load", "load"]}, "distinct"),
        ({"name": "x", "stages": ["recognise"]}, "first stage"),
        ({"name": "x", "stages": ["load", "extract"]}, "needs 'recognise'"),
        ({"name": "Not A Name", "stages": ["load"]}, "name"),
        ({"stages": ["load"]}, "name"),
        (
            {
                "name": "x",
                "stages": ["load"],
                "extraction": {"review": {"ok_confidence": 1.5}},
            },
            "extraction.review.ok_confidence",
        ),
    ],
)
def test_what_cannot_be_used_is_named(content: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_recipe(content)
    assert problem in caught.value.message
    assert caught.value.exit_code == 2


def test_every_problem_is_listed() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_recipe({"name": "x", "stages": ["load"], "a": 1, "b": 2})
    assert len(caught.value.details["problems"]) == 2


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\nstages = ["load", "recognise", "extract"]\n'
        '[extraction]\nschema = "receipt"\n[extraction.review]\ntolerated = ["ambiguous_date"]\n',
        encoding="utf-8",
    )
    recipe = load_recipe(path)
    assert isinstance(recipe, Recipe)
    assert recipe.extraction.schema_ref == "receipt"
    assert recipe.extraction.review is not None
    assert recipe.extraction.review.tolerated == {"ambiguous_date"}


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe\x00"])
def test_a_file_that_is_not_toml(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="not TOML"):
        load_recipe(path)


def test_no_such_recipe_names_those_that_exist() -> None:
    with pytest.raises(ConfigError) as caught:
        load_recipe("nothing-like-it", folders=FOLDERS)
    assert "document" in (caught.value.hint or "")
