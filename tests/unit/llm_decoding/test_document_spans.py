import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_runtime.errors import UsageError
from edge_runtime.llm.document_spans import DocumentSpans

LINES = ("TAN WOON YANN", "27, JALAN DEDAP 13,", "TOTAL RM 60.30")
WORDS = st.lists(st.sampled_from(["a", "bb", "a.", "(c)", "d\\e", "é", "日本"]), max_size=5)


def all_spans(lines: list[list[str]], max_lines: int, max_words: int) -> set[str]:
    spans: set[str] = set()
    for i, line in enumerate(lines):
        window = [word for other in lines[i : i + max_lines] for word in other]
        for start in range(len(line)):
            for end in range(start + 1, min(len(window), start + max_words) + 1):
                spans.add(" ".join(window[start:end]))
    return spans


@given(
    lines=st.lists(WORDS, min_size=1, max_size=5),
    max_lines=st.integers(1, 3),
    max_words=st.integers(1, 6),
    data=st.data(),
)
def test_exactly_the_spans_are_allowed(lines, max_lines, max_words, data):
    spans = DocumentSpans(
        tuple(" ".join(line) for line in lines),
        max_lines_multiline=max_lines,
        max_words=max_words,
    )
    expected = all_spans(lines, max_lines, max_words)
    for text in expected:
        assert spans.allows(text, multiline=True)
    guess = " ".join(data.draw(WORDS))
    assert spans.allows(guess, multiline=True) == (guess in (expected or {""}))


def test_a_span_is_whole_words_of_one_line_unless_said_otherwise():
    spans = DocumentSpans(LINES)
    assert spans.allows("WOON YANN")
    assert spans.allows("60.30")
    assert not spans.allows("WOO")
    assert not spans.allows("YANN WOON")
    assert not spans.allows("YANN 27,")
    assert spans.allows("YANN 27,", multiline=True)


def test_control_characters_and_odd_spaces_separate_words():
    spans = DocumentSpans(("a\x07b\u00a0c\t d",))
    assert spans.allows("a b c d")


def test_an_empty_document_allows_the_empty_string_only():
    for lines in ((), ("", "  ")):
        spans = DocumentSpans(lines)
        assert spans.allows("")
        assert not spans.allows("a")


def test_every_printable_character_is_taken_literally():
    word = string.punctuation
    spans = DocumentSpans((word,))
    assert spans.allows(word)
    assert re.fullmatch(spans.pattern(), word[:-1]) is None


def test_nonsense_limits_are_refused():
    with pytest.raises(UsageError):
        DocumentSpans(LINES, max_lines=0)
    with pytest.raises(UsageError, match="at most"):
        DocumentSpans(LINES, max_words=500)
