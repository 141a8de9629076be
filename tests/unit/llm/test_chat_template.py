"""Which family a model belongs to."""

from __future__ import annotations

import pytest

from edge_runtime.llm.chat_template import detect

SMOL = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"
    "{% endfor %}"
)


class Model:
    def __init__(self, template: str | None, name: str = "m", tokens: tuple[str, ...] = ()) -> None:
        self.name = name
        self.chat_template = template
        self._tokens = tokens

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        return [1] if special and text in self._tokens else list(text.encode())


@pytest.mark.parametrize(
    ("template", "family"),
    [
        (SMOL, "chatml"),
        ("<|im_start|> {% if enable_thinking %}", "chatml-thinking"),
        ("<|im_start|>user<|im_sep|>", "phi4"),
        ("{{ '<|start_header_id|>' + role }}<|eot_id|>", "llama3"),
        ("<start_of_turn>model\n", "gemma"),
        ("[INST] <<SYS>>\n", "llama2"),
        ("[INST] {{ content }} [/INST]", "mistral"),
        ("[SYSTEM_PROMPT] [INST]", "mistral-v7"),
        ("<|user|>\n{{ c }}<|end|>\n<|assistant|>", "phi3"),
        ("<|user|>\n{{ c }}</s>\n<|assistant|>", "zephyr"),
        ("<|start_of_role|>user<|end_of_role|>", "granite"),
    ],
)
def test_a_template_tells_its_family(template: str, family: str) -> None:
    found = detect(Model(template))
    assert found.family == family
    assert found.notice is None


def test_the_default_instructions_of_a_template_are_known() -> None:
    assert detect(Model(SMOL)).default_system == "You are helpful."
    assert detect(Model("<|im_start|>{{ role }}")).default_system is None


def test_a_base_model_is_plain_without_a_notice() -> None:
    found = detect(Model(None, "gemma-3-270m"))
    assert (found.family, found.notice) == ("plain", None)


def test_an_unknown_template_is_plain_with_a_notice() -> None:
    found = detect(Model("{{ strange }}"))
    assert found.family == "plain"
    assert found.notice


def test_an_instruct_model_without_a_template_is_known_by_its_tokens() -> None:
    found = detect(Model(None, "Some-0.5B-Instruct", ("<|im_start|>", "<|im_end|>")))
    assert found.family == "chatml"
    assert found.notice


def test_tokens_alone_do_not_make_a_base_model_chat() -> None:
    found = detect(Model(None, "Some-0.5B", ("<|im_start|>", "<|im_end|>")))
    assert found.family == "plain"


def test_an_instruct_model_of_which_nothing_is_known_says_so() -> None:
    assert detect(Model(None, "odd-it")).notice
