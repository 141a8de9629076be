import random

from hypothesis import given
from hypothesis import strategies as st

from edge_runtime.llm.drafting import PromptLookup, document_tokens, draft
from edge_runtime.llm.scripted_engine import ScriptedEngine

SMALL = st.lists(st.integers(0, 3), max_size=30)


def longest_match(history: list[int], source: list[int]) -> tuple[int, int]:
    """Length of the longest ending of `history` in `source` and where it first ends; slow."""
    for n in range(len(history), 0, -1):
        for start in range(len(source) - n + 1):
            if source[start : start + n] == history[-n:]:
                return n, start + n
    return 0, 0


@given(source=SMALL, history=SMALL)
def test_the_longest_ending_is_followed_at_every_step(source, history):
    lookup = PromptLookup(source)
    for i, token in enumerate(history):
        lookup.push([token])
        n, end = longest_match(history[: i + 1], source)
        assert lookup.n_matched == n
        assert lookup.draft(5) == (source[end : end + 5] if n else [])


@given(source=SMALL, history=SMALL)
def test_the_function_agrees_with_the_follower(source, history):
    lookup = PromptLookup(source)
    lookup.push(history)
    assert draft(history, source, n_max=4) == lookup.draft(4)


def test_a_draft_needs_as_many_agreeing_tokens_as_asked_for():
    lookup = PromptLookup([1, 2, 3, 4, 5])
    lookup.push([9, 3])
    assert lookup.draft(8) == [4, 5]
    assert lookup.draft(8, min_match=2) == []
    assert draft([2, 3], [1, 2, 3, 4, 5], n_max=1, min_match=2) == [4]


def test_nothing_is_drafted_without_a_source_or_a_wish():
    assert draft([1, 2], [], n_max=4) == []
    assert draft([], [1, 2], n_max=4) == []
    assert draft([1], [1, 2], n_max=0) == []


def test_the_end_of_the_source_has_nothing_to_offer():
    assert draft([1, 2], [0, 1, 2], n_max=4) == []


def test_the_index_is_linear_in_the_source():
    rng = random.Random(0)
    source = [rng.randrange(50) for _ in range(4000)]
    lookup = PromptLookup(source)
    assert len(lookup._states) <= 2 * len(source)


def test_document_tokens_hold_lines_and_joined_lines():
    engine = ScriptedEngine()
    tokens = document_tokens(engine, ["ab cd", "ef"])
    assert engine.detokenize(tokens) == b"\nab cd\nef\nab cd ef"
