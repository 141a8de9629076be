"""An asker that takes the session over from the feeder when the first question comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edge_runtime.extract.asker import Asker
from edge_runtime.llm.engine import Session
from edge_runtime.llm.prompt import PromptCompiler, Segment


class FedAsker(Asker):
    """See `Asker`; fields that need no model never wait for the prompt.

    Args:
        session: The feeder's session.
        compiler: Turns segments into tokens.
        take_over: Stops the feeder, gives the session back and names prefix and document; called
            once, at the first question.
        cancel: Checked during long work.
    """

    def __init__(
        self,
        session: Session,
        compiler: PromptCompiler,
        take_over: Callable[[], Sequence[Segment]],
        *,
        cancel: Callable[[], bool],
    ) -> None:
        super().__init__(session, compiler, (), cancel=cancel)
        self._take_over: Callable[[], Sequence[Segment]] | None = take_over

    def ask(self, question: Sequence[Segment], *, answer_prefix: str = "") -> None:
        """See `Asker.ask`."""
        if self._take_over is not None:
            take_over, self._take_over = self._take_over, None
            self.segments = tuple(take_over())
        super().ask(question, answer_prefix=answer_prefix)
