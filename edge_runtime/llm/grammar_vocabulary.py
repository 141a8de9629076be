"""An engine's vocabulary in the form the grammar library walks; built once per engine."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import llguidance

from edge_runtime.errors import CapabilityError
from edge_runtime.llm.engine import Engine

_lock = threading.Lock()
_vocabularies: weakref.WeakKeyDictionary[Engine, Any] = weakref.WeakKeyDictionary()


def grammar_vocabulary(engine: Engine) -> llguidance.LLTokenizer:
    """The vocabulary of `engine`, kept as long as the engine is.

    Raises:
        CapabilityError: when the engine has no end-of-answer token.
    """
    with _lock:
        known = _vocabularies.get(engine)
        if known is None:
            known = _vocabularies[engine] = _build(engine)
        return known


def special_tokens(engine: Engine) -> frozenset[int]:
    """Tokens that are no text: control marks such as `<|im_end|>`.

    A mark is recognised by its text: with special tokens switched on it is that one token, and
    otherwise it is ordinary characters.
    """
    n_vocab = engine.capabilities.n_vocab
    found = set(engine.eos_ids)
    if engine.bos is not None:
        found.add(engine.bos)
    for token in range(n_vocab):
        text = engine.token_bytes(token)
        if len(text) < 3 or text[:1] not in b"<[" or text[-1:] not in b">]":
            continue
        try:
            name = text.decode()
        except UnicodeDecodeError:
            continue
        if engine.tokenize(name, special=True) == [token] != engine.tokenize(name):
            found.add(token)
    return frozenset(found)


class _Vocabulary:
    """The face that the grammar library asks for; holds the engine weakly."""

    def __init__(self, engine: Engine) -> None:
        self._engine = weakref.ref(engine)
        self.tokens = [engine.token_bytes(i) for i in range(engine.capabilities.n_vocab)]
        self.special_token_ids = sorted(special_tokens(engine))
        self.eos_token_id = min(engine.eos_ids)
        self.bos_token_id = engine.bos
        self._by_text: dict[bytes, int] | None = None

    def __call__(self, text: bytes) -> list[int]:
        engine = self._engine()
        if engine is None:
            return self._longest_first(text)
        tokens = engine.tokenize(text.decode("utf-8"))
        # Some vocabularies put a space before every text; those tokens spell something else.
        if b"".join(self.tokens[token] for token in tokens) == text:
            return tokens
        return self._longest_first(text)

    def _longest_first(self, text: bytes) -> list[int]:
        if self._by_text is None:
            special = set(self.special_token_ids)
            self._by_text = {
                piece: token
                for token, piece in reversed(list(enumerate(self.tokens)))
                if piece and token not in special
            }
        longest = max(map(len, self._by_text), default=0)
        tokens: list[int] = []
        at = 0
        while at < len(text):
            for end in range(min(len(text), at + longest), at, -1):
                token = self._by_text.get(text[at:end])
                if token is not None:
                    tokens.append(token)
                    at = end
                    break
            else:
                break
        return tokens


def _build(engine: Engine) -> llguidance.LLTokenizer:
    if not engine.eos_ids:
        raise CapabilityError(
            f"The model {engine.name} has no end-of-answer token, so its answers cannot be limited"
        )
    eos: Sequence[int] = sorted(engine.eos_ids)
    return llguidance.LLTokenizer(
        llguidance.TokenizerWrapper(_Vocabulary(engine)),
        n_vocab=engine.capabilities.n_vocab,
        eos_token=list(eos),
        slices=llguidance.LLTokenizer.json_slices(),
    )
