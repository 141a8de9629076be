"""The JSON a model wrote, read value by value even where it breaks off.

Answers are generated under a grammar, so they are well formed up to their end; only the end may be
missing. Every complete value comes with its place in the text, so that the probabilities of its
tokens can be found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from edge_runtime.extract.schema import join_path

_SCALAR = re.compile(
    r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+\-]?\d+)?(?=[,\]}\s])|true|false|null'
)
_SPACE = re.compile(r"\s*")
_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class AnswerValue:
    """A complete scalar at `path`, written as `text[start:end]`."""

    path: str
    value: Any
    start: int
    end: int


class _BrokenOff(Exception):
    """The text ends before the value does."""


def read_answer(text: str) -> tuple[list[AnswerValue], bool]:
    """All complete scalars of a JSON text in order, and whether the text is complete."""
    values: list[AnswerValue] = []
    try:
        for value in _values(text, [_skip(text, 0)], "", 0):
            values.append(value)  # noqa: PERF402 - values before the break are kept
    except _BrokenOff:
        return values, False
    return values, True


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _values(text: str, at: list[int], path: str, depth: int) -> Iterator[AnswerValue]:
    """Scalars of the value that begins at `at[0]`, which is moved behind it."""
    if depth > _MAX_DEPTH:
        raise _BrokenOff
    opening = text[at[0] : at[0] + 1]
    if opening in {"{", "["}:
        yield from _members(text, at, path, depth, is_object=opening == "{")
        return
    match = _SCALAR.match(text, at[0])
    if match is None:
        raise _BrokenOff
    try:
        value = json.loads(match.group())
    except json.JSONDecodeError as err:
        raise _BrokenOff from err
    yield AnswerValue(path, value, match.start(), match.end())
    at[0] = match.end()


def _members(
    text: str, at: list[int], path: str, depth: int, *, is_object: bool
) -> Iterator[AnswerValue]:
    closing = "}" if is_object else "]"
    at[0] = _skip(text, at[0] + 1)
    number = 0
    while text[at[0] : at[0] + 1] != closing:
        if number:
            _expect(text, at, ",")
        name: str | int = number
        if is_object:
            key = _SCALAR.match(text, at[0])
            if key is None or not key.group().startswith('"'):
                raise _BrokenOff
            name = str(json.loads(key.group()))
            at[0] = _skip(text, key.end())
            _expect(text, at, ":")
        yield from _values(text, at, join_path(path, name), depth + 1)
        at[0] = _skip(text, at[0])
        number += 1
    at[0] += 1


def _expect(text: str, at: list[int], mark: str) -> None:
    if text[at[0] : at[0] + 1] != mark:
        raise _BrokenOff
    at[0] = _skip(text, at[0] + 1)
