"""The loaded parts of a pipeline, built from its options."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from edge_runtime import trace
from edge_runtime.device.processor import n_compute_threads
from edge_runtime.errors import ModelNotFound
from edge_runtime.models.resolving import ResolvedModel
from edge_runtime.models.store import resolve
from edge_runtime.ocr.load_options import LoadOptions, PageSelection
from edge_runtime.pipeline.options import DEFAULT_LLM, DEFAULT_ORIENTATION, PipelineOptions
from edge_runtime.values import ModelUse

if TYPE_CHECKING:
    from edge_runtime.extract.schema import ExtractionSchema
    from edge_runtime.extract.strategy import Strategy
    from edge_runtime.llm.engine import Engine, Session
    from edge_runtime.llm.prompt import PromptCompiler, Segment
    from edge_runtime.ocr.engine import Recogniser
    from edge_runtime.ocr.orientation import OrientationModel

# Smaller models answer better when they choose among candidates than when they write.
_SELECT_BELOW_PARAMETERS = 1_000_000_000


@dataclass(slots=True)
class LanguageParts:
    """A language model with its one session."""

    engine: Engine
    session: Session
    compiler: PromptCompiler

    def close(self) -> None:
        """Free the cache, then the weights."""
        self.session.close()
        self.engine.close()


@dataclass(slots=True)
class Components:
    """Everything that stays loaded between documents.

    `notices` are degradations found while loading; they belong to every result.
    """

    recogniser: Recogniser
    orientation: OrientationModel | None
    schema: ExtractionSchema | None
    strategy: Strategy | None
    language: LanguageParts | None
    load_options: LoadOptions
    models: tuple[ModelUse, ...] = ()
    notices: tuple[str, ...] = ()
    closers: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def prefix(self) -> tuple[Segment, ...]:
        """The pinned segments that every prompt begins with."""
        if self.schema is None or self.strategy is None:
            return ()
        return tuple(self.strategy.prefix_segments(self.schema))

    def prepare_prefix(self) -> None:
        """Bring instruction and examples into the cache: from the store, or computed and stored."""
        if self.language is None:
            return
        with trace.current().span("llm.prefix") as span:
            tokens = self.language.compiler.open_tokens(self.prefix())
            report = self.language.session.sync(tokens, keep_logits=False)
            span.n_tokens = len(tokens)
            span.note(n_restored=report.n_restored, n_prefilled=report.n_prefilled)
            if report.n_prefilled:
                self.language.session.store_prefix(len(tokens))

    def recover(self) -> None:
        """After an error: a session that may have broken starts afresh, the prefix is stored."""
        if self.language is not None:
            self.language.session.reset()

    def close(self) -> None:
        """Free models and sessions. May be called twice."""
        self.closers.close()


def load_components(options: PipelineOptions) -> Components:
    """Load what the options name.

    Raises:
        ModelNotFound: a named model is not on this machine.
        SchemaError: the schema cannot be honoured.
        MissingDependency: the chosen engine is not installed.
    """
    with contextlib.ExitStack() as stack:
        schema = _load_schema(options)
        uses: list[ModelUse] = []
        notices: list[str] = []
        recogniser = _load_recogniser(options, uses, stack)
        orientation = _load_orientation(options, uses, notices)
        strategy = None if schema is None else _choose_strategy(options, schema)
        language = None
        if schema is not None and strategy is not None and strategy.wants_model(schema):
            language = _load_language(options, uses, notices, stack)
        return Components(
            recogniser=recogniser,
            orientation=orientation,
            schema=schema,
            strategy=strategy,
            language=language,
            load_options=_load_options(options),
            models=tuple(uses),
            notices=tuple(notices),
            closers=stack.pop_all(),
        )


def _load_options(options: PipelineOptions) -> LoadOptions:
    chosen = LoadOptions(
        password=options.password,
        dpi=options.dpi,
        text_layer=options.text_layer,
        pages=PageSelection.parse(options.pages) if options.pages else None,
    )
    if options.max_megapixels is None:
        return chosen
    return replace(chosen, max_megapixels=options.max_megapixels)


def _load_schema(options: PipelineOptions) -> ExtractionSchema | None:
    if options.schema is None:
        return None
    from edge_runtime.extract.schema import ExtractionSchema
    from edge_runtime.extract.schema_loading import load_schema

    if isinstance(options.schema, ExtractionSchema):
        return options.schema
    return load_schema(options.schema)


def _use(resolved: ResolvedModel) -> ModelUse:
    name = resolved.name
    if resolved.variant != "original":
        name = f"{name} ({resolved.variant})"
    return ModelUse(resolved.role, name, resolved.sha256, resolved.licence)


def _load_recogniser(
    options: PipelineOptions, uses: list[ModelUse], stack: contextlib.ExitStack
) -> Recogniser:
    from edge_runtime.ocr.open_engine import open_recogniser

    resolved = resolve(options.ocr_model, role="ocr")
    recogniser = open_recogniser(
        options.engine, resolved.files, n_threads=options.n_threads or n_compute_threads()
    )
    stack.callback(recogniser.close)
    uses.append(_use(resolved))
    return recogniser


def _load_orientation(
    options: PipelineOptions,
    uses: list[ModelUse],
    notices: list[str],
) -> OrientationModel | None:
    if options.rotate != "auto":
        return None
    from edge_runtime.ocr.orientation import OrientationModel

    try:
        resolved = resolve(DEFAULT_ORIENTATION, role="orientation")
    except ModelNotFound as err:
        notices.append(f"Page orientation is not detected: {err.message} ({err.hint})")
        return None
    model = OrientationModel(resolved.path, n_threads=options.n_threads or n_compute_threads())
    uses.append(_use(resolved))
    return model


def _load_language(
    options: PipelineOptions,
    uses: list[ModelUse],
    notices: list[str],
    stack: contextlib.ExitStack,
) -> LanguageParts | None:
    if options.model is None:
        return None
    from edge_runtime.kv.prefix_store import PrefixStore, default_root
    from edge_runtime.llm.llama_cpp_options import LlamaOptions
    from edge_runtime.llm.open_engine import open_engine
    from edge_runtime.llm.prompt import PromptCompiler

    resolved = resolve(options.model, role="llm", variant=options.variant)
    root = default_root() if options.prefix_cache else None
    engine = open_engine(
        resolved.path,
        LlamaOptions(
            n_ctx=options.n_ctx,
            n_threads=options.n_threads,
            n_threads_batch=options.n_threads,
        ),
        sha256=resolved.sha256,
        prefix_store=PrefixStore(root),
    )
    stack.callback(engine.close)
    session = engine.open_session()
    stack.callback(session.close)
    uses.append(_use(resolved))
    notices += [*resolved.notes, *engine.notices]
    return LanguageParts(
        engine=engine,
        session=session,
        compiler=PromptCompiler(engine),
    )


def _choose_strategy(options: PipelineOptions, schema: ExtractionSchema) -> Strategy:
    from edge_runtime.extract.open_strategy import open_strategy

    kind = options.strategy
    if kind == "auto":
        kind = "generate" if not schema.is_open and _is_large(options) else "select"
    return open_strategy(kind, locale=options.locale, rules=options.review)


def _is_large(options: PipelineOptions) -> bool:
    """Whether the named model is large enough to write answers itself."""
    if options.model is None:
        return False
    from edge_runtime.models.gguf import read_gguf_header

    try:
        resolved = resolve(options.model, role="llm", variant=options.variant)
    except ModelNotFound:
        if options.model != DEFAULT_LLM:
            raise
        return False  # the default model is a small one, here or not
    return read_gguf_header(resolved.path).n_parameters >= _SELECT_BELOW_PARAMETERS
