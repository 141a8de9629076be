"""Generation with as few decoding steps as possible, and the same tokens as with many.

Each step decodes in one batch: the token just chosen, the tokens that the constraint forces after
it, and a draft of what may follow. The draft is kept as far as the model, asked at each place
under the constraint, would have chosen the same; the rest is rolled back.

Greedy choices equal those of plain token-by-token decoding up to rounding: a batch is computed by
other kernels than a single token, so two tokens whose scores are equal to within rounding may
swap.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from edge_runtime import trace
from edge_runtime.errors import UsageError
from edge_runtime.llm.constraint import Constraint
from edge_runtime.llm.drafting import PromptLookup
from edge_runtime.llm.engine import GREEDY, CancelCheck, Sampling, Session
from edge_runtime.llm.sampling import choose

if TYPE_CHECKING:
    from edge_runtime.llm.engine import FloatArray

# Below this many tokens a draft saves less than decoding its logits costs.
_SHORTEST_DRAFT = 3
# How many of the last tokens must stand together in the document before anything is drafted: two,
# and more after drafts that were wrong, so that an answer in other words is not slowed down.
_LEAST_MATCH = 2
_MOST_MATCH = 6


class FinishReason(StrEnum):
    """Why a generation ended."""

    COMPLETE = "complete"
    """The constraint allows nothing more."""
    EOS = "eos"
    """The model ended its answer, and the constraint allowed that."""
    LENGTH = "length"
    """`max_tokens` were generated; the answer may be incomplete."""
    CONTEXT = "context"
    """The session's context is full; the answer may be incomplete."""
    CANCELLED = "cancelled"
    """The caller asked to stop."""


class TokenSource(StrEnum):
    """How a token came about."""

    SAMPLED = "sampled"
    FORCED = "forced"
    DRAFTED = "drafted"


@dataclass(frozen=True, slots=True)
class TokenStep:
    """One generated token.

    `text` is what can be shown by now and was not shown before: whole characters, so it may be
    empty and make up for it with the next token.
    """

    token: int
    text: str
    source: TokenSource


class Drafter(Protocol):
    """Guesses what comes next; see `drafting.PromptLookup`."""

    def push(self, tokens: Sequence[int]) -> None:
        """Follow tokens that were said."""
        ...

    def draft(self, n_max: int, *, min_match: int) -> list[int]:
        """Up to `n_max` tokens that may come next, if at least `min_match` agree before them."""
        ...


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """Choices of a generation.

    `use_forced=False` decodes forced tokens one by one, for comparison. `longest_draft`: on a
    processor a batch of 16 tokens takes little longer than one of 6.
    """

    sampling: Sampling = GREEDY
    use_forced: bool = True
    longest_draft: int = 16


@dataclass(slots=True)
class GenerationCounts:
    """Tokens by how they came about, and what it took.

    `n_drafted` counts proposed tokens, `n_accepted` those that were kept. `n_steps` is the number
    of decoding calls.
    """

    n_sampled: int = 0
    n_forced: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    n_steps: int = 0

    @property
    def n_tokens(self) -> int:
        """All generated tokens."""
        return self.n_sampled + self.n_forced + self.n_accepted


