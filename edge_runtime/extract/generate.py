"""The strategy for models that follow instructions: the whole answer as JSON, under a grammar.

The model may write only what is printed: values are runs of the document's own words, null, or an
option that the schema lists. Dates and amounts are asked for as printed and normalised afterwards,
so that the place of every value is known.

Confidence of a field = g * m * o: g is the geometric mean of the probabilities that the model,
without the grammar, gives to the tokens of the value; m the factor of the way the value was found
in the document (`review.MATCH_FACTORS`); o the lowest recognition confidence of its lines. It
orders fields by how sure they are; it is not calibrated.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from edge_runtime.errors import Cancelled, UsageError
from edge_runtime.extract.answer_json import AnswerValue, read_answer
from edge_runtime.extract.asker import Asker
from edge_runtime.extract.field_building import field_from_text, missing_field
from edge_runtime.extract.grounding import LineIndex
from edge_runtime.extract.key_values import pair_fields
from edge_runtime.extract.lists import array_fields
from edge_runtime.extract.normalising import Conventions, infer_conventions
from edge_runtime.extract.review import ABSENT, DEFAULT_RULES, TRUNCATED, ReviewRules
from edge_runtime.extract.schema import (
    ArraySpec,
    ExtractionSchema,
    FieldKind,
    FieldSpec,
    join_path,
    unescape_name,
)
from edge_runtime.extract.strategy import document_segment
from edge_runtime.llm.prompt import Role, Segment
from edge_runtime.values import Document, FieldStatus, FieldValue, Line

_INSTRUCTION = (
    "Read the document and answer with one JSON object. Copy each value exactly as it is printed."
    " Use null for what the document does not say.\n"
)
_MAX_ITEMS = 40


@dataclass(frozen=True, slots=True)
class Example:
    """A document's text with the right answer, shown to the model before the real document."""

    text: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class GenerateStrategyOptions:
    """Choices of the strategy.

    `max_tokens` bounds the answer, `locale` decides what neither document nor schema does.
    """

    examples: tuple[Example, ...] = ()
    max_tokens: int = 1024
    locale: str | None = None
    rules: ReviewRules = DEFAULT_RULES


