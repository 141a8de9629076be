"""A session on llama.cpp: one token history and a context that holds exactly its KV."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from edge_runtime import trace
from edge_runtime.errors import (
    Cancelled,
    CapabilityError,
    StageError,
    UsageError,
)
from edge_runtime.llm.cancel_watch import CancelWatch
from edge_runtime.llm.engine import (
    GREEDY,
    CancelCheck,
    Sampling,
    ScoredContinuation,
    Snapshot,
    SyncReport,
    TokenMask,
)
from edge_runtime.llm.llama_cpp_context import (
    DecodeStatus,
    NativeContext,
    Outputs,
    raise_for_status,
)
from edge_runtime.llm.llama_cpp_scoring import BatchLimits, score_one_by_one, score_tree
from edge_runtime.llm.native_log import NATIVE_LOG
from edge_runtime.llm.sampling import choose
from edge_runtime.llm.session_guard import (
    SessionGuard,
    check_room,
    check_vocabulary,
    n_shared,
)
from edge_runtime.llm.stored_prefix import StoredPrefixes

Rows = NDArray[np.float32]


class LlamaCppSession:
    """See `engine.Session`. Made by `LlamaCppEngine.open_session`.

    Args:
        context: Fresh; this session owns and closes it.
        identity: Binds snapshots to model, build and cache format.
        chunk_tokens: Tokens per prefill step.
        max_outputs: Rows of logits that one scored batch may hold.
        stored: Prefix store, or None.
        can_rollback: Whether the tail can be dropped and sequences can share cells.
    """

    def __init__(
        self,
        context: NativeContext,
        *,
        identity: str,
        chunk_tokens: int,
        max_outputs: int,
        stored: StoredPrefixes | None,
        can_rollback: bool,
    ) -> None:
        self._context = context
        self._identity = identity
        self._chunk_tokens = min(chunk_tokens, context.n_batch)
        self._max_outputs = max_outputs
        self._stored = stored
        self._can_rollback = can_rollback
        self._guard = SessionGuard()
        self._tokens: list[int] = []
        self._row = np.empty(context.n_vocab, np.float32)
        self._row_view = self._row.view()
        self._row_view.flags.writeable = False
        self._has_row = False
        # Logits of the last `append(want_all_logits=True)` and the index of their first token:
        # rolling back into a verified draft then costs no decoding.
        self._recent: tuple[int, Rows] | None = None

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens that the cache holds, in order."""
        return tuple(self._tokens)

    @property
    def n_ctx(self) -> int:
        """KV cells of this session."""
        return self._context.n_ctx

    def sync(
        self, tokens: Sequence[int], *, cancel: CancelCheck | None = None, keep_logits: bool = True
    ) -> SyncReport:
        """Make the cache hold exactly `tokens`, see `engine.Session.sync`."""
        wanted = [int(token) for token in tokens]
        started = time.perf_counter()
        with self._guard.exclusive(), trace.current().span("llm.prefill") as span:
            check_vocabulary(wanted, self._context.n_vocab)
            check_room(len(wanted), self._context.n_ctx)
            with self._guard.changing():
                n_kept, n_restored, recomputed = self._prepare(wanted, keep_logits)
                n_start = n_kept + n_restored
                self._prefill(wanted[n_start:], keep_logits=keep_logits, cancel=cancel)
            span.n_tokens = len(wanted) - n_start
            span.note(n_reused=n_kept, n_restored=n_restored)
        return SyncReport(
            n_reused=n_kept,
            n_restored=n_restored,
            n_prefilled=len(wanted) - n_start,
            wall_ms=(time.perf_counter() - started) * 1e3,
            recomputed=recomputed,
        )

    def logits(self) -> Rows:
        """Scores of the next token, see `engine.Session.logits`."""
        with self._guard.exclusive():
            self._ensure_row()
            return self._row_view

    def next(self, constraint: TokenMask | None = None, *, sampling: Sampling = GREEDY) -> int:
        """Choose and append the next token, see `engine.Session.next`."""
        with self._guard.exclusive():
            check_room(len(self._tokens) + 1, self._context.n_ctx)
            self._ensure_row()
            mask = constraint.mask() if constraint is not None else None
            token = choose(self._row, sampling, mask)
            with self._guard.changing():
                self._extend([token], "last")
            return token

    def append(self, tokens: Sequence[int], *, want_all_logits: bool = False) -> Rows | None:
        """Decode given tokens, see `engine.Session.append`."""
        added = [int(token) for token in tokens]
        with self._guard.exclusive(), trace.current().span("llm.append") as span:
            span.n_tokens = len(added)
            check_vocabulary(added, self._context.n_vocab)
            check_room(len(self._tokens) + len(added), self._context.n_ctx)
            if not want_all_logits:
                with self._guard.changing():
                    self._prefill(added, keep_logits=True, cancel=None)
                return None
            rows = np.empty((len(added), self._context.n_vocab), np.float32)
            first = len(self._tokens)
            step = min(self._chunk_tokens, self._max_outputs)
            with self._guard.changing():
                for start in range(0, len(added), step):
                    part = added[start : start + step]
                    self._extend(part, "all")
                    rows[start : start + len(part)] = self._context.rows(len(part))
            rows.flags.writeable = False
            if added:
                self._recent = (first, rows)
            return rows

    def truncate(self, n_tokens: int) -> None:
        """Keep the first `n_tokens` tokens, see `engine.Session.truncate`."""
        with self._guard.exclusive():
            if not 0 <= n_tokens <= len(self._tokens):
                raise UsageError(f"Cannot keep {n_tokens} of {len(self._tokens)} tokens")
            if n_tokens == len(self._tokens):
                return
            recent = self._recent
            with self._guard.changing():
                kept = self._tokens[:n_tokens]
                if not self._drop_tail(n_tokens):
                    self._forget()
                    self._prefill(kept, keep_logits=True, cancel=None)
            if recent is not None and not self._has_row:
                first, rows = recent
                if first < n_tokens <= first + len(rows):
                    self._keep_row(rows[n_tokens - 1 - first])

    def score(self, continuations: Sequence[Sequence[int]]) -> list[ScoredContinuation]:
        """Log-probabilities of continuations, see `engine.Session.score`."""
        wanted = [[int(token) for token in continuation] for continuation in continuations]
        with self._guard.exclusive(), trace.current().span("llm.score") as span:
            for continuation in wanted:
                check_vocabulary(continuation, self._context.n_vocab)
            longest = max((len(continuation) for continuation in wanted), default=0)
            check_room(len(self._tokens) + max(0, longest - 1), self._context.n_ctx)
            if longest == 0:
                return [ScoredContinuation(0.0, 0, ()) for _ in wanted]
            self._ensure_row()
            with self._guard.changing():
                if not self._can_rollback:
                    scored, n_decoded = score_one_by_one(
                        self._context, len(self._tokens), self._row, wanted
                    )
                else:
                    n_free = self._context.n_ctx - len(self._tokens)
                    limits = BatchLimits(
                        n_tokens=max(1, min(self._context.n_batch, self._max_outputs, n_free)),
                        n_sequences=max(1, self._context.n_seq_max - 1),
                    )
                    scored, n_decoded = score_tree(
                        self._context, len(self._tokens), self._row, wanted, limits
                    )
            span.n_tokens = n_decoded
            span.note(n_continuations=len(wanted))
            return scored

    def store_prefix(self, n_tokens: int) -> int:
        """Put the first `n_tokens` into the prefix store; how many it took."""
        with self._guard.exclusive():
            if not 0 <= n_tokens <= len(self._tokens):
                raise UsageError(f"Cannot store {n_tokens} of {len(self._tokens)} tokens")
            if self._stored is None or n_tokens == 0:
                return 0
            return self._stored.save(self._tokens[:n_tokens], self._context.save_state())

    def snapshot(self) -> Snapshot:
        """History, cache and logits as they are now."""
        with self._guard.exclusive():
            state = self._context.save_state().tobytes() if self._tokens else b""
            logits = self._row.copy() if self._has_row else None
            return Snapshot(tuple(self._tokens), state, self._identity, logits)

    def restore(self, snapshot: Snapshot) -> None:
        """Back to a snapshot, see `engine.Session.restore`."""
        with self._guard.exclusive():
            if snapshot.identity != self._identity:
                raise CapabilityError(
                    "The snapshot was taken with another model, build or cache format",
                    details={"snapshot": snapshot.identity, "session": self._identity},
                )
            check_room(len(snapshot.tokens), self._context.n_ctx)
            with self._guard.changing():
                self._forget()
                if snapshot.tokens:
                    mark = NATIVE_LOG.mark()
                    loaded = self._context.load_state(snapshot.state)
                    if not loaded or self._context.n_positions() != len(snapshot.tokens):
                        raise StageError(
                            "llama.cpp refused the state of the snapshot",
                            details={"native_log": NATIVE_LOG.quote(mark)},
                        )
                self._tokens = list(snapshot.tokens)
                if snapshot.logits is not None:
                    self._keep_row(snapshot.logits)

    def reset(self) -> None:
        """Forget everything and be usable again."""
        self._guard.reset(self._forget)

    def close(self) -> None:
        """Free the cache; waits for a call in progress. May be called twice."""
        self._guard.close(self._context.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    # --- changes to cache and history, always together ---

    def _prepare(self, wanted: list[int], keep_logits: bool) -> tuple[int, int, str | None]:
        """Shorten the cache to what `wanted` shares; (kept, restored, why nothing was kept)."""
        n_same = n_shared(self._tokens, wanted)
        is_extension = n_same == len(self._tokens)
        if n_same == len(wanted) and keep_logits and not (is_extension and self._has_row):
            # The last token is decoded again, since only decoding gives logits.
            n_same = max(0, n_same - 1)
        recomputed = None
        if n_same < len(self._tokens) and not self._drop_tail(n_same):
            recomputed = "this model cannot roll back"
            self._forget()
            n_same = 0
        if self._stored is None or (is_extension and n_same >= self._stored.block_tokens):
            return n_same, 0, recomputed
        # One token is left to decode where logits are wanted.
        n_usable = len(wanted) - 1 if keep_logits else len(wanted)
        if n_usable <= n_same:
            return n_same, 0, recomputed
        found = self._stored.find(wanted, more_than=n_same)
        if found is None:
            return n_same, 0, recomputed
        kept_before = self._tokens[:n_same]
        self._has_row = False
        self._recent = None
        loaded = self._context.load_state(found.state)
        if not loaded or self._context.n_positions() != found.n_tokens:
            self._forget()
            return 0, 0, "the library refused a stored prefix"
        self._tokens = kept_before + wanted[n_same : found.n_tokens]
        if found.n_tokens > n_usable and not self._drop_tail(n_usable):
            self._forget()
            return 0, 0, "this model cannot roll back"
        return n_same, min(found.n_tokens, n_usable) - n_same, recomputed

    def _prefill(self, tokens: list[int], *, keep_logits: bool, cancel: CancelCheck | None) -> None:
        if not tokens:
            return
        if cancel is None:
            self._prefill_chunks(tokens, keep_logits=keep_logits, cancel=None)
            return
        self._context.request_abort(on=False)
        watch = CancelWatch(cancel, lambda: self._context.request_abort(on=True))
        try:
            with watch:
                self._prefill_chunks(tokens, keep_logits=keep_logits, cancel=cancel)
        finally:
            self._context.request_abort(on=False)
            if watch.error is not None:
                raise watch.error

    def _prefill_chunks(
        self, tokens: list[int], *, keep_logits: bool, cancel: CancelCheck | None
    ) -> None:
        for start in range(0, len(tokens), self._chunk_tokens):
            if cancel is not None and cancel():
                raise Cancelled("Prefill was cancelled between two chunks")
            part = tokens[start : start + self._chunk_tokens]
            is_last = start + len(part) == len(tokens)
            self._extend(part, "last" if is_last and keep_logits else "none")

    def _extend(self, tokens: list[int], outputs: Outputs) -> None:
        """Decode at most one batch behind the history."""
        first = len(self._tokens)
        self._has_row = False
        self._recent = None
        mark = NATIVE_LOG.mark()
        positions = range(first, first + len(tokens))
        status = self._context.decode(tokens, positions, outputs=outputs)
        if status == DecodeStatus.ABORTED:
            if self._can_rollback:
                # Parts of the batch may have been computed; they count.
                self._tokens += tokens[: self._context.n_positions() - first]
            else:
                # A half-updated recurrent state is good for nothing.
                self._forget()
            raise Cancelled("Prefill was cancelled inside a chunk")
        raise_for_status(status, mark)
        self._tokens += tokens
        if outputs != "none":
            self._keep_row(self._context.last_row())

    def _drop_tail(self, n_tokens: int) -> bool:
        """Roll back to `n_tokens`; False, with nothing changed, where the model cannot."""
        if n_tokens == len(self._tokens):
            return True
        if n_tokens == 0:
            self._forget()
            return True
        if not self._context.remove_from(n_tokens):
            return False
        del self._tokens[n_tokens:]
        self._has_row = False
        self._recent = None
        return True

    def _forget(self) -> None:
        self._context.clear()
        self._tokens = []
        self._has_row = False
        self._recent = None

    def _keep_row(self, row: Rows) -> None:
        np.copyto(self._row, row)
        if np.isnan(self._row.max()):
            raise StageError(
                "The model computed NaN instead of scores",
                hint="type_k='f16', type_v='f16' (some models do not bear a quantised cache)",
            )
        self._has_row = True

    def _ensure_row(self) -> None:
        if self._has_row:
            return
        if not self._tokens:
            raise UsageError("An empty session has no logits", hint="sync some tokens first")
        with self._guard.changing():
            history = list(self._tokens)
            if self._drop_tail(len(history) - 1):
                self._extend(history[-1:], "last")
            else:
                self._forget()
                self._prefill(history, keep_logits=True, cancel=None)
