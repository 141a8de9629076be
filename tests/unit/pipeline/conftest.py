"""A pipeline with real threads and a real session protocol, but no models."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from edge_runtime.errors import EdgeRuntimeError
from edge_runtime.extract.asker import Asker
from edge_runtime.extract.schema import ExtractionSchema
from edge_runtime.extract.schema_loading import load_schema
from edge_runtime.extract.strategy import document_segment
from edge_runtime.llm.prompt import PromptCompiler, Role, Segment
from edge_runtime.llm.scripted_engine import ScriptedEngine, ScriptedOptions
from edge_runtime.ocr.load_options import LoadOptions
from edge_runtime.ocr.page_image import PageImage
from edge_runtime.pipeline import Pipeline, PipelineOptions
from edge_runtime.pipeline import document as document_module
from edge_runtime.pipeline.components import Components, LanguageParts
from edge_runtime.values import Box, Document, FieldStatus, FieldValue, Line, Quad

PAGE = np.full((40, 60, 3), 255, dtype=np.uint8)
SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": ["number", "null"]}, "name": {"type": ["string", "null"]}},
}


@dataclass
class ListedLines:
    """A recogniser that reads the same lines from every page."""

    texts: list[str]
    pause_s: float = 0.0
    fail_at: int | None = None
    error: EdgeRuntimeError | None = None
    name: str = "listed"
    closed: int = 0
    n_read: int = 0

    def read(self, page: PageImage, *, cancel: Callable[[], bool] | None = None) -> Iterator[Line]:
        for i, text in enumerate(self.texts):
            if cancel is not None and cancel():
                return
            if i == self.fail_at and self.error is not None:
                raise self.error
            time.sleep(self.pause_s)
            self.n_read += 1
            box = Box(0, 10.0 * i, 50, 10.0 * i + 8)
            yield Line(page.info.index, i, text, 0.9, Quad.from_box(box), box, row=i)

    def close(self) -> None:
        self.closed += 1


@dataclass
class WordAfterLabel:
    """A strategy that takes what follows the field's name, and asks the model once."""

    name: str = "label"
    asks: bool = True
    backwards: bool = False
    prompts: list[str] = field(default_factory=list)

    def wants_model(self, schema: ExtractionSchema) -> bool:
        return bool(schema.fields)

    def prefix_segments(self, schema: ExtractionSchema) -> tuple[Segment, ...]:
        return (Segment(Role.SYSTEM, f"Find {', '.join(f.name for f in schema.fields)}", True),)

    def line_segment(self, line: Line, previous: Line | None) -> Segment:
        return document_segment(line, previous)

    def extract(
        self, document: Document, schema: ExtractionSchema, asker: Asker | None
    ) -> Iterator[FieldValue]:
        if asker is not None and self.asks:
            asker.score([Segment(Role.QUESTION, "\n?")], ["a", "b"])
            tokens = list(asker.session.tokens)
            self.prompts.append(asker.compiler.engine.detokenize(tokens).decode())
        for spec in reversed(schema.fields) if self.backwards else schema.fields:
            found = next((x for x in document.lines if x.text.startswith(spec.name)), None)
            if found is None:
                yield FieldValue(spec.path, None, None, 0.0, FieldStatus.MISSING)
                continue
            raw = found.text.split()[-1]
            value = float(raw) if spec.name == "total" else raw
            yield FieldValue(spec.path, value, raw, 0.8, FieldStatus.OK)


@dataclass
class Built:
    """A pipeline and the doubles inside it."""

    pipeline: Pipeline
    recogniser: ListedLines
    strategy: WordAfterLabel
    engine: ScriptedEngine | None


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Built]]:
    """Makes pipelines: `build(texts, options=..., engine_options=...)`."""
    made: list[Pipeline] = []

    def make(
        texts: list[str],
        *,
        recogniser: ListedLines | None = None,
        options: PipelineOptions | None = None,
        engine_options: ScriptedOptions | None = None,
        with_model: bool = True,
        asks: bool = True,
        notices: tuple[str, ...] = (),
    ) -> Built:
        reader = recogniser or ListedLines(texts)
        strategy = WordAfterLabel(asks=asks)
        engine = ScriptedEngine("x", engine_options or ScriptedOptions()) if with_model else None
        language = None
        if engine is not None:
            language = LanguageParts(engine, engine.open_session(), PromptCompiler(engine))
        parts = Components(
            recogniser=reader,
            orientation=None,
            schema=load_schema(SCHEMA),
            strategy=strategy,
            language=language,
            load_options=LoadOptions(),
            notices=notices,
        )
        parts.closers.callback(reader.close)
        if language is not None:
            parts.closers.callback(language.close)
        monkeypatch.setattr(document_module, "load_components", lambda _: parts)
        pipeline = Pipeline(options or PipelineOptions())
        made.append(pipeline)
        return Built(pipeline, reader, strategy, engine)

    yield make
    for pipeline in made:
        pipeline.close()
    names = {t.name for t in threading.enumerate()}
    assert not names & {"edge-document", "edge-prefill"}, "a run left a thread behind"