class GenerateStrategy:
    """See `strategy.Strategy`."""

    name = "generate"

    def __init__(self, options: GenerateStrategyOptions = GenerateStrategyOptions()) -> None:
        self._options = options

    def wants_model(self, schema: ExtractionSchema) -> bool:
        """Always, unless the layout alone finds everything (key and value pairs)."""
        return bool(schema.fields or schema.arrays)

    def prefix_segments(self, schema: ExtractionSchema) -> tuple[Segment, ...]:
        """Instruction, the wanted keys and examples; nothing of it depends on a document."""
        wanted = f"Keys:\n{describe_keys(schema)}\n"
        segments = [Segment(Role.SYSTEM, _INSTRUCTION + wanted, pinned=True)]
        for example in self._options.examples:
            segments.append(Segment(Role.EXAMPLE, f"{example.text}\n\nJSON:", pinned=True))
            segments.append(Segment(Role.ANSWER, _compact(example.data), pinned=True))
        return tuple(segments)

    def line_segment(self, line: Line, previous: Line | None) -> Segment:
        """A line of the document as text."""
        return document_segment(line, previous)

    def extract(
        self, document: Document, schema: ExtractionSchema, asker: Asker | None
    ) -> Iterator[FieldValue]:
        """The fields in the schema's order, lists after them.

        Raises:
            UsageError: there is no model.
            Cancelled: the caller asked to stop.
        """
        conventions = infer_conventions(
            [line.text for line in document.lines], locale=self._options.locale
        )
        tables, asked = self._from_layout(document, schema, conventions)
        if document.lines and (schema.fields or asked):
            if asker is None:
                raise UsageError(
                    "The strategy 'generate' needs a language model",
                    hint="name one with --model, or use --strategy select",
                )
            yield from self._ask(document, schema, asked, asker, conventions)
        else:
            yield from (missing_field(spec) for spec in schema.fields)
            yield from (_missing_list(spec, ABSENT) for spec in asked)
        yield from tables
        if schema.is_open:
            yield from pair_fields(document, schema, rules=self._options.rules)

    def _from_layout(
        self, document: Document, schema: ExtractionSchema, conventions: Conventions
    ) -> tuple[list[FieldValue], list[ArraySpec]]:
        """Lists that the layout gives away, and those the model has to be asked for."""
        found: list[FieldValue] = []
        asked: list[ArraySpec] = []
        for spec in schema.arrays:
            fields = array_fields(
                document, spec, conventions=conventions, rules=self._options.rules
            )
            if any(field.value is not None for field in fields):
                found += fields
            else:
                asked.append(spec)
        return found, asked

    def _ask(
        self,
        document: Document,
        schema: ExtractionSchema,
        arrays: Sequence[ArraySpec],
        asker: Asker,
        conventions: Conventions,
    ) -> Iterator[FieldValue]:
        from edge_runtime.llm.document_spans import DocumentSpans
        from edge_runtime.llm.drafting import document_tokens
        from edge_runtime.llm.json_constraint import JsonConstraint

        spans = DocumentSpans(tuple(line.text for line in document.lines))
        engine = asker.compiler.engine
        constraint = JsonConstraint.from_schema(engine, answer_schema(schema, arrays), spans=spans)
        question = (Segment(Role.QUESTION, "\n\nJSON:"),)
        source = document_tokens(engine, spans.lines)
        generation = asker.generate(
            question, constraint, max_tokens=self._options.max_tokens, draft_source=source
        )
        text = generation.finish()
        if generation.finish_reason == "cancelled":
            raise Cancelled("Extraction was cancelled", stage="extract")
        values, is_complete = read_answer(text)
        asker.ask(question)
        scored = asker.session.score([generation.tokens])[0] if generation.tokens else None
        probabilities = _Probabilities(
            text,
            [len(engine.token_bytes(token)) for token in generation.tokens],
            scored.token_logprobs if scored is not None else (),
        )
        reader = _AnswerReader(
            values,
            probabilities,
            LineIndex(document.lines, conventions),
            conventions,
            self._options,
        )
        yield from reader.fields(schema, arrays, is_complete=is_complete)


class _Probabilities:
    """Probabilities of the tokens of an answer, by place in its text."""

    def __init__(self, text: str, n_bytes: Sequence[int], logprobs: Sequence[float]) -> None:
        self._text = text
        self._logprobs = logprobs
        self._ends = list(itertools.accumulate(n_bytes))

    def of(self, start: int, end: int) -> float:
        """Geometric mean over the tokens that touch `text[start:end]`, 0..1."""
        first = len(self._text[:start].encode())
        last = first + len(self._text[start:end].encode())
        chosen = [
            logprob
            for index, logprob in enumerate(self._logprobs)
            if self._ends[index] > first and (self._ends[index - 1] if index else 0) < last
        ]
        return math.exp(sum(chosen) / len(chosen)) if chosen else 0.0


class _AnswerReader:
    """Turns the values of an answer into fields."""

    def __init__(
        self,
        values: Sequence[AnswerValue],
        probabilities: _Probabilities,
        index: LineIndex,
        conventions: Conventions,
        options: GenerateStrategyOptions,
    ) -> None:
        self._by_path = {value.path: value for value in values}
        self._probabilities = probabilities
        self._index = index
        self._conventions = conventions
        self._options = options

    def fields(
        self, schema: ExtractionSchema, arrays: Sequence[ArraySpec], *, is_complete: bool
    ) -> Iterator[FieldValue]:
        """All fields, then the lists the model was asked for."""
        for spec in schema.fields:
            yield self._field(spec, spec.path, is_complete=is_complete, reasons=())
        for spec in arrays:
            yield from self._list(spec, is_complete=is_complete)

    def _field(
        self, spec: FieldSpec, path: str, *, is_complete: bool, reasons: tuple[str, ...]
    ) -> FieldValue:
        answer = self._by_path.get(path)
        if answer is None:
            return missing_field(spec, path=path, reason=ABSENT if is_complete else TRUNCATED)
        if answer.value is None or answer.value == "":
            return missing_field(spec, path=path)
        return field_from_text(
            _as_text(answer.value),
            spec,
            self._index,
            probability=self._probabilities.of(answer.start, answer.end),
            path=path,
            reasons=reasons,
            conventions=self._conventions,
            rules=self._options.rules,
        )

    def _list(self, spec: ArraySpec, *, is_complete: bool) -> Iterator[FieldValue]:
        prefix = f"{spec.path}/"
        numbers = sorted(
            {
                int(path[len(prefix) :].split("/", maxsplit=1)[0])
                for path in self._by_path
                if path.startswith(prefix)
            }
        )
        reasons = () if is_complete else (TRUNCATED,)
        if not numbers:
            yield _missing_list(spec, ABSENT if is_complete else TRUNCATED)
        for number in numbers:
            row = join_path(spec.path, number)
            for inner in spec.item_fields:
                path = f"{row}/{inner.path}" if inner.path else row
                yield self._field(inner, path, is_complete=is_complete, reasons=reasons)


