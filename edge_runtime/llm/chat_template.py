"""How a model family marks turns, and which family a model file belongs to.

The Jinja text in a model file is a program from a stranger and is never run. It is only searched
for the markers of the families below, whose markup is written out here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Markup:
    """What stands around the text of one kind of turn."""

    open: str = ""
    close: str = ""


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """The markup of one family.

    Args:
        family: Name for people and cache keys.
        system: Around instructions. With `system_in_user` it stands inside the first user turn.
        user: Around examples, documents and questions.
        answer: Around the model's own turns.
        system_in_user: The family has no turn for instructions.
        text_lead: Belongs to the first text of a turn, so that the tokenizer sees both at once
            (SentencePiece families expect a space there).
        default_system: What the family's own template says when there are no instructions. It is
            used only on request, see `PromptCompiler`.
        notice: Why this template is a guess; None when it is not.
    """

    family: str
    system: Markup
    user: Markup
    answer: Markup
    system_in_user: bool = False
    text_lead: str = ""
    default_system: str | None = None
    notice: str | None = None


def _chatml(family: str, *, answer_open: str = "<|im_start|>assistant\n") -> ChatTemplate:
    return ChatTemplate(
        family=family,
        system=Markup("<|im_start|>system\n", "<|im_end|>\n"),
        user=Markup("<|im_start|>user\n", "<|im_end|>\n"),
        answer=Markup(answer_open, "<|im_end|>\n"),
    )


def _header_turn(role: str) -> Markup:
    return Markup(f"<|start_header_id|>{role}<|end_header_id|>\n\n", "<|eot_id|>")


def _angle_turn(role: str, end: str) -> Markup:
    return Markup(f"<|{role}|>\n", f"{end}\n")


def _granite_turn(role: str) -> Markup:
    return Markup(f"<|start_of_role|>{role}<|end_of_role|>", "<|end_of_text|>\n")


def _phi4_turn(role: str) -> Markup:
    return Markup(f"<|im_start|>{role}<|im_sep|>", "<|im_end|>")


PLAIN = ChatTemplate(
    family="plain",
    system=Markup("", "\n\n"),
    user=Markup("", "\n"),
    answer=Markup("", "\n\n"),
)

FAMILIES: dict[str, ChatTemplate] = {
    template.family: template
    for template in (
        _chatml("chatml"),
        # The empty thought is what the family's template writes when thinking is switched off.
        _chatml("chatml-thinking", answer_open="<|im_start|>assistant\n<think>\n\n</think>\n\n"),
        ChatTemplate(
            "llama3", _header_turn("system"), _header_turn("user"), _header_turn("assistant")
        ),
        ChatTemplate(
            family="llama2",
            system=Markup("<<SYS>>\n", "\n<</SYS>>\n\n"),
            user=Markup("[INST]", " [/INST]"),
            answer=Markup("", "</s>"),
            system_in_user=True,
            text_lead=" ",
        ),
        ChatTemplate(
            family="mistral",
            system=Markup("", "\n\n"),
            user=Markup("[INST]", "[/INST]"),
            answer=Markup("", "</s>"),
            system_in_user=True,
            text_lead=" ",
        ),
        ChatTemplate(
            family="mistral-v7",
            system=Markup("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
            user=Markup("[INST]", "[/INST]"),
            answer=Markup("", "</s>"),
        ),
        ChatTemplate(
            family="gemma",
            system=Markup("", "\n\n"),
            user=Markup("<start_of_turn>user\n", "<end_of_turn>\n"),
            answer=Markup("<start_of_turn>model\n", "<end_of_turn>\n"),
            system_in_user=True,
        ),
        ChatTemplate(
            "zephyr",
            _angle_turn("system", "</s>"),
            _angle_turn("user", "</s>"),
            _angle_turn("assistant", "</s>"),
        ),
        ChatTemplate(
            "phi3",
            _angle_turn("system", "<|end|>"),
            _angle_turn("user", "<|end|>"),
            _angle_turn("assistant", "<|end|>"),
        ),
        ChatTemplate("phi4", _phi4_turn("system"), _phi4_turn("user"), _phi4_turn("assistant")),
        ChatTemplate(
            "granite",
            _granite_turn("system"),
            _granite_turn("user"),
            _granite_turn("assistant"),
        ),
        PLAIN,
    )
}

# Markers that a template of the family contains, the most telling family first.
_MARKERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("phi4", ("<|im_start|>", "<|im_sep|>")),
    ("chatml-thinking", ("<|im_start|>", "enable_thinking")),
    ("chatml", ("<|im_start|>",)),
    ("llama3", ("<|start_header_id|>", "<|eot_id|>")),
    ("gemma", ("<start_of_turn>",)),
    ("granite", ("<|start_of_role|>",)),
    ("mistral-v7", ("[SYSTEM_PROMPT]", "[INST]")),
    ("llama2", ("[INST]", "<<SYS>>")),
    ("mistral", ("[INST]",)),
    ("phi3", ("<|user|>", "<|end|>")),
    ("zephyr", ("<|user|>", "<|assistant|>")),
)
# Vocabulary entries that give away the family of an instruct model without a template.
_TOKENS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("llama3", ("<|start_header_id|>", "<|eot_id|>")),
    ("gemma", ("<start_of_turn>", "<end_of_turn>")),
    ("chatml", ("<|im_start|>", "<|im_end|>")),
    ("phi3", ("<|user|>", "<|end|>")),
)
_INSTRUCT_NAME = re.compile(r"(?i)(?:^|[^a-z])(?:instruct|chat|it|assistant)(?:[^a-z]|$)")
_DEFAULT_SYSTEM = re.compile(
    r"""<\|im_start\|>system(?:\\n|\n)([^'"{}<|]+?)<\|im_end\|>""", re.DOTALL
)


class TemplateSource(Protocol):
    """What detection needs of an engine."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    @property
    def chat_template(self) -> str | None:
        """The template text of the model file."""
        ...

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Tokens of `text`."""
        ...


def detect(engine: TemplateSource) -> ChatTemplate:
    """The family of a model; `PLAIN` for base models.

    A template that no family matches gives `PLAIN` with a notice, and so does a model that is
    named as an instruct model but carries neither template nor known tokens.
    """
    text = engine.chat_template
    if text:
        for family, markers in _MARKERS:
            if all(marker in text for marker in markers):
                return replace(FAMILIES[family], default_system=_default_system(text))
        return replace(
            PLAIN, notice=f"{engine.name}: its chat template is of no known family, plain text used"
        )
    if not _INSTRUCT_NAME.search(engine.name):
        return PLAIN
    for family, tokens in _TOKENS:
        if all(len(engine.tokenize(token, special=True)) == 1 for token in tokens):
            return replace(
                FAMILIES[family],
                notice=f"{engine.name}: no chat template in the file, {family} by its tokens",
            )
    return replace(PLAIN, notice=f"{engine.name}: no chat template in the file, plain text used")


def _default_system(text: str) -> str | None:
    found = _DEFAULT_SYSTEM.search(text)
    return found.group(1).replace("\\n", "\n").strip() if found else None
