"""What every language model engine offers: the protocols and the values they exchange.

An engine owns weights, tokenizer and capabilities; a session owns one token history and the KV
cache that belongs to it. Prefill (`Session.sync`) and decode (`Session.next`, `Session.append`)
are separate calls. After an error inside the engine a session refuses every call with
`SessionPoisoned` until `reset()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float32]

CancelCheck: TypeAlias = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What must be equal for two caches to be interchangeable.

    `sha256` is that of the weights file, `tokenizer` a hash of vocabulary and tokenizer settings,
    `build` names the native library and what it was compiled with.
    """

    name: str
    architecture: str
    sha256: str
    tokenizer: str
    build: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a loaded model can do here; queried, not assumed.

    `n_ctx` is the context of sessions opened without an explicit one. `can_rollback`: the tail of
    a history can be dropped without computing the rest again. `can_share_prefix`: several
    continuations can be scored in one batch. `can_save_state`: snapshots and the prefix store
    work.
    """

    n_ctx: int
    n_ctx_train: int
    n_vocab: int
    n_layers: int
    n_embd: int
    n_head: int
    n_head_kv: int
    head_dim: int
    n_swa: int
    can_rollback: bool
    can_share_prefix: bool
    can_save_state: bool
    type_k: str
    type_v: str
    flash_attn: bool
    n_threads: int
    n_threads_batch: int


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Choices for one session; None takes the engine's.

    `n_ctx` is the number of KV cells: prompt, answer and the tokens of a scored batch share them.
    `n_seq_max` bounds how many continuations are scored in one batch.
    """

    n_ctx: int | None = None
    n_seq_max: int | None = None
    chunk_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Greedy:
    """Always the most probable allowed token; ties go to the lowest id."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """Draw from the softmax at `temperature`, cut to `top_k` tokens and `top_p` mass.

    `rng` is a `numpy.random.Generator`, so that the caller decides about repeatability.
    """

    rng: Any
    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95


Sampling: TypeAlias = Greedy | Sampled
GREEDY = Greedy()


@dataclass(frozen=True, slots=True)
class SyncReport:
    """How a `sync` reached its tokens.

    `n_reused` were still in the cache, `n_restored` came from the prefix store, `n_prefilled` were
    computed (the last token again, when its logits were wanted and gone). `recomputed` tells why
    everything was computed anew although a prefix was shared.
    """

    n_reused: int
    n_restored: int
    n_prefilled: int
    wall_ms: float
    recomputed: str | None = None


@dataclass(frozen=True, slots=True)
class ScoredContinuation:
    """Natural-log probabilities of one continuation, token by token."""

    logprob_sum: float
    n_tokens: int
    token_logprobs: tuple[float, ...]

    @property
    def mean_logprob(self) -> float:
        """Per token; 0 for an empty continuation."""
        return self.logprob_sum / self.n_tokens if self.n_tokens else 0.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A session's history and cache, to be given back to `restore` of the same engine.

    `state` is opaque; `identity` guards against restoring into something else.
    """

    tokens: tuple[int, ...]
    state: bytes
    identity: str
    logits: FloatArray | None = None


class TokenMask(Protocol):
    """What `Session.next` needs of a constraint: which tokens are allowed now.

    `mask()` gives either bool of shape (n_vocab,) or a bit mask of 32-bit words, lowest bit first,
    of shape (ceil(n_vocab / 32),) or (1, ceil(n_vocab / 32)).
    """

    def mask(self) -> NDArray[Any]:
        """The allowed tokens."""
        ...


class Session(Protocol):
    """One token history and its KV cache. One thread at a time; others wait for their turn."""

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens that the cache holds, in order."""
        ...

    @property
    def n_ctx(self) -> int:
        """KV cells of this session."""
        ...

    def sync(
        self, tokens: Sequence[int], *, cancel: CancelCheck | None = None, keep_logits: bool = True
    ) -> SyncReport:
        """Make the cache hold exactly `tokens` with the least work.

        With `keep_logits=False` the next `logits()` may have to compute the last token again.
        `cancel` is asked between chunks, and during a chunk possibly from another thread.

        Raises:
            ContextOverflow: `tokens` do not fit; the session is unchanged.
            Cancelled: `cancel` returned true; the session holds a valid shorter prefix.
        """
        ...

    def logits(self) -> FloatArray:
        """Scores of the next token, float32 of shape (n_vocab,).

        A read-only view that the next call on this session overwrites: copy it to keep it.
        """
        ...

    def next(self, constraint: TokenMask | None = None, *, sampling: Sampling = GREEDY) -> int:
        """Choose the next token and append it; the constraint itself is not advanced.

        Raises:
            ContextOverflow: no cell is left.
            StageError: no token is allowed by the constraint.
        """
        ...

    def append(self, tokens: Sequence[int], *, want_all_logits: bool = False) -> FloatArray | None:
        """Decode given tokens in one go (forced or drafted ones).

        With `want_all_logits` the result has shape (n, n_vocab), a copy whose row i follows
        `tokens[i]`; otherwise None.
        """
        ...

    def truncate(self, n_tokens: int) -> None:
        """Keep the first `n_tokens` tokens only."""
        ...

    def score(self, continuations: Sequence[Sequence[int]]) -> list[ScoredContinuation]:
        """Log-probabilities of each continuation after the current tokens.

        Many candidates share a batch; the session is unchanged afterwards.

        Raises:
            ContextOverflow: the longest continuation does not fit behind the current tokens.
        """
        ...

    def store_prefix(self, n_tokens: int) -> int:
        """Put the first `n_tokens` into the prefix store; the number stored (0 without a store)."""
        ...

    def snapshot(self) -> Snapshot:
        """The present history and cache.

        Raises:
            CapabilityError: this model's state cannot be saved.
        """
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Back to a snapshot taken from a session of the same engine.

        Raises:
            CapabilityError: the snapshot belongs to another model, build or KV format.
        """
        ...

    def reset(self) -> None:
        """Forget everything; the only call that a poisoned session accepts besides `close`."""
        ...

    def close(self) -> None:
        """Free the cache. May be called twice."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None: ...


class Engine(Protocol):
    """Weights, tokenizer and what they can do."""

    @property
    def name(self) -> str:
        """For people: the model's name."""
        ...

    @property
    def identity(self) -> ModelIdentity:
        """For caches."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """Queried after loading."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What had to be degraded to load, in sentences; empty when nothing."""
        ...

    @property
    def bos(self) -> int | None:
        """The token that this model expects first, or None when it expects none."""
        ...

    @property
    def eos_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""
        ...

    @property
    def chat_template(self) -> str | None:
        """The template text in the model file, or None for a base model."""
        ...

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Tokens of `text` without any added ones.

        Only with `special` do texts such as `<|im_end|>` become their special tokens.
        """
        ...

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """The bytes of `tokens`; a token may end inside a UTF-8 character."""
        ...

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token; special tokens give their text."""
        ...

    def open_session(self, options: SessionOptions = ...) -> Session:
        """A new empty session.

        Raises:
            ResourceError: its cache does not fit in memory.
            CapabilityError: the model cannot run with these options.
        """
        ...

    def close(self) -> None:
        """Free the weights; sessions must be closed before. May be called twice."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None: ...
