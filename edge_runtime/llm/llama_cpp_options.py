"""Choices for the llama.cpp engine, and the rules checked before native code runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edge_runtime.errors import CapabilityError, ResourceError, UsageError

KvType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]

# name -> (ggml type number, bytes of one block, values in one block)
KV_TYPES: dict[str, tuple[int, int, int]] = {
    "f32": (0, 4, 1),
    "f16": (1, 2, 1),
    "bf16": (30, 2, 1),
    "q8_0": (8, 34, 32),
    "q5_1": (7, 24, 32),
    "q5_0": (6, 22, 32),
    "q4_1": (3, 20, 32),
    "q4_0": (2, 18, 32),
    "iq4_nl": (20, 18, 32),
}
DEFAULT_N_CTX = 4096
# llama.cpp rounds contexts up to this anyway, and its assertions abort the process on tiny ones.
MIN_N_CTX = 256
# Beyond this share of the free memory a new cache would push others out.
_MEMORY_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class LlamaOptions:
    """How to load and run a GGUF model.

    Args:
        n_ctx: KV cells of a session; None is 4096, less when the model was trained on less.
        n_threads: Threads for single tokens; None is one per usable core.
        n_threads_batch: Threads for prefill and scoring; None is the same.
        type_k: Type of cached keys.
        type_v: Type of cached values; quantised ones need flash attention.
        flash_attn: None decides by cache type and build.
        chunk_tokens: Tokens per prefill step, a multiple of 64; cancelling waits at most this.
        n_seq_max: Continuations scored in one batch.
        n_gpu_layers: Layers on a GPU; None is the library's choice.
        use_extra_bufts: Repacked weights; None is on unless a probe shows that they crash.
        max_logits_bytes: Bound on logits held at once while scoring.
    """

    n_ctx: int | None = None
    n_threads: int | None = None
    n_threads_batch: int | None = None
    type_k: KvType = "f16"
    type_v: KvType = "f16"
    flash_attn: bool | None = None
    chunk_tokens: int = 128
    n_seq_max: int = 32
    n_gpu_layers: int | None = None
    use_extra_bufts: bool | None = None
    max_logits_bytes: int = 48 << 20

    def __post_init__(self) -> None:
        for name in ("type_k", "type_v"):
            if getattr(self, name) not in KV_TYPES:
                raise UsageError(
                    f"{name}={getattr(self, name)!r} is no KV cache type",
                    hint=f"one of {', '.join(KV_TYPES)}",
                )
        if self.chunk_tokens < 64 or self.chunk_tokens % 64:
            raise UsageError(f"chunk_tokens={self.chunk_tokens} is not a multiple of 64")
        for name in ("n_ctx", "n_threads", "n_threads_batch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name}={value} must be at least 1")
        if self.n_ctx is not None and self.n_ctx < MIN_N_CTX:
            raise UsageError(
                f"n_ctx={self.n_ctx} is too short for a prompt and an answer",
                hint=f"at least {MIN_N_CTX}",
            )
        if not 1 <= self.n_seq_max <= 128:
            raise UsageError(f"n_seq_max={self.n_seq_max} is not within 1..128")

    @property
    def is_quantised(self) -> bool:
        """Whether keys or values are kept in blocks."""
        return KV_TYPES[self.type_k][2] > 1 or KV_TYPES[self.type_v][2] > 1


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Sizes of one model's KV cache."""

    n_layers: int
    n_head_kv: int
    head_dim: int

    def bytes_per_token(self, type_k: str, type_v: str) -> int:
        """Bytes that one cell takes in all layers."""
        values = self.n_head_kv * self.head_dim
        return self.n_layers * sum(
            values * KV_TYPES[name][1] // KV_TYPES[name][2] for name in (type_k, type_v)
        )


def decide_flash_attn(options: LlamaOptions, *, has_gpu: bool) -> bool:
    """Flash attention on or off.

    Raises:
        CapabilityError: values are to be quantised and flash attention was turned off.
    """
    v_is_quantised = KV_TYPES[options.type_v][2] > 1
    if options.flash_attn is False and v_is_quantised:
        raise CapabilityError(
            f"Cached values of type {options.type_v} need flash attention, which is turned off",
            hint="flash_attn=True, or type_v='f16' (keys may stay quantised)",
            details={"type_v": options.type_v},
        )
    if options.flash_attn is not None:
        return options.flash_attn
    return v_is_quantised or has_gpu or _FLASH_ATTN_ON_CPU


# Measured with an f16 cache on x86 without AMX, 400 to 1900 tokens: prefill 8 to 15 % faster,
# decoding as fast up to 900 tokens and 10 % slower at 1900.
_FLASH_ATTN_ON_CPU = True


def check_cache_types(options: LlamaOptions, shape: CacheShape) -> None:
    """Refuse cache types that the head size does not allow.

    Raises:
        CapabilityError: a block of the type does not divide a head.
    """
    for name in (options.type_k, options.type_v):
        block = KV_TYPES[name][2]
        if shape.head_dim % block:
            raise CapabilityError(
                f"A KV cache of type {name} needs heads of a multiple of {block} values; "
                f"this model has {shape.head_dim}",
                hint="type_k='f16', type_v='f16'",
                details={"head_dim": shape.head_dim, "type": name},
            )


def check_weights(file_bytes: int, available_bytes: int) -> None:
    """Refuse weights that would not fit; loading them would end in a kill, not in an error.

    Raises:
        ResourceError: names both sizes.
    """
    if file_bytes > available_bytes:
        raise ResourceError(
            f"The weights take {file_bytes >> 20} MiB; {available_bytes >> 20} MiB are free",
            hint="free memory, or use a smaller model or a stronger quantisation",
            details={"needed_bytes": file_bytes, "available_bytes": available_bytes},
        )


def check_memory(n_ctx: int, bytes_per_token: int, available_bytes: int) -> None:
    """Refuse a cache that would not fit; the system grants it and kills the process later.

    Raises:
        ResourceError: names what would fit.
    """
    needed = n_ctx * bytes_per_token
    allowed = int(available_bytes * _MEMORY_SHARE)
    if needed > allowed:
        fits = allowed // bytes_per_token // 256 * 256
        raise ResourceError(
            f"A context of {n_ctx} tokens needs {needed >> 20} MiB for its KV cache; "
            f"{available_bytes >> 20} MiB are free",
            hint=f"n_ctx={fits}" if fits else "free memory or use a smaller model",
            details={"needed_bytes": needed, "available_bytes": available_bytes},
        )
