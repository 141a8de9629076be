"""Answers that are compact JSON of a given schema, whatever the model would rather say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import llguidance
import numpy as np
from numpy.typing import NDArray

from edge_runtime.errors import SchemaError, StageError
from edge_runtime.llm.document_spans import DocumentSpans
from edge_runtime.llm.engine import Engine
from edge_runtime.llm.grammar_vocabulary import grammar_vocabulary
from edge_runtime.llm.schema_grammar import schema_grammar
from edge_runtime.llm.schema_tightening import DEFAULT_LIMITS, JsonLimits

_NORMAL_STOPS = frozenset({"NotStopped", "NoExtension", "NoExtensionBias", "EndOfSentence"})


class JsonConstraint:
    """One answer in the making. `fresh()` starts another one with the same grammar.

    Meets the `Constraint` protocol. Not safe to use from several threads at once.
    """

    def __init__(self, engine: Engine, matcher: llguidance.LLMatcher) -> None:
        self._engine = engine
        self._matcher = matcher
        self._n_vocab = engine.capabilities.n_vocab
        self._words = np.zeros((self._n_vocab + 31) // 32, np.uint32)
        self._forced: list[int] | None = None

    @classmethod
    def from_schema(
        cls,
        engine: Engine,
        schema: Mapping[str, Any] | bool,
        *,
        limits: JsonLimits = DEFAULT_LIMITS,
        spans: DocumentSpans | None = None,
    ) -> JsonConstraint:
        """Compile a JSON Schema for this engine's vocabulary.

        Args:
            engine: Whose tokens the answer is made of.
            schema: The schema; see `schema_grammar` and `schema_tightening`.
            limits: Bounds where the schema has none.
            spans: Limits free strings to words of a document.

        Raises:
            SchemaError: when the schema cannot be honoured exactly.
            CapabilityError: when the engine cannot be constrained.
        """
        grammar = schema_grammar(schema, limits=limits, spans=spans, check=False)
        matcher = llguidance.LLMatcher(grammar_vocabulary(engine), grammar, log_level=0)
        if matcher.is_error():
            schema_grammar(schema, limits=limits, spans=spans)
            raise SchemaError(f"The schema is too complex to follow: {matcher.get_error()}")
        return cls(engine, matcher)

    def fresh(self) -> JsonConstraint:
        """The same grammar at its beginning."""
        matcher = self._matcher.deep_copy()
        matcher.reset()
        return JsonConstraint(self._engine, matcher)

    @property
    def engine(self) -> Engine:
        """Whose tokens these are."""
        return self._engine

    @property
    def is_done(self) -> bool:
        """The JSON text is complete and nothing can follow."""
        stopped = self._matcher.is_stopped()
        if stopped:
            self._check()
        return stopped

    @property
    def can_stop(self) -> bool:
        """What was said so far is a complete JSON text."""
        return self._matcher.is_accepting()

    def mask(self) -> NDArray[np.uint32]:
        """Allowed tokens, one bit each, lowest first; shape (ceil(n_vocab / 32),)."""
        forced = self.forced()
        if forced:
            self._words.fill(0)
            self._words[forced[0] >> 5] = 1 << (forced[0] & 31)
        else:
            self._matcher.unsafe_compute_mask_ptr(self._words.ctypes.data, self._words.nbytes)
            self._check()
        return self._words

    def forced(self) -> list[int]:
        """Tokens that must come next; empty when there is a choice."""
        if self._forced is None:
            self._forced = self._find_forced()
            self._check()
        return self._forced

    def _find_forced(self) -> list[int]:
        tokens = list(self._matcher.compute_ff_tokens())
        spelled = self._matcher.compute_ff_bytes()
        # The library holds the last token back, since a free string that follows might have been
        # cut together with it. Up to an opening quote that costs more than it is worth: a name,
        # its colon and its quote come in one go.
        if spelled.endswith(b'"') and len(spelled) > len(self._engine.detokenize(tokens)):
            whole = self._engine.tokenize(spelled.decode())
            if self._engine.detokenize(whole) == spelled:
                return whole
        return tokens

    def count_allowed(self, tokens: Sequence[int]) -> int:
        """How many of `tokens` could follow one after the other."""
        return self._matcher.validate_tokens(list(tokens))

    def advance(self, token: int) -> None:
        """Take one token.

        Raises:
            StageError: when it is not allowed here.
        """
        self.advance_many((token,))

    def advance_many(self, tokens: Sequence[int]) -> None:
        """Take several tokens.

        Raises:
            StageError: when one of them is not allowed.
        """
        taken = list(tokens)
        self._forced = None
        if not self._matcher.consume_tokens(taken):
            raise StageError(
                "A token that the schema does not allow was taken",
                details={"tokens": taken, "reason": self._matcher.get_error()},
            )

    def _check(self) -> None:
        if self._matcher.is_error() or self._matcher.stop_reason() not in _NORMAL_STOPS:
            raise StageError(
                "The answer's grammar cannot be followed further",
                hint="use a simpler schema or a shorter document",
                details={"reason": self._matcher.get_error() or self._matcher.stop_reason()},
            )
