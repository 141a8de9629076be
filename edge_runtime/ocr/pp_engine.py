"""The default engine: PP-OCR on ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from edge_runtime.ocr.pp_detection import DetectionOptions, TextDetector
from edge_runtime.ocr.pp_recognition import LineReader, RecognitionOptions
from edge_runtime.ocr.staged_recogniser import ReadOptions, StagedRecogniser


@dataclass(frozen=True, slots=True)
class PPOcrOptions:
    """Settings of the engine.

    Attributes:
        n_threads: Cores to use: threads of the detector, lines read at the same time.
        detection: Settings of the detector; its `n_threads` is replaced by the one above.
        recognition: Settings of the line reader.
        min_confidence: Lines below this are left out.
    """

    n_threads: int = 2
    detection: DetectionOptions = field(default_factory=DetectionOptions)
    recognition: RecognitionOptions = field(default_factory=RecognitionOptions)
    min_confidence: float = 0.5


class PPOcrRecogniser(StagedRecogniser):
    """PP-OCR (v4 to v6) from a detection and a recognition model.

    Args:
        det_path: The detector's ONNX file.
        rec_path: The recogniser's ONNX file.
        keys_path: Its characters, one a line, where the file's metadata has none.
        options: Settings.

    Raises:
        ModelNotFound: a file is missing.
        ModelFileError: a file is not an ONNX model, or the characters do not fit.
        ModelLoadError: ONNX Runtime refuses a model.
    """

    def __init__(
        self,
        det_path: Path,
        rec_path: Path,
        options: PPOcrOptions | None = None,
        *,
        keys_path: Path | None = None,
    ) -> None:
        options = options or PPOcrOptions()
        n_threads = max(1, options.n_threads)
        super().__init__(
            "ppocr-onnx",
            TextDetector(det_path, replace(options.detection, n_threads=n_threads)),
            LineReader(rec_path, keys=keys_path, options=options.recognition),
            ReadOptions(n_workers=n_threads, min_confidence=options.min_confidence),
        )
