"""Bounds for what a JSON Schema leaves open, so that a generated answer ends.

Every value under the tightened schema is also valid under the original one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from edge_runtime.errors import SchemaError
from edge_runtime.llm.document_spans import DocumentSpans

_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_LISTS = (*_ALTERNATIVES, "prefixItems")
_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_SINGLES = ("items", "additionalProperties")
_COMBINERS = frozenset({*_ALTERNATIVES, "$ref"})
_OBJECT_KEYWORDS = frozenset({"properties", "patternProperties", "additionalProperties"})
_SPAN_KEYWORDS = frozenset({"type", "pattern", "minLength", "maxLength"})
_SPAN_NAME = "edge-runtime-span-"
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
)
_OPEN_REPETITION = re.compile(r"[*+]|,\}")
# No known format, such as a date with a time zone, is cut short by this.
_LEAST_FORMAT_CHARS = 64


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Bounds for what a schema leaves open; None leaves it open.

    `max_digits` counts digits before the point, `max_decimals` after it. `close_objects`: objects
    that list properties and say nothing about others have no others.
    """

    max_string_chars: int | None = 512
    max_array_items: int | None = 128
    max_map_entries: int | None = 64
    max_digits: int | None = 15
    max_decimals: int | None = 6
    close_objects: bool = True


DEFAULT_LIMITS = JsonLimits()


def tighten(
    root: Mapping[str, Any], limits: JsonLimits, spans: DocumentSpans | None
) -> dict[str, Any]:
    """A tightened copy of the schema, without extension keywords (`x-...`).

    Raises:
        SchemaError: with `spans`, for a place where any value at all could stand.
    """
    tightener = _Tightener(limits, spans, _combined_places(root))
    tightened = tightener.visit(root, "", combined=False)
    if tightener.shared:
        definitions = tightened.get("$defs")
        own = definitions if isinstance(definitions, dict) else {}
        tightened["$defs"] = {**own, **dict(tightener.shared.values())}
    return tightened


