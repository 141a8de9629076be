"""Which way the text of a box runs, told from all boxes of the page."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Quads = npt.NDArray[np.float64]

_TALL = 1.5
_TALLER_THAN_LINE = 1.9


def text_directions(quads: Quads) -> Quads:
    """Turn the corners of boxes that hold text running down the page.

    A tall narrow box is a single upright character (a `1`, a bracket) when it is about as high
    as the lines of its page, and sideways text when it is much higher. Of sideways text the first
    corner becomes the one at the top right: read downwards.
    """
    if len(quads) == 0:
        return quads
    width = np.linalg.norm(quads[:, 1] - quads[:, 0], axis=1)
    height = np.linalg.norm(quads[:, 3] - quads[:, 0], axis=1)
    is_tall = height >= _TALL * width
    lines = height[~is_tall]
    limit = _TALLER_THAN_LINE * float(np.median(lines)) if len(lines) else 0.0
    turned = quads.copy()
    sideways = is_tall & (height > limit)
    turned[sideways] = np.roll(turned[sideways], -1, axis=1)
    return turned


def is_along_page(quad: npt.NDArray[np.float64]) -> bool:
    """Whether the text of a quad (4, 2) runs more across the page than up or down it."""
    dx, dy = quad[1] - quad[0]
    return abs(float(dx)) >= abs(float(dy))
