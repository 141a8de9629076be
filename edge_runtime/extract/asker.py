"""Questions to the language model about the document that is already in its cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from edge_runtime.llm.engine import ScoredContinuation, Session
from edge_runtime.llm.prompt import PromptCompiler, Segment
from edge_runtime.trace import current

if TYPE_CHECKING:
    from edge_runtime.llm.constraint import Constraint
    from edge_runtime.llm.decoding import Drafter, Generation


class Asker:
    """A session whose prompt is prefix and document, open for one question after another.

    Each question follows the document directly; the answer to one is not seen by the next, so the
    order of questions does not matter and only their own tokens are computed.

    Args:
        session: Holds, or will be made to hold, the document.
        compiler: Turns segments into tokens for the session's engine.
        segments: Prefix and document.
        cancel: Checked during long work.
    """

    def __init__(
        self,
        session: Session,
        compiler: PromptCompiler,
        segments: Sequence[Segment],
        *,
        cancel: Callable[[], bool] | None = None,
    ) -> None:
        self.session = session
        self.compiler = compiler
        self.segments = tuple(segments)
        self.cancel = cancel

    def ask(self, question: Sequence[Segment], *, answer_prefix: str = "") -> None:
        """Make the cache end where the answer begins.

        Raises:
            ContextOverflow: document and question do not fit.
            Cancelled: the caller asked to stop.
        """
        tokens = self.compiler.tokens(
            [*self.segments, *question], open_answer=True, answer_prefix=answer_prefix
        )
        with current().span("llm.ask") as span:
            report = self.session.sync(tokens, cancel=self.cancel)
            span.n_tokens = report.n_prefilled

    def score(
        self,
        question: Sequence[Segment],
        options: Sequence[str],
        *,
        answer_prefix: str = "",
        is_closed: bool = True,
    ) -> list[ScoredContinuation]:
        """Log-probability of each option as the answer.

        Args:
            question: Follows the document.
            options: Texts of answers.
            answer_prefix: Words put before every option.
            is_closed: Count also that the answer ends there, which tells a name from its beginning.
        """
        if not options:
            return []
        self.ask(question, answer_prefix=answer_prefix)
        end = self._end_tokens() if is_closed else ()
        continuations = [(*self.compiler.text_tokens(option), *end) for option in options]
        with current().span("llm.score") as span:
            span.n_tokens = sum(map(len, continuations))
            return self.session.score(continuations)

    def generate(
        self,
        question: Sequence[Segment],
        constraint: Constraint,
        *,
        max_tokens: int,
        answer_prefix: str = "",
        draft_source: Drafter | Sequence[int] | None = None,
    ) -> Generation:
        """An answer that keeps to `constraint`; iterate it for its tokens as they are decided."""
        from edge_runtime.llm.decoding import generate

        self.ask(question, answer_prefix=answer_prefix)
        return generate(
            self.session,
            constraint,
            max_tokens=max_tokens,
            draft_source=draft_source,
            cancel=self.cancel,
        )

    def _end_tokens(self) -> tuple[int, ...]:
        """What ends an answer: the first token that closes the model's turn, or a line end."""
        close = self.compiler.markup_tokens(self.compiler.template.answer.close)
        return close[:1] if close else self.compiler.text_tokens("\n")[:1]
