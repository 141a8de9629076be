"""How a strategy meets the pipeline: the prompt before and within the document, and the fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from edge_runtime.extract.asker import Asker
from edge_runtime.extract.schema import ExtractionSchema
from edge_runtime.llm.prompt import Role, Segment
from edge_runtime.values import Document, FieldValue, Line


class Strategy(Protocol):
    """Turns a document into the fields of a schema."""

    @property
    def name(self) -> str:
        """For people and results."""
        ...

    def wants_model(self, schema: ExtractionSchema) -> bool:
        """Whether a language model can change anything for this schema."""
        ...

    def prefix_segments(self, schema: ExtractionSchema) -> tuple[Segment, ...]:
        """Instruction and examples: pinned, equal for all documents of a schema."""
        ...

    def line_segment(self, line: Line, previous: Line | None) -> Segment:
        """How a line enters the prompt after `previous`."""
        ...

    def extract(
        self, document: Document, schema: ExtractionSchema, asker: Asker | None
    ) -> Iterator[FieldValue]:
        """The fields, each as soon as it is decided, every field of the schema exactly once.

        Args:
            document: All lines.
            schema: What to find.
            asker: The language model with the document in its cache; None works without.
        """
        ...


def document_segment(line: Line, previous: Line | None) -> Segment:
    """A line as text: beside the previous one in the same row, else on a line of its own."""
    if previous is None:
        lead = ""
    elif previous.page == line.page and previous.row == line.row:
        lead = "  "
    else:
        lead = "\n"
    return Segment(Role.DOCUMENT, lead + line.text)
