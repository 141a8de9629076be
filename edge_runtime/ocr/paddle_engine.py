"""The second engine: PaddleOCR's own detector and recogniser, run by ONNX Runtime, offline.

PaddleOCR brings its own resizing, thresholds and decoding. This adapter gives it pages in tiles
(PaddleOCR squeezes everything above 4000 pixels) and lines one by one, and takes the places of
characters from its word information. One call at a time: its predictors keep state.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edge_runtime import resources
from edge_runtime.errors import Cancelled, ModelFileError, ModelLoadError, StageError
from edge_runtime.models.onnx_file import check_onnx
from edge_runtime.ocr.alphabet import load_characters
from edge_runtime.ocr.ctc import Glyph
from edge_runtime.ocr.line_strips import split_strip
from edge_runtime.ocr.onnx_session import native_errors
from edge_runtime.ocr.paddle_folder import write_detection_folder, write_recognition_folder
from edge_runtime.ocr.page_image import Pixels
from edge_runtime.ocr.probability_map import FoundBoxes, MapOptions, clockwise_from_top_left
from edge_runtime.ocr.staged_recogniser import ReadOptions, StagedRecogniser
from edge_runtime.ocr.text_size import character_height_px
from edge_runtime.ocr.tile_merging import merge_tiles
from edge_runtime.ocr.tiling import ScaleOptions, detection_scale, tiles
from edge_runtime.optional import require

_DETECTOR = "PP-OCRv6_small_det"
_RECOGNISER = "PP-OCRv6_small_rec"
_TILE_PX = 1600
_MARGIN_PX = 96
_NO_LIMIT_PX = 4000
_MAX_STRIP_PX = 2400
_TOO_SMALL_PX = 4


class PaddleRecogniser(StagedRecogniser):
    """PaddleOCR's text modules on local model files.

    Args:
        det_path: The detector's ONNX file.
        rec_path: The recogniser's ONNX file.
        keys_path: Its characters, one a line, where the file's metadata has none.
        n_threads: Threads of one forward pass.
        min_confidence: Lines below this are left out.

    Raises:
        MissingDependency: the paddle extra is not installed.
        ModelNotFound: a file is missing.
        ModelFileError: a file is not an ONNX model, or has no characters.
        ModelLoadError: PaddleOCR refuses a model.
    """

    def __init__(
        self,
        det_path: Path,
        rec_path: Path,
        *,
        keys_path: Path | None = None,
        n_threads: int = 2,
        min_confidence: float = 0.5,
    ) -> None:
        check_onnx(det_path)
        metadata = check_onnx(rec_path).metadata
        characters = load_characters(rec_path, metadata, keys_path)
        paddleocr = _import_paddleocr()
        self._folder = tempfile.TemporaryDirectory(prefix="edge-runtime-paddle-")
        root = Path(self._folder.name)
        try:
            detector = _open(
                paddleocr.TextDetection,
                _DETECTOR,
                write_detection_folder(root / "det", det_path, name=_DETECTOR),
                n_threads,
            )
            reader = _open(
                paddleocr.TextRecognition,
                _RECOGNISER,
                write_recognition_folder(
                    root / "rec", rec_path, name=_RECOGNISER, characters=characters
                ),
                n_threads,
            )
        except BaseException:
            self._folder.cleanup()
            raise
        self._predictors = (detector, reader)
        super().__init__(
            "paddleocr",
            _PaddleDetector(detector),
            _PaddleReader(reader),
            ReadOptions(n_workers=1, min_confidence=min_confidence),
        )

    def close(self) -> None:
        """Stop the worker, free the models and the generated folders. May be called twice."""
        super().close()
        for predictor in self._predictors:
            predictor.close()
        self._predictors = ()
        self._folder.cleanup()


class _PaddleDetector:
    def __init__(self, predictor: Any) -> None:
        self._predictor = predictor
        self._scale = ScaleOptions()
        self._boxes = MapOptions()

    def detect(self, pixels: Pixels, *, cancel: Callable[[], bool] | None = None) -> FoundBoxes:
        cv2 = require("cv2", package="opencv-contrib-python")
        height, width = pixels.shape[:2]
        nothing = FoundBoxes(np.zeros((0, 4, 2)), np.zeros(0))
        if min(height, width) < _TOO_SMALL_PX:
            return nothing
        scale = detection_scale(width, height, character_height_px(pixels), self._scale)
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        small = cv2.resize(pixels, size, interpolation=how)
        parts = [nothing]
        for tile in tiles(*size, max_side_px=_TILE_PX, margin_px=_MARGIN_PX):
            if cancel is not None and cancel():
                raise Cancelled("Stopped while looking for text.", stage="ocr")
            x0, y0, x1, y1 = tile.seen
            parts.append(self._tile(small[y0:y1, x0:x1], np.array([x0, y0])))
        found = merge_tiles(parts[1:])
        return FoundBoxes(found.quads * (width / size[0], height / size[1]), found.scores)

    def _tile(self, part: Pixels, origin: npt.NDArray[np.intp]) -> FoundBoxes:
        result = _predict(
            self._predictor,
            part,
            limit_side_len=_NO_LIMIT_PX,
            limit_type="max",
            thresh=self._boxes.core_threshold,
            box_thresh=self._boxes.box_threshold,
            unclip_ratio=self._boxes.grow_ratio,
        )
        polygons, scores = result["dt_polys"], result["dt_scores"]
        if len(polygons) == 0:
            return FoundBoxes(np.zeros((0, 4, 2)), np.zeros(0))
        quads = np.stack(
            [clockwise_from_top_left(np.asarray(p, dtype=np.float64)) for p in polygons]
        )
        return FoundBoxes(quads + origin, np.asarray(scores, dtype=np.float64))


class _PaddleReader:
    def __init__(self, predictor: Any) -> None:
        self._predictor = predictor

    def read(self, strip: Pixels) -> list[Glyph]:
        width = strip.shape[1]
        glyphs: list[Glyph] = []
        for part in split_strip(strip, max_width_px=_MAX_STRIP_PX):
            found = self._part(strip[:, part.x0 : part.x1])
            offset, share = part.x0 / width, (part.x1 - part.x0) / width
            if part.joint and glyphs and found:
                glyphs.append(Glyph(part.joint, offset, offset, 1.0))
            glyphs.extend(
                Glyph(g.text, offset + g.start * share, offset + g.end * share, g.confidence)
                for g in found
            )
        return glyphs

    def _part(self, strip: Pixels) -> list[Glyph]:
        result = _predict(self._predictor, strip, return_word_box=True)
        try:
            text, (n_steps, words, steps, _) = result["rec_text"]
            confidence = float(result["rec_score"])
        except (TypeError, ValueError) as err:
            raise StageError(
                "PaddleOCR's recogniser answered in a form this version does not know.",
                hint="pip install 'paddleocr>=3.7,<4'",
                stage="ocr",
            ) from err
        places = [step for word in steps for step in word]
        characters = [character for word in words for character in word]
        if "".join(characters) != text:
            raise StageError("PaddleOCR's words do not spell its text.", stage="ocr")
        n_used = max(float(n_steps), 1.0)
        return [
            Glyph(char, min(1.0, step / n_used), min(1.0, (step + 1) / n_used), confidence)
            for char, step in zip(characters, places, strict=True)
        ]


def _import_paddleocr() -> Any:
    # Both are read when the package is imported: no look-ups in the network, no files at home.
    os.environ.setdefault("PADDLE_PDX_DISABLE_MODEL_SOURCE_CHECK", "True")
    os.environ.setdefault("PADDLE_PDX_CACHE_HOME", str(resources.cache_dir() / "paddlex"))
    return require("paddleocr")


def _open(kind: Any, name: str, folder: Path, n_threads: int) -> Any:
    settings = {
        "intra_op_num_threads": n_threads,
        "inter_op_num_threads": 1,
        "enable_mem_pattern": False,
        "log_severity_level": 3,
    }
    try:
        return kind(
            model_name=name,
            model_dir=str(folder),
            device="cpu",
            engine="onnxruntime",
            engine_config=settings,
        )
    except native_errors() as err:
        raise ModelLoadError(
            f"PaddleOCR refuses the model {name}: {err}",
            hint="edge-run models verify",
            details={"native_log": str(err)},
        ) from err


def _predict(predictor: Any, pixels: Pixels, **options: Any) -> Any:
    """One picture through a predictor; PaddleOCR takes BGR arrays."""
    picture = np.ascontiguousarray(pixels[:, :, ::-1])
    try:
        return predictor.predict(picture, **options)[0]
    except native_errors() as err:
        raise StageError(
            f"PaddleOCR failed on a picture of {pixels.shape[1]}x{pixels.shape[0]}: {err}",
            hint="check that det and rec models are not swapped",
            stage="ocr",
            details={"native_log": str(err)},
        ) from err
    except (IndexError, KeyError, TypeError) as err:
        raise ModelFileError(
            f"The model does not answer as PaddleOCR expects: {err}",
            hint="check that det and rec models are not swapped",
        ) from err
