"""The words of a document as the only strings that an answer may hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from edge_runtime.errors import UsageError

# Spans are nested groups, and the regular expression engine limits how deep groups may nest.
_MOST_WORDS = 100


@dataclass(frozen=True)
class DocumentSpans:
    """Runs of whole words of a document.

    A span starts at any word and may run on over following lines; words are joined by one space.
    Lines have to be in reading order.

    Args:
        lines: The text of the document's lines.
        max_lines: How many lines a span may touch where the schema says nothing.
        max_lines_multiline: The same for fields marked `x-multiline`.
        max_words: The longest span, whatever the lines; at most 100.

    Raises:
        UsageError: when a limit is below 1, or `max_words` above 100.
    """

    lines: tuple[str, ...]
    max_lines: int = 1
    max_lines_multiline: int = 6
    max_words: int = 32

    def __post_init__(self) -> None:
        if min(self.max_lines, self.max_lines_multiline, self.max_words) < 1:
            raise UsageError("A span has at least one line and one word")
        if self.max_words > _MOST_WORDS:
            raise UsageError(f"A span has at most {_MOST_WORDS} words")

    def pattern(self, *, multiline: bool = False) -> str:
        """A regular expression that matches exactly the spans (and "" for an empty document)."""
        return self._multiline_pattern if multiline else self._line_pattern

    def allows(self, text: str, *, multiline: bool = False) -> bool:
        """Whether `text` is a span."""
        return re.fullmatch(self.pattern(multiline=multiline), text) is not None

    @cached_property
    def _line_pattern(self) -> str:
        return _spans_pattern(self.lines, self.max_lines, self.max_words)

    @cached_property
    def _multiline_pattern(self) -> str:
        return _spans_pattern(self.lines, self.max_lines_multiline, self.max_words)


def _spans_pattern(lines: Sequence[str], max_lines: int, max_words: int) -> str:
    """`a(?: b(?: c)?)?` for every word `a` that a span can start with.

    Starts on one line end at the same place, so each expression contains the next one and the
    regular expression engine shares them: its size is that of the text, not of all spans.
    """
    rows = [[re.escape(word) for word in line.split()] for line in map(_printable, lines)]
    starts: dict[str, None] = {}
    for i, row in enumerate(rows):
        window = [word for other in rows[i : i + max_lines] for word in other]
        for first in range(len(row)):
            words = window[first : first + max_words]
            starts["(?: ".join(words) + ")?" * (len(words) - 1)] = None
    return f"^(?:{'|'.join(starts)})$"


def _printable(text: str) -> str:
    """Control characters cannot be part of a value; they separate words."""
    return "".join(" " if unicodedata.category(c) == "Cc" else c for c in text)
