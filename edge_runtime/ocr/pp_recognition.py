"""PP-OCR line recognition on ONNX Runtime.

Lines are read one by one, each by one thread, several at a time. Padding a batch to its widest
line wastes more than batching saves, and the small matrices of one line do not split well over
threads, so this is both the fastest order and the one in which lines become known soonest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge_runtime.errors import ModelFileError
from edge_runtime.ocr.alphabet import load_alphabet
from edge_runtime.ocr.ctc import Glyph, greedy_glyphs
from edge_runtime.ocr.line_strips import STRIP_HEIGHT_PX, split_strip
from edge_runtime.ocr.onnx_session import FloatArray, OnnxModel, SessionOptions
from edge_runtime.ocr.page_image import Pixels


@dataclass(frozen=True, slots=True)
class RecognitionOptions:
    """Settings of the line reader.

    Attributes:
        width_step_px: Widths are padded to a multiple of this, so that shapes recur.
        min_width_px: Shorter strips are padded to this.
        max_width_px: Longer strips are cut at gaps.
    """

    width_step_px: int = 16
    min_width_px: int = 48
    max_width_px: int = 2400


class LineReader:
    """Reads strips of text; may be used from several threads at once.

    Args:
        path: The recogniser's ONNX file.
        keys: A text file with one character a line, for models without `character` metadata.
        options: Settings.

    Raises:
        ModelFileError: the model and the characters do not belong together.
    """

    def __init__(self, path: Path, *, keys: Path | None, options: RecognitionOptions) -> None:
        self._model = OnnxModel(path, SessionOptions(n_threads=1))
        self._options = options
        self.alphabet = load_alphabet(path, self._model.metadata, keys)

    def read(self, strip: Pixels) -> list[Glyph]:
        """Characters of a strip (48, w, 3) uint8 RGB, with their place from 0 to 1."""
        width = strip.shape[1]
        glyphs: list[Glyph] = []
        for part in split_strip(strip, max_width_px=self._options.max_width_px):
            piece = strip[:, part.x0 : part.x1]
            found = self._read_part(piece)
            offset, share = part.x0 / width, (part.x1 - part.x0) / width
            if part.joint and glyphs and found:
                glyphs.append(Glyph(part.joint, offset, offset, 1.0))
            glyphs.extend(
                Glyph(g.text, offset + g.start * share, offset + g.end * share, g.confidence)
                for g in found
            )
        return glyphs

    def _read_part(self, strip: Pixels) -> list[Glyph]:
        width = strip.shape[1]
        step = self._options.width_step_px
        full = max(self._options.min_width_px, -(-width // step) * step)
        probabilities = self._model.run(_as_tensor(strip, full))[0]
        if probabilities.ndim != 2 or probabilities.shape[1] != len(self.alphabet):
            raise ModelFileError(
                f"{self._model.path.name} tells {probabilities.shape[-1]} characters apart, "
                f"its character list has {len(self.alphabet)}.",
                hint="give the keys file that belongs to this model",
            )
        return greedy_glyphs(probabilities, self.alphabet, used_share=width / full)


def _as_tensor(strip: npt.NDArray[np.uint8], full_width: int) -> FloatArray:
    """RGB bytes to the (1, 3, 48, full_width) BGR floats in [-1, 1]; padding is zero."""
    tensor = np.zeros((1, 3, STRIP_HEIGHT_PX, full_width), np.float32)
    inside = tensor[0, :, :, : strip.shape[1]]
    inside[:] = strip[:, :, ::-1].transpose(2, 0, 1)
    inside *= 1 / 127.5
    inside -= 1.0
    return tensor
