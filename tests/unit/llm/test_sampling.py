"""Choosing tokens."""

from __future__ import annotations

import numpy as np
import pytest

from edge_runtime.errors import StageError
from edge_runtime.llm.engine import GREEDY, Sampled
from edge_runtime.llm.logprobs import log_normaliser, token_logprobs
from edge_runtime.llm.sampling import allowed_tokens, choose

ROW = np.array([0.0, 3.0, 3.0, -1.0, 2.0], np.float32)


def sampled(*, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Sampled:
    rng = np.random.default_rng(3)
    return Sampled(rng, temperature=temperature, top_k=top_k, top_p=top_p)


def test_greedy_takes_the_lowest_of_equal_tokens() -> None:
    assert choose(ROW, GREEDY) == 1
    assert choose(ROW, GREEDY, np.array([False, False, True, True, True])) == 2


def test_words_of_bits_name_the_tokens_lowest_bit_first() -> None:
    words = np.array([0b10010, 0b1], np.int32)
    assert allowed_tokens(words, 64).tolist() == [1, 4, 32]
    assert allowed_tokens(words, 5).tolist() == [1, 4]


def test_nothing_allowed_is_an_error() -> None:
    with pytest.raises(StageError):
        choose(ROW, GREEDY, np.zeros(5, np.bool_))


def test_sampling_follows_the_probabilities() -> None:
    sampling = sampled()
    counts = np.bincount([choose(ROW, sampling) for _ in range(4000)], minlength=5) / 4000
    expected = np.exp(ROW) / np.exp(ROW).sum()
    np.testing.assert_allclose(counts, expected, atol=0.03)


def test_top_k_and_top_p_cut_the_tail() -> None:
    assert {choose(ROW, sampled(top_k=2), None) for _ in range(50)} <= {1, 2}
    nucleus = sampled(top_p=0.5)
    assert {choose(ROW, nucleus) for _ in range(200)} == {1, 2}


def test_a_mask_holds_when_sampling() -> None:
    mask = np.array([True, False, False, True, False])
    sampling = sampled(temperature=10.0)
    assert {choose(ROW, sampling, mask) for _ in range(100)} == {0, 3}


def test_temperature_zero_is_greedy() -> None:
    assert {choose(ROW, sampled(temperature=0.0)) for _ in range(10)} == {1}


def test_log_probabilities_sum_to_one_without_overflow() -> None:
    row = np.array([1e4, 1e4 - 1, -1e4, 0], np.float32)
    values = token_logprobs(row, range(4))
    assert np.exp(values).sum() == pytest.approx(1.0, abs=1e-6)
    assert np.isfinite(log_normaliser(row))


def test_a_scratch_row_changes_no_result_and_not_the_row() -> None:
    rng = np.random.default_rng(0)
    row = rng.normal(size=50000).astype(np.float32)
    before = row.copy()
    with_scratch = log_normaliser(row, np.empty_like(row))
    assert with_scratch == log_normaliser(row)
    np.testing.assert_array_equal(row, before)
    wide = row.astype(np.float64)
    assert with_scratch == pytest.approx(np.log(np.exp(wide).sum()), abs=1e-5)
