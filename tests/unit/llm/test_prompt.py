"""Prompts only grow at their end, and documents cannot speak for anybody."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from edge_runtime.llm.chat_template import FAMILIES
from edge_runtime.llm.prompt import PromptCompiler, Role, Segment
from edge_runtime.llm.scripted_engine import ScriptedEngine, ScriptedOptions

ENGINE = ScriptedEngine()
MARKERS = [
    "<|im_end|>",
    "<|im_start|>assistant\n",
    "</s>",
    "[/INST]",
    "<end_of_turn>",
    "<|eot_id|>",
]
Texts = st.one_of(st.text(max_size=12), st.sampled_from(MARKERS))
Segments = st.lists(
    st.builds(Segment, st.sampled_from(list(Role)), Texts, st.booleans()), max_size=6
)
Documents = st.lists(
    st.builds(Segment, st.sampled_from([Role.DOCUMENT, Role.SPEECH]), Texts), max_size=4
)


def compiler(family: str = "chatml") -> PromptCompiler:
    return PromptCompiler(ENGINE, FAMILIES[family])


def text_of(tokens: tuple[int, ...]) -> str:
    return ENGINE.detokenize(tokens).decode()


@given(st.sampled_from(sorted(FAMILIES)), Segments, Documents)
def test_more_document_only_adds_tokens(
    family: str, segments: list[Segment], more: list[Segment]
) -> None:
    prompt = compiler(family)
    head = prompt.open_tokens(segments)
    assert prompt.open_tokens(segments + more)[: len(head)] == head
    assert prompt.tokens(segments + more, open_answer=True)[: len(head)] == head
    assert prompt.tokens(segments + more, open_answer=False)[: len(head)] == head


@given(st.sampled_from(sorted(FAMILIES)), Segments, Segments)
def test_pinned_tokens_do_not_depend_on_what_follows(
    family: str, segments: list[Segment], rest: list[Segment]
) -> None:
    prompt = compiler(family)
    pinned = [Segment(s.role, s.text, pinned=True) for s in segments]
    loose = [Segment(s.role, s.text) for s in rest]
    n = prompt.n_pinned(pinned + loose)
    assert prompt.open_tokens(pinned + loose)[:n] == prompt.open_tokens(pinned)
    assert n == prompt.n_pinned(pinned)


@given(Segments)
def test_texts_never_give_special_tokens(segments: list[Segment]) -> None:
    tokens = compiler("plain").tokens(segments, open_answer=True)
    assert all(token < 256 for token in tokens)


def test_chatml_is_written_as_the_family_writes_it() -> None:
    segments = [
        Segment(Role.SYSTEM, "Be brief."),
        Segment(Role.EXAMPLE, "2+2?"),
        Segment(Role.ANSWER, "4"),
        Segment(Role.DOCUMENT, "SHOP\n"),
        Segment(Role.QUESTION, "Total?"),
    ]
    assert text_of(compiler().tokens(segments, open_answer=True, answer_prefix="It is")) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\n2+2?<|im_end|>\n"
        "<|im_start|>assistant\n4<|im_end|>\n"
        "<|im_start|>user\nSHOP\nTotal?<|im_end|>\n"
        "<|im_start|>assistant\nIt is"
    )


@pytest.mark.parametrize(
    ("family", "parts"),
    [
        ("plain", ["S\n\n", "U\n", "A"]),
        (
            "llama3",
            [
                "<|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|>",
                "<|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|>",
                "<|start_header_id|>assistant<|end_header_id|>\n\nA",
            ],
        ),
        ("llama2", ["[INST]<<SYS>>\n S\n<</SYS>>\n\n", "U [/INST]", " A"]),
        ("mistral", ["[INST] S\n\n", "U[/INST]", " A"]),
        ("mistral-v7", ["[SYSTEM_PROMPT]S[/SYSTEM_PROMPT]", "[INST]U[/INST]", "A"]),
        ("gemma", ["<start_of_turn>user\nS\n\n", "U<end_of_turn>\n", "<start_of_turn>model\nA"]),
        ("zephyr", ["<|system|>\nS</s>\n", "<|user|>\nU</s>\n", "<|assistant|>\nA"]),
        ("phi3", ["<|system|>\nS<|end|>\n", "<|user|>\nU<|end|>\n", "<|assistant|>\nA"]),
        (
            "phi4",
            [
                "<|im_start|>system<|im_sep|>S<|im_end|>",
                "<|im_start|>user<|im_sep|>U<|im_end|>",
                "<|im_start|>assistant<|im_sep|>A",
            ],
        ),
        (
            "granite",
            [
                "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n",
                "<|start_of_role|>user<|end_of_role|>U<|end_of_text|>\n",
                "<|start_of_role|>assistant<|end_of_role|>A",
            ],
        ),
        (
            "chatml-thinking",
            [
                "<|im_start|>system\nS<|im_end|>\n",
                "<|im_start|>user\nU<|im_end|>\n",
                "<|im_start|>assistant\n<think>\n\n</think>\n\nA",
            ],
        ),
    ],
)
def test_other_families(family: str, parts: list[str]) -> None:
    segments = [Segment(Role.SYSTEM, "S"), Segment(Role.QUESTION, "U")]
    tokens = compiler(family).tokens(segments, open_answer=True, answer_prefix="A")
    assert text_of(tokens) == "".join(parts)


def test_a_marker_in_a_document_stays_text() -> None:
    tokens = compiler().open_tokens([Segment(Role.DOCUMENT, "paid<|im_end|>\n")])
    assert not set(tokens) & ENGINE.eos_ids
    assert text_of(tokens).endswith("paid<|im_end|>\n")


def test_an_answer_at_the_end_stays_open() -> None:
    segments = [Segment(Role.QUESTION, "Q"), Segment(Role.ANSWER, "The total")]
    tokens = compiler().tokens(segments, open_answer=True, answer_prefix=" is")
    assert text_of(tokens).endswith("<|im_start|>assistant\nThe total is")


def test_a_default_system_prompt_is_used_only_on_request() -> None:
    template = replace(FAMILIES["chatml"], default_system="You are Smol.")
    question = [Segment(Role.QUESTION, "Q")]
    silent = PromptCompiler(ENGINE, template)
    assert "Smol" not in text_of(silent.tokens(question, open_answer=True))
    asked = PromptCompiler(ENGINE, template, use_default_system=True)
    assert text_of(asked.tokens(question, open_answer=True)).startswith(
        "<|im_start|>system\nYou are Smol.<|im_end|>\n<|im_start|>user\nQ"
    )
    own = [Segment(Role.SYSTEM, "Mine."), *question]
    assert "Smol" not in text_of(asked.tokens(own, open_answer=True))


def test_nothing_pinned_is_nothing() -> None:
    assert compiler().n_pinned([]) == 0
    assert compiler().n_pinned([Segment(Role.DOCUMENT, "x")]) == 0
    assert compiler().open_tokens([]) == ()


def test_a_base_model_gets_plain_text() -> None:
    base = ScriptedEngine("", ScriptedOptions(has_chat_template=False))
    assert PromptCompiler(base).template.family == "plain"


def test_texts_are_tokenised_once() -> None:
    class Counting(ScriptedEngine):
        n_calls = 0

        def tokenize(self, text: str, *, special: bool = False) -> list[int]:
            self.n_calls += 1
            return super().tokenize(text, special=special)

    engine = Counting()
    prompt = PromptCompiler(engine, FAMILIES["chatml"])
    segments = [Segment(Role.DOCUMENT, f"line {i}\n") for i in range(20)]
    prompt.open_tokens(segments)
    n_calls = engine.n_calls
    prompt.open_tokens(segments)
    assert engine.n_calls == n_calls
