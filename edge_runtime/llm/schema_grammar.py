"""A JSON Schema as a grammar of compact JSON: without any free white space, exact or refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import llguidance

from edge_runtime.errors import SchemaError
from edge_runtime.llm.document_spans import DocumentSpans
from edge_runtime.llm.schema_tightening import DEFAULT_LIMITS, JsonLimits, fault, tighten, walk

_COMPACT = {
    "whitespace_flexible": False,
    "item_separator": ",",
    "key_separator": ":",
    "coerce_one_of": False,
    "lenient": False,
}


def schema_grammar(
    schema: Mapping[str, Any] | bool,
    *,
    limits: JsonLimits = DEFAULT_LIMITS,
    spans: DocumentSpans | None = None,
    check: bool = True,
) -> str:
    """The grammar of the compact JSON texts that are valid under the tightened schema.

    With `spans`, strings without `pattern`, `format`, `enum` or `const` are spans of the document,
    and so are the names in open maps; `"x-span": false` exempts a string, `"x-multiline": true`
    lets it run over several lines.

    With `check=False` it is left to the caller to notice that the grammar does not compile;
    compiling is most of the work.

    Raises:
        SchemaError: when the schema cannot be honoured exactly; `details` has `pointer` and
            `keyword`.
    """
    if not isinstance(schema, Mapping):
        if not schema:
            raise fault("", None, "`false` allows no answer at all")
        schema = {}
    try:
        grammar = _grammar(tighten(schema, limits, spans))
    except (TypeError, ValueError) as err:
        raise fault("", None, f"it is not JSON: {err}") from err
    except RecursionError as err:
        raise fault("", None, "it is nested too deeply") from err
    problem = _problem(grammar) if check else None
    if problem is not None:
        raise _located(schema, problem)
    return grammar


def _grammar(schema: Mapping[str, Any]) -> str:
    text = json.dumps({**schema, "x-guidance": _COMPACT}, ensure_ascii=False)
    return llguidance.LLMatcher.grammar_from_json_schema(text)


def _problem(grammar: str) -> str | None:
    """Why a grammar does not compile."""
    is_error, messages = llguidance.LLMatcher.validate_grammar_with_warnings(grammar)
    return "; ".join(messages) if is_error else None


def _located(root: Mapping[str, Any], problem: str) -> SchemaError:
    """The error for the innermost schema that cannot be compiled, and the keyword to blame."""
    pointer, culprit, reason = "", root, problem
    for place, node in walk(root):
        trouble = _compile_alone(root, node)
        if trouble is not None and place.startswith(pointer):
            pointer, culprit, reason = place, node, trouble
    for keyword in culprit:
        rest = {name: value for name, value in culprit.items() if name != keyword}
        if _compile_alone(root, rest) is None:
            return fault(pointer, keyword, reason)
    return fault(pointer, None, reason)


def _compile_alone(root: Mapping[str, Any], node: Mapping[str, Any]) -> str | None:
    """What is wrong with one schema of `root` taken alone, references leading into `root`."""
    # A reference to another document spoils even schemas that do not use it, so `root` has none.
    whole = _moved(root, keep_foreign=False)
    return _problem(_grammar({**_moved(node, keep_foreign=True), "$defs": {"root": whole}}))


def _moved(value: Any, *, keep_foreign: bool) -> Any:
    """A copy whose local references lead to `#/$defs/root`."""
    if isinstance(value, list):
        return [_moved(part, keep_foreign=keep_foreign) for part in value]
    if not isinstance(value, Mapping):
        return value
    out = {
        key: _moved(part, keep_foreign=keep_foreign)
        for key, part in value.items()
        if key not in {"$id", "$schema"}
    }
    reference = value.get("$ref")
    if isinstance(reference, str):
        if reference.startswith("#"):
            out["$ref"] = f"#/$defs/root{reference[1:]}"
        elif not keep_foreign:
            del out["$ref"]
    return out
