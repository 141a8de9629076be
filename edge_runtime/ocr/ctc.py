"""Greedy reading of a CTC recogniser's output, with the place of every character."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BLANK = 0


@dataclass(frozen=True, slots=True)
class Glyph:
    """One character; `start` and `end` are its extent along the line, 0 to 1 of the strip."""

    text: str
    start: float
    end: float
    confidence: float


def greedy_glyphs(
    probabilities: npt.NDArray[np.float32],
    alphabet: Sequence[str],
    *,
    used_share: float = 1.0,
) -> list[Glyph]:
    """Collapse the best path of (steps, classes) into glyphs.

    Args:
        probabilities: Per step a distribution over `alphabet`, class 0 being the blank.
        alphabet: Text of every class.
        used_share: Share of the steps that shows the line; the rest is padding.
    """
    best: list[int] = probabilities.argmax(axis=1).tolist()
    sure = probabilities.max(axis=1)
    changes: list[int] = (np.flatnonzero(np.diff(np.asarray(best))) + 1).tolist()
    starts = [0, *changes]
    ends = [*changes, len(best)]
    n_used = max(len(best) * used_share, 1e-9)
    return [
        Glyph(
            alphabet[best[a]],
            min(1.0, a / n_used),
            min(1.0, b / n_used),
            float(sure[a]),
        )
        for a, b in zip(starts, ends, strict=True)
        if best[a] != BLANK
    ]