def _missing_list(spec: ArraySpec, reason: str) -> FieldValue:
    return FieldValue(spec.path, None, None, 0.0, FieldStatus.MISSING, (), (reason,))


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _compact(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def describe_keys(schema: ExtractionSchema) -> str:
    """The wanted keys, one a line, with what they mean: what the model reads of a schema."""
    rows = [_described(spec, spec.path) for spec in schema.fields]
    for spec in schema.arrays:
        meaning = f": {spec.description}" if spec.description else ""
        rows.append(f"{_shown(spec.path)} (list){meaning}")
        rows += [
            _described(inner, join_path(spec.path, 0) + (f"/{inner.path}" if inner.path else ""))
            for inner in spec.item_fields
        ]
    return "\n".join(rows)


def _shown(path: str) -> str:
    return ".".join(unescape_name(p) if not p.isdigit() else "[]" for p in path.split("/"))


def _described(spec: FieldSpec, path: str) -> str:
    options = f", one of {', '.join(map(str, spec.enum))}" if spec.enum else ""
    kind = "text" if spec.kind in {FieldKind.STRING, FieldKind.TEXT} else spec.kind.value
    meaning = f": {spec.description}" if spec.description else ""
    return f"{_shown(path)} ({kind}{options}){meaning}"


def answer_schema(schema: ExtractionSchema, arrays: Sequence[ArraySpec]) -> dict[str, Any]:
    """The JSON Schema of the answer: the user's keys, each with a printed text or null.

    Null is always allowed: a model that must not be silent invents.
    """
    root: dict[str, Any] = _empty_object()
    for spec in schema.fields:
        _put(root, spec.path, _answer_value(spec))
    for spec in arrays:
        if spec.is_scalar:
            items = _answer_value(spec.item_fields[0])
        else:
            items = _empty_object()
            for inner in spec.item_fields:
                _put(items, inner.path, _answer_value(inner))
        limit = min(_MAX_ITEMS, spec.max_items or _MAX_ITEMS)
        _put(root, spec.path, {"type": "array", "items": items, "maxItems": limit})
    return root


def _empty_object() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def _put(root: dict[str, Any], path: str, schema: dict[str, Any]) -> None:
    *parents, last = (unescape_name(piece) for piece in path.split("/"))
    node = root
    for name in parents:
        node = cast("dict[str, Any]", node["properties"].setdefault(name, _empty_object()))
    node["properties"][last] = schema
    for owner, name in _levels(root, [*parents, last]):
        if name not in owner["required"]:
            owner["required"].append(name)


def _levels(root: dict[str, Any], names: Sequence[str]) -> Iterator[tuple[dict[str, Any], str]]:
    node = root
    for name in names:
        yield node, name
        node = node["properties"][name]


def _answer_value(spec: FieldSpec) -> dict[str, Any]:
    if spec.kind is FieldKind.BOOLEAN:
        return {"type": ["boolean", "null"]}
    if spec.enum:
        return {"enum": [*spec.enum, None]}
    value: dict[str, Any] = {"type": ["string", "null"]}
    if spec.hints.free_text:
        value["x-span"] = False
    elif spec.hints.multiline:
        value["x-multiline"] = True
    return value
