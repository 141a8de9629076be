"""What limits the next token: the protocol, and the constraint that limits nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edge_runtime.llm.engine import Engine


class Constraint(Protocol):
    """A language of allowed answers, followed token by token.

    When `forced()` is not empty, `mask()` allows only its first token, so that taking forced
    tokens in one go and choosing them one by one give the same tokens.
    """

    @property
    def engine(self) -> Engine:
        """Whose tokens these are."""
        ...

    @property
    def is_done(self) -> bool:
        """Nothing can follow any more, except the end of the answer."""
        ...

    @property
    def can_stop(self) -> bool:
        """What was said so far is a whole answer."""
        ...

    def mask(self) -> NDArray[Any]:
        """Allowed tokens as `engine.TokenMask` describes; valid until the next call."""
        ...

    def forced(self) -> list[int]:
        """Tokens that must come next, as the model would cut them; empty when there is choice."""
        ...

    def count_allowed(self, tokens: Sequence[int]) -> int:
        """How many of `tokens` could follow, one after the other; changes nothing."""
        ...

    def advance(self, token: int) -> None:
        """Take one token.

        Raises:
            StageError: when it is not allowed.
        """
        ...

    def advance_many(self, tokens: Sequence[int]) -> None:
        """Take several tokens.

        Raises:
            StageError: when one of them is not allowed.
        """
        ...


class Unconstrained:
    """Every token is allowed, always; the answer ends when the model ends it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._mask = np.ones(engine.capabilities.n_vocab, np.bool_)

    @property
    def engine(self) -> Engine:
        """Whose tokens these are."""
        return self._engine

    @property
    def is_done(self) -> bool:
        """Never."""
        return False

    @property
    def can_stop(self) -> bool:
        """Always."""
        return True

    def mask(self) -> NDArray[Any]:
        """All tokens."""
        return self._mask

    def forced(self) -> list[int]:
        """None."""
        return []

    def count_allowed(self, tokens: Sequence[int]) -> int:
        """All of them."""
        return len(tokens)

    def advance(self, token: int) -> None:
        """Nothing to follow."""

    def advance_many(self, tokens: Sequence[int]) -> None:
        """Nothing to follow."""
