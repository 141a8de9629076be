"""Which lines of a document reach the model when not all of them fit its context."""

from __future__ import annotations

from collections.abc import Sequence

from edge_runtime.values import Line

_EDGE_SHARE = 0.25


def usefulness(line: Line, *, at: float, labels: Sequence[str]) -> float:
    """How much a line is worth to extraction; higher is better.

    Args:
        line: The line.
        at: Where in the document it stands, 0 (first) to 1 (last).
        labels: Words that the schema's fields go by, lower case.
    """
    text = line.text.casefold()
    score = line.confidence
    score += 2.0 * any(label in text for label in labels)
    score += 1.0 * any(c.isdigit() for c in text)
    score += 1.0 * (at < _EDGE_SHARE or at > 1 - _EDGE_SHARE)
    score += 0.5 * (":" in text)
    return score - 1.0 * (len(text.strip()) < 2)


def fitting_lines(
    lines: Sequence[Line], costs: Sequence[int], *, budget: int, labels: Sequence[str]
) -> list[int]:
    """Indices of the most useful lines whose token costs fit the budget, in document order."""
    n = max(1, len(lines) - 1)
    ranked = sorted(range(len(lines)), key=lambda i: -usefulness(lines[i], at=i / n, labels=labels))
    kept: list[int] = []
    left = budget
    for i in ranked:
        if costs[i] <= left:
            kept.append(i)
            left -= costs[i]
    return sorted(kept)
