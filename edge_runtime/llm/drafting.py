"""Guessing the next tokens by looking them up in the document (prompt lookup).

Values of an extraction are mostly copied from the document. So when the tokens said last also
stand in the document, the tokens that follow there are a good guess for what is said next. A
wrong guess costs a little time and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from edge_runtime.llm.engine import Engine

_LONGEST_HISTORY = 64


@dataclass(slots=True)
class _State:
    """A state of the suffix automaton: a set of stretches that end at the same places."""

    length: int
    link: int
    first_end: int
    next: dict[int, int] = field(default_factory=dict[int, int])


class PromptLookup:
    """Follows what is said and finds its longest ending in the source, at constant cost a token.

    The source is indexed once as a suffix automaton (Blumer et al. 1985): linear in time and size.

    Args:
        source: The document's tokens; see `document_tokens`.
    """

    def __init__(self, source: Sequence[int]) -> None:
        self._source = tuple(source)
        self._states = _suffix_automaton(self._source)
        self._state = 0
        self._n_matched = 0

    @property
    def n_matched(self) -> int:
        """How many of the last tokens stand together in the source."""
        return self._n_matched

    def push(self, tokens: Sequence[int]) -> None:
        """Follow tokens that were said."""
        states = self._states
        for token in tokens:
            while self._state and token not in states[self._state].next:
                self._state = states[self._state].link
                self._n_matched = states[self._state].length
            following = states[self._state].next.get(token)
            if following is not None:
                self._state = following
                self._n_matched += 1

    def draft(self, n_max: int, *, min_match: int = 1) -> list[int]:
        """Up to `n_max` tokens that may come next; empty when fewer than `min_match` agree."""
        if n_max <= 0 or self._n_matched < max(min_match, 1):
            return []
        start = self._states[self._state].first_end + 1
        return list(self._source[start : start + n_max])


def draft(
    history: Sequence[int], source_tokens: Sequence[int], *, n_max: int, min_match: int = 1
) -> list[int]:
    """Up to `n_max` tokens that follow in `source_tokens` the longest ending of `history`.

    Of several places the first counts. To draft again and again, keep a `PromptLookup`.
    """
    lookup = PromptLookup(source_tokens)
    lookup.push(history[-_LONGEST_HISTORY:])
    return lookup.draft(n_max, min_match=min_match)


def document_tokens(engine: Engine, lines: Sequence[str]) -> list[int]:
    """What to draft from: the lines as they stand, and joined as values of several lines are."""
    return engine.tokenize("\n".join(["", *lines, " ".join(lines)]))


def _suffix_automaton(tokens: Sequence[int]) -> list[_State]:
    states = [_State(length=0, link=-1, first_end=-1)]
    last = 0
    for end, token in enumerate(tokens):
        current = len(states)
        states.append(_State(length=states[last].length + 1, link=0, first_end=end))
        at = last
        while at >= 0 and token not in states[at].next:
            states[at].next[token] = current
            at = states[at].link
        if at >= 0:
            target = states[at].next[token]
            if states[at].length + 1 != states[target].length:
                target = _split(states, at, token, target)
            states[current].link = target
        last = current
    return states


def _split(states: list[_State], at: int, token: int, target: int) -> int:
    """Part the shorter stretches of `target` off into a state of their own."""
    old = states[target]
    clone = len(states)
    states.append(_State(states[at].length + 1, old.link, old.first_end, dict(old.next)))
    old.link = clone
    while at >= 0 and states[at].next.get(token) == target:
        states[at].next[token] = clone
        at = states[at].link
    return clone
