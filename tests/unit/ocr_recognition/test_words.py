"""Characters to words: text, place and confidence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_runtime.ocr.ctc import Glyph, greedy_glyphs
from edge_runtime.ocr.word_boxes import (
    along_quad,
    line_text,
    mean_confidence,
    split_words,
    spread_glyphs,
)

ALPHABET = ("", "a", "b", " ")


def path(*classes: int, sure: float = 0.9) -> np.ndarray:
    out = np.full((len(classes), len(ALPHABET)), (1 - sure) / (len(ALPHABET) - 1), np.float32)
    out[np.arange(len(classes)), classes] = sure
    return out


def text_of(glyphs) -> str:
    return "".join(g.text for g in glyphs)


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ((0, 0, 0), ""),
        ((1, 1, 1), "a"),
        ((1, 0, 1), "aa"),
        ((0, 1, 1, 0, 2, 3, 1), "ab a"),
    ],
)
def test_best_path_collapses_repeats_and_drops_blanks(classes, text):
    assert text_of(greedy_glyphs(path(*classes), ALPHABET)) == text


def test_glyph_spans_the_steps_it_was_seen_in():
    (glyph,) = greedy_glyphs(path(0, 1, 1, 0), ALPHABET)
    assert (glyph.start, glyph.end) == (0.25, 0.75)
    assert glyph.confidence == pytest.approx(0.9)


def test_padding_does_not_count_as_line():
    (glyph,) = greedy_glyphs(path(0, 1, 0, 0), ALPHABET, used_share=0.5)
    assert (glyph.start, glyph.end) == (0.5, 1.0)


def test_words_are_cut_at_spaces_and_widened_towards_their_neighbours():
    glyphs = greedy_glyphs(path(0, 1, 0, 2, 0, 3, 0, 0, 1, 0), ALPHABET)
    first, second = split_words(glyphs)
    assert (first.text, second.text) == ("ab", "a")
    assert first.start < 0.15 < second.start
    assert 0.35 < first.end <= second.start < 0.85 < second.end


def test_one_character_has_a_word():
    (word,) = split_words([Glyph("7", 0.4, 0.6, 0.8)])
    assert word.text == "7"
    assert 0 <= word.start < 0.5 < word.end <= 1


def test_only_spaces_are_no_words():
    assert split_words([Glyph(" ", 0.1, 0.2, 1.0)]) == []
    assert line_text([Glyph(" ", 0.1, 0.2, 1.0)]) == ""
    assert mean_confidence([]) == 0.0


def test_text_without_places_is_spread_evenly():
    glyphs = spread_glyphs("ab cd", 0.7)
    assert text_of(glyphs) == "ab cd"
    assert [w.text for w in split_words(glyphs)] == ["ab", "cd"]
    assert glyphs[-1].end == 1.0


paths = st.lists(st.integers(0, len(ALPHABET) - 1), min_size=1, max_size=60)
corner = st.tuples(st.floats(-500, 5000), st.floats(-500, 5000))


@given(paths, st.floats(0.3, 1.0))
def test_joined_words_are_the_line_and_never_overlap(classes, used_share):
    glyphs = greedy_glyphs(path(*classes), ALPHABET, used_share=used_share)
    words = split_words(glyphs)
    assert " ".join(w.text for w in words) == line_text(glyphs)
    edges = [edge for word in words for edge in (word.start, word.end)]
    assert edges == sorted(edges)
    assert all(0 <= edge <= 1 for edge in edges)


@given(corner, st.floats(1, 3000), st.floats(1, 200), st.floats(-3.1, 3.1), paths)
def test_words_lie_inside_their_line(origin, width, height, angle, classes):
    cos, sin = np.cos(angle), np.sin(angle)
    along, across = width * np.array([cos, sin]), height * np.array([-sin, cos])
    first = np.array(origin)
    quad = np.stack([first, first + along, first + along + across, first + across])
    for word in split_words(greedy_glyphs(path(*classes), ALPHABET)):
        inside = (along_quad(quad, word.start, word.end) - first) @ np.linalg.inv(
            np.stack([along, across])
        )
        assert inside.min() > -1e-6
        assert inside.max() < 1 + 1e-6
