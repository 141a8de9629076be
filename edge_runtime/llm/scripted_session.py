"""The session of the scripted engine: the contract in its plainest form."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from edge_runtime.errors import (
    Cancelled,
    CapabilityError,
    UsageError,
)
from edge_runtime.llm.engine import (
    GREEDY,
    CancelCheck,
    Sampling,
    ScoredContinuation,
    Snapshot,
    SyncReport,
    TokenMask,
)
from edge_runtime.llm.logprobs import token_logprobs
from edge_runtime.llm.sampling import choose
from edge_runtime.llm.session_guard import (
    SessionGuard,
    check_room,
    check_vocabulary,
    n_shared,
)

Rows = NDArray[np.float32]


class Script(Protocol):
    """What a session asks of its engine."""

    @property
    def name(self) -> str:
        """The engine's name."""
        ...

    @property
    def n_vocab(self) -> int:
        """Number of tokens."""
        ...

    @property
    def can_rollback(self) -> bool:
        """Whether a tail can be dropped."""
        ...

    def spend(self, operation: str, n_tokens: int) -> None:
        """Let time pass or fail."""
        ...

    def row(self, tokens: Sequence[int]) -> Rows:
        """Logits after `tokens`."""
        ...

    def scripted_score(self, history: Sequence[int], continuation: Sequence[int]) -> float | None:
        """A scripted log-probability, or None."""
        ...


class ScriptedSession:
    """See `engine.Session`."""

    def __init__(self, script: Script, *, n_ctx: int, chunk_tokens: int) -> None:
        self._script = script
        self._n_ctx = n_ctx
        self._chunk_tokens = chunk_tokens
        self._guard = SessionGuard()
        self._tokens: list[int] = []
        self._n_vocab = script.n_vocab

    @property
    def tokens(self) -> Sequence[int]:
        """The history."""
        return tuple(self._tokens)

    @property
    def n_ctx(self) -> int:
        """Tokens that fit."""
        return self._n_ctx

    def sync(
        self, tokens: Sequence[int], *, cancel: CancelCheck | None = None, keep_logits: bool = True
    ) -> SyncReport:
        """Make the history `tokens`."""
        started = time.perf_counter()
        wanted = [int(token) for token in tokens]
        with self._guard.exclusive():
            self._check(wanted, len(wanted))
            del keep_logits  # logits cost nothing here
            n_kept = n_shared(self._tokens, wanted)
            recomputed = None
            if n_kept < len(self._tokens) and not self._script.can_rollback:
                n_kept, recomputed = 0, "this model cannot roll back"
            del self._tokens[n_kept:]
            for start in range(n_kept, len(wanted), self._chunk_tokens):
                if cancel is not None and cancel():
                    raise Cancelled("Prefill was cancelled between two chunks")
                self._take("sync", wanted[start : start + self._chunk_tokens])
        wall_ms = (time.perf_counter() - started) * 1e3
        return SyncReport(n_kept, 0, len(wanted) - n_kept, wall_ms, recomputed)

    def logits(self) -> Rows:
        """Scores of the next token."""
        with self._guard.exclusive():
            row = self._row()
            row.flags.writeable = False
            return row

    def next(self, constraint: TokenMask | None = None, *, sampling: Sampling = GREEDY) -> int:
        """Choose and append the next token."""
        with self._guard.exclusive():
            self._check((), len(self._tokens) + 1)
            mask = constraint.mask() if constraint is not None else None
            token = choose(self._row(), sampling, mask)
            self._take("next", [token])
            return token

    def append(self, tokens: Sequence[int], *, want_all_logits: bool = False) -> Rows | None:
        """Take given tokens."""
        added = [int(token) for token in tokens]
        with self._guard.exclusive():
            self._check(added, len(self._tokens) + len(added))
            first = len(self._tokens)
            if added:
                self._take("append", added)
            if not want_all_logits:
                return None
            rows = np.empty((len(added), self._n_vocab), np.float32)
            for i in range(len(added)):
                rows[i] = self._script.row(self._tokens[: first + i + 1])
            return rows

    def truncate(self, n_tokens: int) -> None:
        """Keep the first `n_tokens` tokens."""
        with self._guard.exclusive():
            if not 0 <= n_tokens <= len(self._tokens):
                raise UsageError(f"Cannot keep {n_tokens} of {len(self._tokens)} tokens")
            del self._tokens[n_tokens:]

    def score(self, continuations: Sequence[Sequence[int]]) -> list[ScoredContinuation]:
        """Log-probabilities of continuations."""
        wanted = [[int(token) for token in continuation] for continuation in continuations]
        with self._guard.exclusive():
            longest = max((len(continuation) for continuation in wanted), default=0)
            for continuation in wanted:
                self._check(continuation, len(self._tokens) + max(0, longest - 1))
            if longest == 0:
                return [ScoredContinuation(0.0, 0, ()) for _ in wanted]
            self._row()  # an empty history has none
            with self._guard.changing():
                self._script.spend("score", sum(len(c) for c in wanted))
            return [self._score_one(continuation) for continuation in wanted]

    def store_prefix(self, n_tokens: int) -> int:
        """Nothing is worth storing."""
        with self._guard.exclusive():
            if not 0 <= n_tokens <= len(self._tokens):
                raise UsageError(f"Cannot store {n_tokens} of {len(self._tokens)} tokens")
            return 0

    def snapshot(self) -> Snapshot:
        """The history."""
        with self._guard.exclusive():
            return Snapshot(tuple(self._tokens), b"", self._script.name)

    def restore(self, snapshot: Snapshot) -> None:
        """Back to a snapshot."""
        with self._guard.exclusive():
            if snapshot.identity != self._script.name:
                raise CapabilityError("The snapshot was taken with another model")
            self._check((), len(snapshot.tokens))
            self._tokens = list(snapshot.tokens)

    def reset(self) -> None:
        """Forget everything and be usable again."""
        self._guard.reset(self._tokens.clear)

    def close(self) -> None:
        """End. May be called twice."""
        self._guard.close(self._tokens.clear)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def _check(self, tokens: Sequence[int], n_needed: int) -> None:
        check_vocabulary(tokens, self._n_vocab)
        check_room(n_needed, self._n_ctx)

    def _take(self, operation: str, tokens: list[int]) -> None:
        with self._guard.changing():
            self._script.spend(operation, len(tokens))
            self._tokens += tokens

    def _row(self) -> Rows:
        if not self._tokens:
            raise UsageError("An empty session has no logits", hint="sync some tokens first")
        return self._script.row(self._tokens)

    def _score_one(self, continuation: list[int]) -> ScoredContinuation:
        n = len(continuation)
        scripted = self._script.scripted_score(self._tokens, continuation) if n else None
        if scripted is not None:
            return ScoredContinuation(scripted, n, (scripted / n,) * n)
        values: list[float] = []
        for i, token in enumerate(continuation):
            row = self._script.row([*self._tokens, *continuation[:i]])
            values += token_logprobs(row, [token])
        return ScoredContinuation(sum(values), n, tuple(values))