def walk(node: Any, pointer: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All schemas from `node` down with their JSON pointers, outer ones first."""
    if not isinstance(node, Mapping):
        return
    yield pointer, node
    for key in _LISTS:
        if isinstance(node.get(key), list):
            for i, part in enumerate(node[key]):
                yield from walk(part, f"{pointer}/{key}/{i}")
    for key in _MAPS:
        if isinstance(node.get(key), Mapping):
            for name, part in node[key].items():
                yield from walk(part, f"{pointer}/{key}/{_escaped(name)}")
    for key in _SINGLES:
        yield from walk(node.get(key), f"{pointer}/{key}")


def fault(pointer: str, keyword: str | None, reason: str) -> SchemaError:
    """The error for a schema that cannot be honoured at `pointer`."""
    place = f"#{pointer}" + (f", keyword `{keyword}`" if keyword else "")
    return SchemaError(
        f"The schema cannot be followed exactly at {place}: {reason.strip()}",
        hint="leave that out, or say the same with keywords that can be enforced",
        details={"pointer": pointer, "keyword": keyword},
    )


@dataclass(frozen=True, slots=True)
class _Tightener:
    limits: JsonLimits
    spans: DocumentSpans | None
    combined: frozenset[str] = field(default_factory=frozenset[str])
    # Spans are large; equal ones are compiled once, as definitions that strings refer to.
    shared: dict[str, tuple[str, dict[str, Any]]] = field(
        default_factory=dict[str, tuple[str, dict[str, Any]]]
    )

    def visit(self, node: Mapping[str, Any], pointer: str, *, combined: bool) -> dict[str, Any]:
        """The tightened copy of one schema; `combined` when others apply to the same value."""
        # Keywords of extensions never reach the grammar library, its own options included.
        out = {key: value for key, value in node.items() if not key.startswith("x-")}
        combined = combined or pointer in self.combined or _is_combination(node)
        self._visit_parts(out, pointer, combined=combined)
        if "enum" in out or "const" in out:
            return out
        types = _types(out)
        if not types and not _COMBINERS & out.keys():
            self._refuse_anything(pointer, node)
        if "string" in types and self._bound_string(out, node):
            reference = self._share(out)
            if reference is not None:
                return reference
        if types & {"number", "integer"}:
            self._bound_number(out, types)
        if "array" in types:
            self._bound_array(out, pointer)
        if "object" in types:
            self._bound_object(out, pointer, combined=combined)
        return out

    def _visit_parts(self, out: dict[str, Any], pointer: str, *, combined: bool) -> None:
        for key in _LISTS:
            if isinstance(out.get(key), list):
                shared = combined and key != "prefixItems"
                out[key] = [
                    self._visit_any(part, f"{pointer}/{key}/{i}", combined=shared)
                    for i, part in enumerate(out[key])
                ]
        for key in _MAPS:
            if isinstance(out.get(key), Mapping):
                out[key] = {
                    name: self._visit_any(part, f"{pointer}/{key}/{_escaped(name)}")
                    for name, part in out[key].items()
                }
        for key in _SINGLES:
            if key in out:
                out[key] = self._visit_any(out[key], f"{pointer}/{key}")

    def _visit_any(self, node: Any, pointer: str, *, combined: bool = False) -> Any:
        if isinstance(node, Mapping):
            return self.visit(node, pointer, combined=combined)
        if node is True:
            self._refuse_anything(pointer, {})
        return node

    def _refuse_anything(self, pointer: str, node: Mapping[str, Any]) -> None:
        if self.spans is not None and node.get("x-span") is not False:
            reason = "a value of any type cannot be limited to the words of the document"
            raise fault(pointer, None, reason)

    def _bound_string(self, out: dict[str, Any], node: Mapping[str, Any]) -> bool:
        """Bound a string; whether it became a span."""
        shaped = "pattern" in out or "format" in out
        if self.spans is not None and not shaped and node.get("x-span") is not False:
            out["pattern"] = self.spans.pattern(multiline=bool(node.get("x-multiline")))
            return True
        if self.limits.max_string_chars is not None and "maxLength" not in out:
            least = max(_count(out, "minLength"), _LEAST_FORMAT_CHARS if "format" in out else 0)
            # A pattern without open repetition bounds itself.
            if _OPEN_REPETITION.search(str(out.get("pattern", ".*"))):
                out["maxLength"] = max(self.limits.max_string_chars, least)
        return False

    def _share(self, out: Mapping[str, Any]) -> dict[str, Any] | None:
        """A reference to the one definition of this span, or None when it is more than a span."""
        node = {key: value for key, value in out.items() if key not in _ANNOTATIONS}
        if not node.keys() <= _SPAN_KEYWORDS or not _types(node) <= {"string", "null"}:
            return None
        content = json.dumps(node, sort_keys=True)
        name, _ = self.shared.setdefault(content, (f"{_SPAN_NAME}{len(self.shared)}", node))
        return {"$ref": f"#/$defs/{name}"}

    def _bound_number(self, out: dict[str, Any], types: set[str]) -> None:
        if self.limits.max_digits is not None:
            bound = 10**self.limits.max_digits
            if not out.keys() & {"minimum", "exclusiveMinimum"}:
                out["exclusiveMinimum"] = -bound
            if not out.keys() & {"maximum", "exclusiveMaximum"}:
                out["exclusiveMaximum"] = bound
        if "number" in types and self.limits.max_decimals is not None:
            out.setdefault("multipleOf", float(f"1e-{self.limits.max_decimals}"))

    def _bound_array(self, out: dict[str, Any], pointer: str) -> None:
        if "items" not in out:
            self._refuse_anything(f"{pointer}/items", {})
        if self.limits.max_array_items is not None and "maxItems" not in out:
            out["maxItems"] = max(self.limits.max_array_items, _count(out, "minItems"))

    def _bound_object(self, out: dict[str, Any], pointer: str, *, combined: bool) -> None:
        listed = "properties" in out
        silent = "additionalProperties" not in out and "patternProperties" not in out
        if silent and listed and not combined and self.limits.close_objects:
            out["additionalProperties"] = False
        others = out.get("additionalProperties", True)
        if others is True and "additionalProperties" not in out:
            self._refuse_anything(f"{pointer}/additionalProperties", {})
        if not listed and others is not False and self.limits.max_map_entries is not None:
            out.setdefault("maxProperties", self.limits.max_map_entries)
        if self.spans is not None and isinstance(others, dict) and "patternProperties" not in out:
            # Names of entries are taken from the document as well.
            out["patternProperties"] = {self.spans.pattern(): others}
            out["additionalProperties"] = False


def _combined_places(root: Mapping[str, Any]) -> frozenset[str]:
    """Pointers of referenced schemas that describe an object together with another schema."""
    nodes = dict(walk(root))
    found: set[str] = set()
    waiting = [node for node in nodes.values() if _is_combination(node)]
    while waiting:
        for ref in _references(waiting.pop()):
            pointer = ref.removeprefix("#")
            if pointer in nodes and pointer not in found:
                found.add(pointer)
                waiting.append(nodes[pointer])
    return frozenset(found)


def _references(node: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(node.get("$ref"), str):
        yield node["$ref"]
    for key in _ALTERNATIVES:
        parts = node.get(key)
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, Mapping):
                yield from _references(part)


def _is_combination(node: Mapping[str, Any]) -> bool:
    """Whether several schemas describe one object together here."""
    parts = node.get("allOf")
    n_all = len(parts) if isinstance(parts, list) else 0
    n_other = len(node.keys() & (_COMBINERS - {"allOf"}))
    return n_all + n_other + bool(node.keys() & _OBJECT_KEYWORDS) > 1


def _types(node: Mapping[str, Any]) -> set[str]:
    declared = node.get("type")
    if isinstance(declared, str):
        return {declared}
    if isinstance(declared, list):
        return {name for name in declared if isinstance(name, str)}
    return set()


def _count(node: Mapping[str, Any], keyword: str) -> int:
    value = node.get(keyword, 0)
    return value if isinstance(value, int) else 0


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