class Generation:
    """An iterator of `TokenStep`; counts, text and the reason to stop grow with it.

    The session may lack the last generated tokens, since nothing is decoded that nobody needs;
    `Session.sync` adds them where the conversation goes on.
    """

    def __init__(
        self,
        session: Session,
        constraint: Constraint,
        *,
        max_tokens: int,
        drafter: Drafter | None,
        cancel: CancelCheck | None,
        options: GenerateOptions,
    ) -> None:
        self.counts = GenerationCounts()
        self.tokens: list[int] = []
        self.text = ""
        self.finish_reason: FinishReason | None = None
        self._session = session
        self._constraint = constraint
        self._engine = constraint.engine
        self._max_tokens = max_tokens
        self._drafter = drafter
        self._cancel = cancel
        self._options = options
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._min_match = _LEAST_MATCH
        self._steps = self._run()

    def __iter__(self) -> Iterator[TokenStep]:
        return self

    def __next__(self) -> TokenStep:
        return next(self._steps)

    def finish(self) -> str:
        """Generate to the end and return the whole text."""
        for _ in self:
            pass
        return self.text

    def _run(self) -> Iterator[TokenStep]:
        # Said but not decoded yet. A forced beginning needs no logits.
        pending: list[int] = []
        logits: FloatArray | None = None
        choice: int | None = None
        while True:
            forced = self._take_forced()
            yield from self._emit(forced, TokenSource.FORCED)
            if forced:
                # Where tokens are forced, the choice already made was the first of them.
                choice = None
            pending += forced
            if self._is_over():
                return
            if pending:
                # Decoded together with a draft of what comes next.
                draft, rows = self._decode(pending)
                if rows is None:
                    return
                pending = []
                accepted, choice = self._verify(draft, rows)
                logits = rows[len(accepted)]
                yield from self._emit(accepted, TokenSource.DRAFTED)
                continue
            if choice is None:
                choice = self._choose(self._session.logits() if logits is None else logits)
            if choice in self._engine.eos_ids:
                self.finish_reason = FinishReason.EOS
                return
            self._constraint.advance(choice)
            pending, choice = [choice], None
            yield from self._emit(pending, TokenSource.SAMPLED)

    def _is_over(self) -> bool:
        if self._constraint.is_done:
            self.finish_reason = FinishReason.COMPLETE
        elif len(self.tokens) >= self._max_tokens:
            self.finish_reason = FinishReason.LENGTH
        elif self._cancel is not None and self._cancel():
            self.finish_reason = FinishReason.CANCELLED
        return self.finish_reason is not None

    def _choose(self, logits: FloatArray) -> int:
        return choose(logits, self._options.sampling, self._constraint.mask())

    def _n_left(self) -> int:
        return self._max_tokens - len(self.tokens)

    def _take_forced(self) -> list[int]:
        if not self._options.use_forced:
            return []
        forced = list(self._constraint.forced()[: self._n_left()])
        if forced:
            self._constraint.advance_many(forced)
        return forced

    def _emit(self, tokens: Sequence[int], source: TokenSource) -> Iterator[TokenStep]:
        """Record tokens that the constraint has taken already, and hand them out."""
        steps: list[TokenStep] = []
        for token in tokens:
            text = self._decoder.decode(self._engine.token_bytes(token))
            self.tokens.append(token)
            self.text += text
            steps.append(TokenStep(token, text, source))
        if self._drafter is not None:
            self._drafter.push(tokens)
        if source is TokenSource.SAMPLED:
            self.counts.n_sampled += len(steps)
        elif source is TokenSource.FORCED:
            self.counts.n_forced += len(steps)
        else:
            self.counts.n_accepted += len(steps)
        yield from steps

    def _decode(self, pending: list[int]) -> tuple[list[int], FloatArray | None]:
        """Decode `pending` and a draft; row i of the logits follows the i-th draft token.

        Row 0 follows `pending` itself. None when the context is full.
        """
        n_room = self._session.n_ctx - len(self._session.tokens) - len(pending)
        if n_room < 0:
            self.finish_reason = FinishReason.CONTEXT
            return [], None
        draft = self._propose(n_room)
        with trace.current().span("llm.decode") as span:
            span.n_tokens = len(pending)
            span.note(n_drafted=len(draft))
            self.counts.n_steps += 1
            if not draft:
                self._session.append(pending)
                return [], self._session.logits()[None, :]
            rows = self._session.append([*pending, *draft], want_all_logits=True)
        if rows is None:
            raise UsageError("The session did not return the logits of a draft")
        self.counts.n_drafted += len(draft)
        return draft, rows[len(pending) - 1 :]

    def _propose(self, n_room: int) -> list[int]:
        if self._drafter is None:
            return []
        n_max = min(self._options.longest_draft, n_room, self._n_left())
        draft = self._drafter.draft(n_max, min_match=self._min_match)
        n_allowed = self._constraint.count_allowed(draft)
        ends = (i for i, token in enumerate(draft) if token in self._engine.eos_ids)
        draft = draft[: min(n_allowed, next(ends, len(draft)))]
        return draft if len(draft) >= _SHORTEST_DRAFT else []

    def _verify(self, draft: list[int], rows: FloatArray) -> tuple[list[int], int | None]:
        """Keep the beginning of `draft` that would have been chosen; the session follows.

        Also returns the choice at the first place that differs. It must not be made anew: drawing
        twice would prefer the drafted token.
        """
        if not draft:
            return [], None
        n, choice = 0, None
        while n < len(draft) and not self._constraint.is_done:
            choice = self._choose(rows[n])
            if choice != draft[n]:
                break
            self._constraint.advance(choice)
            n, choice = n + 1, None
        if n < len(draft):
            self._session.truncate(len(self._session.tokens) - (len(draft) - n))
        step = -1 if n >= _SHORTEST_DRAFT else 1
        self._min_match = min(max(self._min_match + step, _LEAST_MATCH), _MOST_MATCH)
        return draft[:n], choice


def generate(
    session: Session,
    constraint: Constraint,
    *,
    max_tokens: int,
    draft_source: Drafter | Sequence[int] | None = None,
    cancel: CancelCheck | None = None,
    options: GenerateOptions = GenerateOptions(),
) -> Generation:
    """Generate after the session's present tokens, one `TokenStep` a token.

    Args:
        session: Holds the prompt; see `Generation` for what it holds afterwards.
        constraint: What may be said; `Unconstrained(engine)` for anything.
        max_tokens: The most tokens to generate, forced ones included.
        draft_source: The document's tokens, or a drafter, to guess copied values from; None turns
            drafting off. An engine that cannot roll back never drafts.
        cancel: Asked between steps.
        options: See `GenerateOptions`.

    Raises:
        UsageError: when `max_tokens` is negative, or the session is empty and nothing is forced.
        StageError: when the constraint cannot be followed.
    """
    if max_tokens < 0:
        raise UsageError(f"max_tokens must not be negative: {max_tokens}")
    drafter: Drafter | None
    if draft_source is None or not constraint.engine.capabilities.can_rollback:
        drafter = None
    elif isinstance(draft_source, Sequence):
        drafter = PromptLookup(draft_source)
    else:
        drafter = draft_source
    return Generation(
        session,
        constraint,
        max_tokens=max_tokens,
        drafter=drafter,
        cancel=cancel,
        options=options,
    )
