"""Rules that are checked before native code runs."""

from __future__ import annotations

from typing import Any

import pytest

from edge_runtime.errors import CapabilityError, ResourceError, UsageError
from edge_runtime.llm.llama_cpp_options import (
    CacheShape,
    LlamaOptions,
    check_cache_types,
    check_memory,
    decide_flash_attn,
)


@pytest.mark.parametrize(
    "wrong",
    [
        {"type_k": "q3_k"},
        {"type_v": ""},
        {"chunk_tokens": 0},
        {"chunk_tokens": 100},
        {"n_ctx": 0},
        {"n_threads": -1},
        {"n_threads_batch": 0},
        {"n_seq_max": 0},
        {"n_seq_max": 1000},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        LlamaOptions(**wrong)


def test_quantised_values_decide_flash_attention() -> None:
    assert decide_flash_attn(LlamaOptions(type_v="q4_0"), has_gpu=False)
    with pytest.raises(CapabilityError, match="flash"):
        decide_flash_attn(LlamaOptions(type_v="q4_0", flash_attn=False), has_gpu=False)


@pytest.mark.parametrize("asked", [True, False])
def test_an_explicit_choice_of_flash_attention_holds(asked: bool) -> None:
    assert decide_flash_attn(LlamaOptions(flash_attn=asked), has_gpu=True) is asked
    assert decide_flash_attn(LlamaOptions(flash_attn=asked), has_gpu=False) is asked


def test_a_gpu_build_uses_flash_attention() -> None:
    assert decide_flash_attn(LlamaOptions(), has_gpu=True)


def test_blocks_must_divide_a_head() -> None:
    check_cache_types(LlamaOptions(type_k="q8_0"), CacheShape(1, 1, 96))
    check_cache_types(LlamaOptions(), CacheShape(1, 1, 7))
    with pytest.raises(CapabilityError, match="80"):
        check_cache_types(LlamaOptions(type_k="q4_0"), CacheShape(1, 1, 80))


def test_cache_sizes_follow_the_types() -> None:
    shape = CacheShape(n_layers=30, n_head_kv=3, head_dim=64)
    assert shape.bytes_per_token("f16", "f16") == 30 * 192 * 4
    assert shape.bytes_per_token("q4_0", "q8_0") == 30 * (192 // 32 * 18 + 192 // 32 * 34)


def test_memory_that_is_not_there_is_refused_with_what_fits() -> None:
    check_memory(1000, 1 << 10, 10 << 20)
    with pytest.raises(ResourceError) as caught:
        check_memory(100_000, 1 << 10, 10 << 20)
    assert caught.value.hint == "n_ctx=9216"
    with pytest.raises(ResourceError) as caught:
        check_memory(100_000, 1 << 20, 1 << 20)
    assert "smaller model" in (caught.value.hint or "")
