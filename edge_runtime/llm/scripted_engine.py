"""A deterministic engine without a model, for tests of whatever is built on sessions.

    engine = ScriptedEngine(reply=lambda prompt: '{"total": 12.4}' if "TOTAL" in prompt else "{}")

It has a real tokenizer (one token per byte, and the ChatML markers), real rollback, real
log-probabilities and real limits; only what it says is scripted. It passes the same contract
tests as the engines with weights.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from edge_runtime.errors import UsageError
from edge_runtime.llm.engine import Capabilities, ModelIdentity, SessionOptions
from edge_runtime.llm.scripted_session import ScriptedSession

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
N_VOCAB = 256 + len(SPECIAL_TOKENS)
_SPECIAL_IDS = {text: 256 + i for i, text in enumerate(SPECIAL_TOKENS)}
_SPECIAL = re.compile("|".join(re.escape(text) for text in SPECIAL_TOKENS))
_ANSWER_OPEN = b"<|im_start|>assistant\n"
_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
)
# Weights of what makes a token likely: the script, then what the history said before, then noise.
_SCRIPT_WEIGHT = 12.0
_ECHO_WEIGHT = 3.0
_ECHO_LENGTHS = (12, 8, 6, 4, 3, 2)


@dataclass(frozen=True, slots=True)
class ScriptedOptions:
    """What can be injected into a `ScriptedEngine`.

    Args:
        n_ctx: Tokens that a session holds.
        chunk_tokens: Tokens between two cancel checks.
        prefill_ms_per_token: Time that a token takes in `sync`, `append` and `score`.
        decode_ms_per_token: Time that a token takes in `next`.
        can_rollback: False behaves like a recurrent model: a changed tail costs everything.
        before: Called with the name of an operation and its number of tokens before it touches
            the cache; an exception from it fails the call as a native error would.
        scorer: Log-probability of a continuation's text after the history's text; None derives it
            from the logits.
        has_chat_template: False makes a base model.
        notices: What `Engine.notices` says.
    """

    n_ctx: int = 65536
    chunk_tokens: int = 256
    prefill_ms_per_token: float = 0.0
    decode_ms_per_token: float = 0.0
    can_rollback: bool = True
    before: Callable[[str, int], None] | None = None
    scorer: Callable[[str, str], float] | None = None
    has_chat_template: bool = True
    notices: tuple[str, ...] = ()


class ScriptedEngine:
    """See `engine.Engine`.

    Args:
        reply: The answer: a text, or a function of the prompt's text. The prompt ends where the
            last answer turn was opened, or is the whole history where none was. An answer is
            followed by the end token.
        options: See `ScriptedOptions`.
        name: Told apart in caches and messages.
    """

    def __init__(
        self,
        reply: str | Callable[[str], str] = "",
        options: ScriptedOptions = ScriptedOptions(),
        *,
        name: str = "scripted",
    ) -> None:
        self._reply = reply
        self._options = options
        self._name = name
        self._lock = threading.Lock()
        self._sessions: weakref.WeakSet[ScriptedSession] = weakref.WeakSet()
        self._is_closed = False

    @property
    def name(self) -> str:
        """The name given."""
        return self._name

    @property
    def identity(self) -> ModelIdentity:
        """For caches."""
        digest = hashlib.sha256(self._name.encode()).hexdigest()
        return ModelIdentity(self._name, "scripted", digest, "bytes/chatml", "scripted 1")

    @property
    def capabilities(self) -> Capabilities:
        """Those of a very small model."""
        return Capabilities(
            n_ctx=self._options.n_ctx,
            n_ctx_train=self._options.n_ctx,
            n_vocab=N_VOCAB,
            n_layers=0,
            n_embd=0,
            n_head=0,
            n_head_kv=0,
            head_dim=0,
            n_swa=0,
            can_rollback=self._options.can_rollback,
            can_share_prefix=True,
            can_save_state=True,
            type_k="none",
            type_v="none",
            flash_attn=False,
            n_threads=1,
            n_threads_batch=1,
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """As scripted."""
        return self._options.notices

    @property
    def bos(self) -> int | None:
        """None: prompts begin with their text."""
        return None

    @property
    def eos_ids(self) -> frozenset[int]:
        """`<|endoftext|>` and `<|im_end|>`."""
        return frozenset({_SPECIAL_IDS["<|endoftext|>"], _SPECIAL_IDS["<|im_end|>"]})

    @property
    def chat_template(self) -> str | None:
        """ChatML, unless scripted as a base model."""
        return _TEMPLATE if self._options.has_chat_template else None

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """One token per byte; with `special` the markers are one token each."""
        if not special:
            return list(text.encode("utf-8", errors="replace"))
        tokens: list[int] = []
        at = 0
        for match in _SPECIAL.finditer(text):
            tokens += text[at : match.start()].encode("utf-8", errors="replace")
            tokens.append(_SPECIAL_IDS[match.group()])
            at = match.end()
        return tokens + list(text[at:].encode("utf-8", errors="replace"))

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """The bytes of `tokens`."""
        return b"".join(self.token_bytes(token) for token in tokens)

    def token_bytes(self, token: int) -> bytes:
        """A byte, or the text of a marker."""
        if not 0 <= token < N_VOCAB:
            raise UsageError(f"Token {token} is not within 0..{N_VOCAB - 1}")
        return bytes([token]) if token < 256 else SPECIAL_TOKENS[token - 256].encode()

    def open_session(
        self,
        options: SessionOptions = SessionOptions(),  # noqa: B008 - frozen
    ) -> ScriptedSession:
        """A new empty session."""
        if self._is_closed:
            raise UsageError(f"The engine {self._name} is closed")
        session = ScriptedSession(
            self,
            n_ctx=options.n_ctx or self._options.n_ctx,
            chunk_tokens=options.chunk_tokens or self._options.chunk_tokens,
        )
        with self._lock:
            self._sessions.add(session)
        return session

    def close(self) -> None:
        """Close open sessions. May be called twice."""
        self._is_closed = True
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    # --- what sessions ask ---

    @property
    def n_vocab(self) -> int:
        """Number of tokens."""
        return N_VOCAB

    @property
    def can_rollback(self) -> bool:
        """Whether a tail can be dropped."""
        return self._options.can_rollback

    def spend(self, operation: str, n_tokens: int) -> None:
        """Run the injected hook and let the scripted time pass."""
        if self._options.before is not None:
            self._options.before(operation, n_tokens)
        is_decode = operation == "next"
        per_token_ms = (
            self._options.decode_ms_per_token if is_decode else self._options.prefill_ms_per_token
        )
        if per_token_ms > 0:
            time.sleep(per_token_ms * n_tokens / 1e3)

    def row(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Logits after `tokens`: the script first, then echoes of the history, then noise."""
        history = self.detokenize(tokens)
        seed = hashlib.sha256(history[-16:]).digest()
        noise = np.frombuffer(seed * (N_VOCAB // len(seed) + 1), np.uint8)[:N_VOCAB]
        row = noise.astype(np.float32) / np.float32(256)
        for length in _ECHO_LENGTHS:
            suffix = history[-length:]
            at = history.rfind(suffix, 0, len(history) - 1) if len(suffix) == length else -1
            if at >= 0:
                row[history[at + length]] += np.float32(_ECHO_WEIGHT * length / _ECHO_LENGTHS[0])
                break
        row[self._scripted_token(history)] += np.float32(_SCRIPT_WEIGHT)
        return row

    def scripted_score(self, history: Sequence[int], continuation: Sequence[int]) -> float | None:
        """What the scorer says of a continuation; None without a scorer."""
        if self._options.scorer is None:
            return None
        before, after = (
            self.detokenize(tokens).decode("utf-8", errors="replace")
            for tokens in (history, continuation)
        )
        return float(self._options.scorer(before, after))

    def _scripted_token(self, history: bytes) -> int:
        at = history.rfind(_ANSWER_OPEN)
        prompt, said = (
            (history, b"")
            if at < 0
            else (history[: at + len(_ANSWER_OPEN)], history[at + len(_ANSWER_OPEN) :])
        )
        text = self._reply
        if not isinstance(text, str):
            text = text(prompt.decode("utf-8", errors="replace"))
        reply = text.encode()
        # Where others than the script chose tokens, go on behind what matches its beginning best.
        spoken = history if at < 0 else said
        n_said = next(n for n in range(len(reply), -1, -1) if spoken.endswith(reply[:n]))
        return reply[n_said] if n_said < len(reply) else _SPECIAL_IDS["<|im_end|>"]
