"""From segments to tokens, so that a longer document only ever adds tokens at the end.

    compiler = PromptCompiler(engine)
    lines = [Segment(Role.SYSTEM, "Read the receipt.", pinned=True)]
    session.sync(compiler.open_tokens(lines), keep_logits=False)
    lines.append(Segment(Role.DOCUMENT, "TOTAL 12.40\\n"))
    session.sync(compiler.open_tokens(lines), keep_logits=False)
    session.sync(compiler.tokens([*lines, question], open_answer=True))

Each text is tokenised by itself and without special tokens: a document that contains a turn
marker gives ordinary tokens that spell it, and can not close a turn.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from edge_runtime.llm.chat_template import ChatTemplate, Markup, detect
from edge_runtime.llm.engine import Engine

_MAX_CACHED_TEXTS = 4096


class Role(StrEnum):
    """Who speaks in a segment, or what it shows."""

    SYSTEM = "system"
    EXAMPLE = "example"
    DOCUMENT = "document"
    SPEECH = "speech"
    QUESTION = "question"
    ANSWER = "answer"


class _Turn(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ANSWER = "answer"


_TURN_OF = {
    Role.SYSTEM: _Turn.SYSTEM,
    Role.EXAMPLE: _Turn.USER,
    Role.DOCUMENT: _Turn.USER,
    Role.SPEECH: _Turn.USER,
    Role.QUESTION: _Turn.USER,
    Role.ANSWER: _Turn.ANSWER,
}


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the prompt.

    Neighbouring segments of the same turn are joined as they are, so a text brings its own line
    ends. Examples, documents, speech and questions share the user's turn. `pinned` segments at
    the front are kept across documents.
    """

    role: Role
    text: str
    pinned: bool = False


class PromptCompiler:
    """Turns segments into tokens for one engine.

    Args:
        engine: Whose tokenizer is used.
        template: The markup of turns; None detects it.
        use_default_system: Whether to say what the model's own template says when a prompt has no
            instructions (SmolLM2: that it is a helpful assistant of that name). Off by default:
            nothing is in a prompt that the caller did not write.
    """

    def __init__(
        self,
        engine: Engine,
        template: ChatTemplate | None = None,
        *,
        use_default_system: bool = False,
    ) -> None:
        self.engine = engine
        self.template = template if template is not None else detect(engine)
        self._use_default_system = use_default_system
        self._bos = () if engine.bos is None else (engine.bos,)
        self._markup: dict[str, tuple[int, ...]] = {}
        self._texts: OrderedDict[str, tuple[int, ...]] = OrderedDict()

    def open_tokens(self, segments: Sequence[Segment]) -> tuple[int, ...]:
        """Tokens without the closing of the last turn.

        They are an exact prefix of `open_tokens(segments + more)` and of
        `tokens(segments + more, ...)`.
        """
        return tuple(self._compile(segments).tokens)

    def tokens(
        self, segments: Sequence[Segment], *, open_answer: bool, answer_prefix: str = ""
    ) -> tuple[int, ...]:
        """Tokens with every turn closed, or with the model's turn open.

        Args:
            segments: The prompt.
            open_answer: End with an open turn of the model. A last segment that already is an
                answer stays open.
            answer_prefix: Words put into the model's mouth (only with `open_answer`).
        """
        writer = self._compile(segments)
        if not open_answer:
            writer.close()
            return tuple(writer.tokens)
        writer.enter(_Turn.ANSWER)
        if answer_prefix:
            writer.text(answer_prefix)
        return tuple(writer.tokens)

    def n_pinned(self, segments: Sequence[Segment]) -> int:
        """Tokens that depend on nothing but the pinned segments at the front."""
        n_segments = 0
        while n_segments < len(segments) and segments[n_segments].pinned:
            n_segments += 1
        return len(self._compile(segments[:n_segments]).tokens) if n_segments else 0

    def text_tokens(self, text: str) -> tuple[int, ...]:
        """Tokens of a text by itself, never special ones."""
        known = self._texts.get(text)
        if known is None:
            known = tuple(self.engine.tokenize(text))
            self._texts[text] = known
            if len(self._texts) > _MAX_CACHED_TEXTS:
                self._texts.popitem(last=False)
        return known

    def markup_tokens(self, markup: str) -> tuple[int, ...]:
        """Tokens of the template's own markup, special ones included."""
        known = self._markup.get(markup)
        if known is None:
            known = tuple(self.engine.tokenize(markup, special=True)) if markup else ()
            self._markup[markup] = known
        return known

    def _compile(self, segments: Sequence[Segment]) -> _Writer:
        writer = _Writer(self, list(self._bos))
        default = self.template.default_system
        lacks_system = bool(segments) and segments[0].role is not Role.SYSTEM
        if self._use_default_system and default and lacks_system:
            writer.enter(_Turn.SYSTEM)
            writer.text(default)
        for segment in segments:
            writer.enter(_TURN_OF[segment.role])
            writer.text(segment.text)
        return writer


class _Writer:
    """Tokens so far, and the turn that is open at their end."""

    def __init__(self, compiler: PromptCompiler, tokens: list[int]) -> None:
        self.tokens = tokens
        self._compiler = compiler
        self._template = compiler.template
        self._open: _Turn | None = None
        self._lead = ""

    def enter(self, turn: _Turn) -> None:
        if turn is self._open:
            return
        nested = self._template.system_in_user
        if nested and self._open is _Turn.SYSTEM and turn is _Turn.USER:
            self._mark(self._template.system.close)  # the user's turn goes on
        else:
            self.close()
            if nested and turn is _Turn.SYSTEM:
                self._mark(self._template.user.open)
            self._mark(self._markup(turn).open)
            self._lead = self._template.text_lead
        self._open = turn

    def text(self, text: str) -> None:
        if not text:
            return
        lead, self._lead = self._lead, ""
        self.tokens.extend(self._compiler.text_tokens(lead + text))

    def close(self) -> None:
        if self._open is None:
            return
        self._mark(self._markup(self._open).close)
        if self._open is _Turn.SYSTEM and self._template.system_in_user:
            self._mark(self._template.user.close)
        self._open = None
        self._lead = ""

    def _markup(self, turn: _Turn) -> Markup:
        if turn is _Turn.SYSTEM:
            return self._template.system
        return self._template.user if turn is _Turn.USER else self._template.answer

    def _mark(self, markup: str) -> None:
        self.tokens.extend(self._compiler.markup_tokens(markup))
