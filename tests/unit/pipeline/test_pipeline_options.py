from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edge_runtime.errors import ConfigError, UsageError
from edge_runtime.extract.review import ReviewRules
from edge_runtime.pipeline import PipelineOptions


def test_recipe_without_changes_is_the_default_pipeline() -> None:
    expected = PipelineOptions(dpi=200)
    assert PipelineOptions.from_recipe("document") == expected


def test_recipe_that_only_reads_text_needs_no_model() -> None:
    options = PipelineOptions.from_recipe("text")
    assert options.schema is None
    assert options.model is None


def test_overrides_win_over_the_recipe() -> None:
    options = PipelineOptions.from_recipe("receipt", locale="de_DE", strategy="generate")
    assert (options.schema, options.locale, options.strategy) == ("receipt", "de_DE", "generate")


def test_every_key_of_a_recipe_arrives(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'name = "own"\nstages = ["load", "recognise", "extract"]\n'
        '[input]\ndpi = 150\ntext_layer = "never"\nmax_megapixels = 8.0\n'
        '[recognition]\nengine = "paddle"\nmodel = "ppocrv5-mobile"\n'
        '[language]\nmodel = "some.gguf"\nn_ctx = 1024\nvariant = "original"\n'
        '[extraction]\nschema = "invoice"\nstrategy = "select"\nlocale = "fr"\n'
        "[extraction.review]\nok_confidence = 0.8\n"
    )
    assert PipelineOptions.from_recipe(path) == PipelineOptions(
        schema="invoice",
        model="some.gguf",
        ocr_model="ppocrv5-mobile",
        engine="paddle",
        strategy="select",
        n_ctx=1024,
        dpi=150,
        text_layer="never",
        rotate=0,
        locale="fr",
        variant="original",
        max_megapixels=8.0,
        review=ReviewRules(ok_confidence=0.8),
    )


def test_unknown_recipe_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="no-such"):
        PipelineOptions.from_recipe("no-such")


@pytest.mark.parametrize(
    "settings",
    [
        {"n_threads": 0},
        {"n_ctx": -1},
        {"deadline_s": 0.0},
        {"deadline_s": float("nan")},
        {"min_confidence": 7.0},
        {"variant": "fast"},
    ],
)
def test_meaningless_settings_are_refused_before_anything_is_loaded(
    settings: dict[str, Any],
) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))) as caught:
        PipelineOptions(**settings)
    assert caught.value.hint
