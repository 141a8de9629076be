"""One document from file to fields: recognition in this thread, prefill in another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from edge_runtime.errors import Cancelled
from edge_runtime.events import FieldDecided, LineRead, PageFound, Result, StageDone
from edge_runtime.extract.asker import Asker
from edge_runtime.extract.assembling import assemble, in_order_of
from edge_runtime.llm.prompt import Segment
from edge_runtime.ocr.loading import load_pages
from edge_runtime.ocr.orientation import upright
from edge_runtime.ocr.page_image import PageImage
from edge_runtime.pipeline.budget import fitting_lines
from edge_runtime.pipeline.components import Components, LanguageParts
from edge_runtime.pipeline.fed_asker import FedAsker
from edge_runtime.pipeline.feeder import CHUNK_TOKENS, PromptFeeder
from edge_runtime.pipeline.options import PipelineOptions
from edge_runtime.pipeline.run_state import LINE_MARK, RunState
from edge_runtime.values import (
    Document,
    FieldStatus,
    FieldValue,
    Line,
    Page,
    PageInfo,
    ResultStatus,
    RunResult,
)

# Room that stays free behind the document for questions, candidates or the answer.
_ANSWER_ROOM_TOKENS = 640
# Recognition waits while more than this is still to be prefilled.
_MAX_BACKLOG_TOKENS = 4 * CHUNK_TOKENS


class DocumentRun:
    """Reads one document and reports to its `RunState`."""

    def __init__(self, components: Components, options: PipelineOptions, state: RunState) -> None:
        self._parts = components
        self._options = options
        self._state = state
        self._pages: list[tuple[PageInfo, list[Line]]] = []
        self._segments: list[Segment] = []
        self._previous: Line | None = None

    def read(self, source: Any) -> None:
        """Everything from the file to the `Result` event."""
        for notice in self._parts.notices:
            self._state.degrade(notice, stage="load")
        feeder = self._start_feeder()
        try:
            self._read_lines(source, feeder)
            fields = self._extract(source, feeder)
        except BaseException as err:
            if feeder is not None:
                feeder.cancel()
            self._parts.recover()
            if isinstance(err, Cancelled):
                # stages only know that they were told to stop; here it is known why
                self._state.check(err.stage or "ocr")
            raise
        self._state.emit(Result(self._result(source, fields)))

    def _start_feeder(self) -> PromptFeeder | None:
        language = self._parts.language
        if language is None:
            return None
        feeder = PromptFeeder(
            language.session,
            language.compiler,
            prefix=self._parts.prefix(),
            max_tokens=language.session.n_ctx - _answer_room(language.session.n_ctx),
            recorder=self._state.recorder,
        )
        feeder.start()
        return feeder

    def _read_lines(self, source: Any, feeder: PromptFeeder | None) -> None:
        state = self._state
        for loaded in load_pages(source, self._parts.load_options):
            state.check("ocr")
            page = self._turned(loaded)
            lines: list[Line] = []
            self._pages.append((page.info, lines))
            state.emit(PageFound(page.info))
            coming = iter(self._lines_of(page))
            line = next(coming, None)
            while line is not None:
                lines.append(line)
                state.recorder.mark(LINE_MARK)
                state.emit(LineRead(line))
                self._feed(line, feeder)
                line = next(coming, None)
                if line is not None and feeder is not None:
                    # only while there is more to read: after the last line nothing may wait
                    feeder.wait_below(_MAX_BACKLOG_TOKENS, state.should_stop)
            state.check("ocr")
        state.emit(StageDone("ocr", state.recorder.now_ns() / 1e6))

    def _feed(self, line: Line, feeder: PromptFeeder | None) -> None:
        if feeder is None or self._parts.strategy is None:
            return
        segment = self._parts.strategy.line_segment(line, self._previous)
        self._segments.append(segment)
        feeder.add(segment)
        self._previous = line

    def _turned(self, page: PageImage) -> PageImage:
        if page.text_lines:
            return page
        if self._parts.orientation is not None:
            return upright(page, self._parts.orientation)
        if self._options.rotate == "auto":
            return page
        return page.rotated(self._options.rotate)

    def _lines_of(self, page: PageImage) -> Iterable[Line]:
        if page.text_lines:
            return page.text_lines
        return self._parts.recogniser.read(page, cancel=self._state.should_stop)

    def _extract(self, source: Any, feeder: PromptFeeder | None) -> tuple[FieldValue, ...]:
        schema, strategy = self._parts.schema, self._parts.strategy
        if schema is None or strategy is None:
            return ()
        state = self._state
        asker = self._asker(feeder)
        fields: list[FieldValue] = []
        with state.recorder.span("extract"):
            for found in strategy.extract(self._document(source), schema, asker):
                state.check("extract")
                fields.append(self._reviewed(found))
                state.emit(FieldDecided(fields[-1]))
        if feeder is not None:
            self._end_feeding(feeder)
        state.emit(StageDone("extract", state.recorder.now_ns() / 1e6))
        return tuple(fields)

    def _end_feeding(self, feeder: PromptFeeder) -> None:
        """Stop reading ahead. An error there that no question met did not cost a field."""
        feeder.cancel()
        if feeder.error is not None:
            self._parts.recover()
            self._state.degrade(
                f"The language model failed while the document was read: {feeder.error}",
                stage="llm",
            )

    def _asker(self, feeder: PromptFeeder | None) -> Asker | None:
        language = self._parts.language
        if language is None or feeder is None:
            return None

        def segments() -> list[Segment]:
            feeder.finish()
            if feeder.overflowed:
                self._fit_context(language)
            return [*self._parts.prefix(), *self._segments]

        return FedAsker(
            language.session, language.compiler, segments, cancel=self._state.should_stop
        )

    def _fit_context(self, language: LanguageParts) -> None:
        """Keep the most useful lines in the prompt when not all of them fit."""
        compiler, schema = language.compiler, self._parts.schema
        lines = [line for _, page_lines in self._pages for line in page_lines]
        costs = [len(compiler.text_tokens(segment.text)) for segment in self._segments]
        n_prefix = len(compiler.open_tokens(self._parts.prefix()))
        n_ctx = language.session.n_ctx
        room = n_ctx - _answer_room(n_ctx) - n_prefix
        labels = [label.casefold() for f in schema.fields for label in f.labels] if schema else []
        kept = fitting_lines(lines, costs, budget=max(0, room), labels=labels)
        self._segments = [self._segments[i] for i in kept]
        self._state.degrade(
            f"The document is longer than the model's context of {language.session.n_ctx} tokens: "
            f"{len(lines) - len(kept)} of {len(lines)} lines, the least useful ones, were kept "
            "from the model. Candidates were still looked for in all of them.",
            stage="llm",
        )

    def _reviewed(self, found: FieldValue) -> FieldValue:
        """Apply the caller's own confidence threshold on top of the calibrated decision."""
        least = self._options.min_confidence
        if least is None or found.status is not FieldStatus.OK or found.confidence >= least:
            return found
        reasons = tuple(dict.fromkeys((*found.reasons, "below_min_confidence")))
        return replace(found, status=FieldStatus.REVIEW, reasons=reasons)

    def _document(self, source: Any) -> Document:
        pages = tuple(Page(info, tuple(lines)) for info, lines in self._pages)
        return Document(source_name(source), pages)

    def _result(self, source: Any, fields: tuple[FieldValue, ...]) -> RunResult:
        schema, state = self._parts.schema, self._state
        data = None if schema is None else assemble(schema, fields)
        return RunResult(
            source=source_name(source),
            status=ResultStatus.DEGRADED if state.degraded else ResultStatus.OK,
            document=self._document(source),
            data=data,
            fields=in_order_of(data, fields),
            timing=state.timing(),
            models=self._parts.models,
            degraded=tuple(state.degraded),
            schema_name=None if schema is None else schema.name,
        )


def _answer_room(n_ctx: int) -> int:
    """Tokens kept free behind the document; a short context is shared fairly."""
    return min(_ANSWER_ROOM_TOKENS, n_ctx // 2)


def source_name(source: Any) -> str:
    """What a source is called in results."""
    if isinstance(source, (str, Path)):
        return "standard input" if str(source) == "-" else str(source)
    name = getattr(source, "filename", None)
    return name if isinstance(name, str) and name else f"<{type(source).__name__}>"
