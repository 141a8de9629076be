"""Recipes: which stages a pipeline runs and with what defaults, as files people write.

A recipe is a TOML file (`pipelines/*.toml`). Unknown keys are errors, values are checked, and a
loaded recipe cannot be changed; the command line and `PipelineOptions` override it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from edge_runtime.errors import ConfigError

Stage: TypeAlias = Literal["load", "orient", "recognise", "extract"]
_ORDER: tuple[Stage, ...] = ("load", "orient", "recognise", "extract")

Share: TypeAlias = Annotated[float, Field(ge=0.0, le=1.0)]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class InputDefaults(_Settings):
    """How documents are opened.

    `dpi`: PDF pages are rendered at. `text_layer`: use of a PDF's own text. `max_megapixels`:
    larger pages are scaled down or refused.
    """

    dpi: Annotated[int, Field(ge=36, le=1200)] = 200
    text_layer: Literal["auto", "always", "never"] = "auto"
    max_megapixels: Annotated[float, Field(gt=0, le=2000)] | None = None


class RecognitionDefaults(_Settings):
    """Which OCR engine and model read the page. `model` is a catalogue name or a path."""

    engine: Literal["onnx", "paddle"] = "onnx"
    model: str = "ppocrv6-small"
    orientation: Literal["auto", "off"] = "auto"


class LanguageDefaults(_Settings):
    """Which language model decides fields. `n_ctx`: tokens of context, the model's own if unset."""

    model: str = "smollm2-135m-instruct"
    n_ctx: Annotated[int, Field(ge=256)] | None = None
    variant: Literal["auto", "original", "optimized"] = "auto"


class ReviewSettings(_Settings):
    """When a field may be used without a look; see `extract.review.ReviewRules`."""

    ok_confidence: Share = 0.7
    keep_confidence: Share = 0.0
    ok_ocr_confidence: Share = 0.5
    tolerated: frozenset[str] = frozenset()


class ExtractionDefaults(_Settings):
    """What is extracted and how.

    `schema_ref`, called `schema` in files, is anything `extract.schema_loading` takes. Without
    `review` the thresholds are those of the strategy.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)
    schema_ref: str = Field(default="auto", alias="schema")
    strategy: Literal["auto", "select", "generate"] = "auto"
    locale: str | None = None
    review: ReviewSettings | None = None


class Recipe(_Settings):
    """One pipeline: its stages in order and their defaults."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9\-]*$")]
    description: str = ""
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)]
    input: InputDefaults = InputDefaults()
    recognition: RecognitionDefaults = RecognitionDefaults()
    language: LanguageDefaults = LanguageDefaults()
    extraction: ExtractionDefaults = ExtractionDefaults()

    @model_validator(mode="after")
    def _stages_make_sense(self) -> Recipe:
        expected = tuple(stage for stage in _ORDER if stage in self.stages)
        if self.stages != expected:
            raise ValueError(f"stages have to be distinct and in the order {', '.join(_ORDER)}")
        if self.stages[0] != "load":
            raise ValueError("the first stage has to be 'load'")
        if "extract" in self.stages and "recognise" not in self.stages:
            raise ValueError("'extract' needs 'recognise'")
        return self


def recipe_names(folders: Sequence[Path]) -> list[str]:
    """The recipes that can be named."""
    return sorted({path.stem for folder in folders for path in folder.glob("*.toml")})


def load_recipe(name_or_path: str | Path, *, folders: Sequence[Path] = ()) -> Recipe:
    """The recipe of that name, or in that file.

    Args:
        name_or_path: `document`, or a path to a .toml file.
        folders: Where named recipes are, best first (`resources.data_roots("pipelines")`).

    Raises:
        ConfigError: no such recipe, not TOML, or a key or value that cannot be used; every
            problem is in `details["problems"]`.
    """
    path = Path(name_or_path).expanduser()
    if not path.is_file():
        named = [folder / f"{name_or_path}.toml" for folder in folders]
        shipped = next((candidate for candidate in named if candidate.is_file()), None)
        if shipped is None:
            known = ", ".join(recipe_names(folders)) or "none"
            raise ConfigError(
                f"No recipe {str(name_or_path)!r}",
                hint=f"one of {known}, or a path to a .toml file",
            )
        path = shipped
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise ConfigError(f"{path} is not TOML: {err}") from err
    except OSError as err:
        raise ConfigError(f"{path} cannot be read: {err}") from err
    return parse_recipe(content, where=str(path))


def parse_recipe(content: dict[str, Any], *, where: str = "recipe") -> Recipe:
    """A recipe from its parsed TOML.

    Raises:
        ConfigError: a key or value that cannot be used.
    """
    try:
        return Recipe.model_validate_json(_as_json(content))
    except ValidationError as err:
        problems = [
            f"{'.'.join(str(p) for p in e['loc']) or 'recipe'}: {e['msg']}" for e in err.errors()
        ]
        raise ConfigError(
            f"{where}: {problems[0]}", details={"problems": problems, "file": where}
        ) from err


def _as_json(content: dict[str, Any]) -> str:
    """JSON, because strict mode takes lists as tuples only from JSON."""
    import json

    return json.dumps(content, default=str)
