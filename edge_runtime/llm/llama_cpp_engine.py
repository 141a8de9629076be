"""The engine for GGUF models, on the low-level API of llama.cpp."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from edge_runtime import trace
from edge_runtime.device.processor import available_memory_bytes, n_compute_threads
from edge_runtime.errors import CapabilityError, ModelFileError, UsageError
from edge_runtime.kv.prefix_key import PrefixKey
from edge_runtime.kv.prefix_store import PrefixStore
from edge_runtime.llm.engine import Capabilities, ModelIdentity, SessionOptions
from edge_runtime.llm.llama_cpp_build import Build, amx_verdict, current_build, load_library
from edge_runtime.llm.llama_cpp_context import ContextShape, NativeContext
from edge_runtime.llm.llama_cpp_model import NativeModel
from edge_runtime.llm.llama_cpp_options import (
    DEFAULT_N_CTX,
    MIN_N_CTX,
    CacheShape,
    LlamaOptions,
    check_cache_types,
    check_memory,
    check_weights,
    decide_flash_attn,
)
from edge_runtime.llm.llama_cpp_session import LlamaCppSession
from edge_runtime.llm.stored_prefix import StoredPrefixes
from edge_runtime.models.gguf import GgufHeader, check_gguf

_log = logging.getLogger(__name__)
_HASH_CHUNK_BYTES = 1 << 20


class LlamaCppEngine:
    """See `engine.Engine`. Make one with `load`."""

    def __init__(
        self,
        model: NativeModel,
        header: GgufHeader,
        options: LlamaOptions,
        *,
        build: Build,
        notices: tuple[str, ...],
        sha256: str | None,
        prefix_store: PrefixStore | None,
    ) -> None:
        self._model = model
        self._header = header
        self._options = options
        self._build = build
        self._notices = notices
        self._sha256 = sha256
        self._prefix_store = prefix_store
        self._lock = threading.Lock()
        # Weak, so that a session that nobody closes or holds frees its cache all the same.
        self._sessions: weakref.WeakSet[LlamaCppSession] = weakref.WeakSet()
        self._pieces: dict[int, bytes] = {}
        self._capabilities = self._query_capabilities()
        if self._capabilities.n_ctx > self._capabilities.n_ctx_train:
            n_ctx, n_ctx_train = self._capabilities.n_ctx, self._capabilities.n_ctx_train
            notice = f"{self.name} was trained on {n_ctx_train} tokens, less than {n_ctx}"
            self._notices += (notice,)

    @classmethod
    def load(
        cls,
        path: str | Path,
        options: LlamaOptions = LlamaOptions(),  # noqa: B008 - frozen
        *,
        sha256: str | None = None,
        prefix_store: PrefixStore | None = None,
    ) -> LlamaCppEngine:
        """Load a GGUF file.

        Args:
            path: The model file.
            options: See `LlamaOptions`.
            sha256: Digest of the file if it is known; computed when needed otherwise.
            prefix_store: Where sessions find and leave computed prefixes.

        Raises:
            ModelNotFound: there is no such file.
            ModelFileError: the file is damaged; native code has not seen it.
            ModelLoadError: llama.cpp refused it.
            CapabilityError: the options do not fit the model.
            ResourceError: the weights do not fit in memory.
        """
        path = Path(path)
        header = check_gguf(path)
        with trace.current().span("llm.load", model=path.name):
            library = load_library()
            build = current_build()
            if not build.has_gpu:
                check_weights(header.file_bytes, available_memory_bytes())
            use_extra_bufts, notices = _decide_repacking(options, build, header)
            model = NativeModel(
                library,
                path,
                use_extra_bufts=use_extra_bufts,
                n_gpu_layers=options.n_gpu_layers,
            )
            try:
                return cls(
                    model,
                    header,
                    options,
                    build=build,
                    notices=notices,
                    sha256=sha256,
                    prefix_store=prefix_store,
                )
            except BaseException:
                model.close()
                raise

    @property
    def name(self) -> str:
        """The model's name, or that of its file."""
        return self._header.name or self._header.path.stem

    @property
    def identity(self) -> ModelIdentity:
        """For caches; hashes the file on first use unless the digest was given."""
        return self._identity

    @cached_property
    def _identity(self) -> ModelIdentity:
        kind = self._model.metadata("tokenizer.ggml.model") or "none"
        pre = self._model.metadata("tokenizer.ggml.pre") or "none"
        return ModelIdentity(
            name=self.name,
            architecture=self._header.architecture,
            sha256=self._sha256 or _file_sha256(self._header.path),
            tokenizer=f"{kind}/{pre}/{self._model.n_vocab}",
            build=self._build.identity,
        )

    @property
    def capabilities(self) -> Capabilities:
        """What this model can do with these options."""
        return self._capabilities

    @property
    def notices(self) -> tuple[str, ...]:
        """What was degraded to load."""
        return self._notices

    @property
    def bos(self) -> int | None:
        """The token that the tokenizer puts first, if it does."""
        return self._model.bos

    @property
    def eos_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""
        return self._model.eos_ids

    @property
    def chat_template(self) -> str | None:
        """Template text of the model file."""
        return self._model.chat_template

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Tokens of `text`, see `engine.Engine.tokenize`."""
        self._check_open()
        return self._model.tokenize(text, special=special)

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """The bytes of `tokens`."""
        return b"".join(self.token_bytes(token) for token in tokens)

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token."""
        piece = self._pieces.get(token)
        if piece is None:
            self._check_open()
            if not 0 <= token < self._model.n_vocab:
                raise UsageError(f"Token {token} is not within 0..{self._model.n_vocab - 1}")
            piece = self._pieces[token] = self._model.token_bytes(token)
        return piece

    def open_session(
        self,
        options: SessionOptions = SessionOptions(),  # noqa: B008 - frozen
    ) -> LlamaCppSession:
        """A new empty session, see `engine.Engine.open_session`."""
        self._check_open()
        capabilities = self._capabilities
        merged = replace(
            self._options,
            n_ctx=options.n_ctx or capabilities.n_ctx,
            n_seq_max=options.n_seq_max or self._options.n_seq_max,
            chunk_tokens=options.chunk_tokens or self._options.chunk_tokens,
        )
        n_ctx = merged.n_ctx or capabilities.n_ctx
        shape = self._cache_shape()
        check_memory(
            n_ctx,
            shape.bytes_per_token(merged.type_k, merged.type_v),
            available_memory_bytes(),
        )
        context = NativeContext(
            self._model,
            ContextShape(
                n_ctx=n_ctx,
                n_batch=min(merged.chunk_tokens, _padded(n_ctx)),
                # Sequence 0 is the history, the others are scored continuations.
                n_seq_max=merged.n_seq_max + 1 if capabilities.can_share_prefix else 1,
                n_threads=capabilities.n_threads,
                n_threads_batch=capabilities.n_threads_batch,
                type_k=merged.type_k,
                type_v=merged.type_v,
                flash_attn=capabilities.flash_attn,
            ),
        )
        session = LlamaCppSession(
            context,
            identity=self._state_identity(),
            chunk_tokens=merged.chunk_tokens,
            max_outputs=max(8, merged.max_logits_bytes // (4 * self._model.n_vocab)),
            stored=self._stored_prefixes(),
            can_rollback=capabilities.can_rollback,
        )
        with self._lock:
            self._sessions.add(session)
        return session

    def close(self) -> None:
        """Close open sessions, then free the weights. May be called twice."""
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.close()
        self._model.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if not self._model.is_open:
            raise UsageError(f"The engine of {self.name} is closed")

    def _query_capabilities(self) -> Capabilities:
        model, options = self._model, self._options
        n_ctx_train = model.count("n_ctx_train")
        n_threads = options.n_threads or n_compute_threads()
        is_recurrent = bool(model.count("is_recurrent")) or bool(model.count("is_hybrid"))
        if not model.library.llama_model_has_decoder(model.handle):
            raise CapabilityError(f"{self.name} is not a text generating model")
        n_head = model.count("n_head")
        head_dim = self._header.head_dim or model.count("n_embd") // max(1, n_head)
        check_cache_types(options, CacheShape(1, 1, head_dim))
        return Capabilities(
            n_ctx=options.n_ctx or max(MIN_N_CTX, min(DEFAULT_N_CTX, n_ctx_train)),
            n_ctx_train=n_ctx_train,
            n_vocab=model.n_vocab,
            n_layers=model.count("n_layer"),
            n_embd=model.count("n_embd"),
            n_head=n_head,
            n_head_kv=model.count("n_head_kv"),
            head_dim=head_dim,
            n_swa=model.count("n_swa"),
            can_rollback=not is_recurrent,
            can_share_prefix=not is_recurrent,
            can_save_state=True,
            type_k=options.type_k,
            type_v=options.type_v,
            flash_attn=decide_flash_attn(options, has_gpu=self._build.has_gpu),
            n_threads=n_threads,
            n_threads_batch=options.n_threads_batch or n_threads,
        )

    def _cache_shape(self) -> CacheShape:
        c = self._capabilities
        return CacheShape(c.n_layers, max(1, c.n_head_kv), c.head_dim)

    def _state_identity(self) -> str:
        c = self._capabilities
        # Metadata and size stand for the weights: a snapshot never outlives the process.
        return "|".join(
            str(part)
            for part in (
                self.name,
                self._header.architecture,
                self._header.file_bytes,
                self._header.path.resolve(),
                self._build.identity,
                c.type_k,
                c.type_v,
                c.flash_attn,
            )
        )

    def _stored_prefixes(self) -> StoredPrefixes | None:
        if self._prefix_store is None or not self._capabilities.can_rollback:
            return None
        c = self._capabilities
        key = PrefixKey(
            model_sha256=self.identity.sha256,
            tokenizer=self.identity.tokenizer,
            build=self.identity.build,
            type_k=c.type_k,
            type_v=c.type_v,
            flash_attn=c.flash_attn,
            # llama.cpp rotates quantised keys before storing them unless this is set.
            rotation=self._options.is_quantised and "LLAMA_ATTN_ROT_DISABLE" not in os.environ,
        )
        return StoredPrefixes(self._prefix_store, key)


def _decide_repacking(
    options: LlamaOptions, build: Build, header: GgufHeader
) -> tuple[bool, tuple[str, ...]]:
    """Whether extra buffer types may be used, and what to tell the user if not."""
    if options.use_extra_bufts is not None:
        return options.use_extra_bufts, ()
    if not build.has_amx:
        return True, ()
    verdict = amx_verdict(build, header.path, header.weight_type)
    if verdict.is_safe:
        return True, ()
    _log.warning("Loading without repacked weights: %s", verdict.reason)
    notice = (
        "repacked weights are off, so prefill is slower: this llama.cpp build has AMX kernels, "
        f"and {verdict.reason}"
    )
    return False, (notice,)


def _padded(n_ctx: int) -> int:
    return -(-n_ctx // 256) * 256


def _file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_HASH_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as err:
        raise ModelFileError(f"{path} cannot be read: {err}") from err
    return digest.hexdigest()
