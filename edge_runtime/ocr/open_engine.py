"""Opening an engine by its name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from edge_runtime.errors import ModelNotFound, UsageError
from edge_runtime.ocr.engine import Recogniser

KINDS = ("onnx", "paddle")


def open_recogniser(
    kind: str, files: Mapping[str, Path], *, n_threads: int | None = None
) -> Recogniser:
    """Open the engine `kind` on model files `det`, `rec` and, where needed, `keys`.

    `n_threads` defaults to the number of cores, at most 4.

    Raises:
        UsageError: there is no such engine.
        ModelNotFound: `det` or `rec` is not among the files.
        MissingDependency: the engine's package is not installed.
    """
    if kind not in KINDS:
        raise UsageError(
            f"There is no recognition engine {kind!r}.", hint=f"use one of {', '.join(KINDS)}"
        )
    missing = [role for role in ("det", "rec") if role not in files]
    if missing:
        raise ModelNotFound(
            f"Recognition needs a detector and a recogniser; {' and '.join(missing)} is missing.",
            hint="edge-run models pull ppocrv6-small",
        )
    threads = n_threads or _default_threads()
    if kind == "paddle":
        from edge_runtime.ocr.paddle_engine import PaddleRecogniser

        return PaddleRecogniser(
            files["det"], files["rec"], keys_path=files.get("keys"), n_threads=threads
        )
    from edge_runtime.ocr.pp_engine import PPOcrOptions, PPOcrRecogniser

    return PPOcrRecogniser(
        files["det"],
        files["rec"],
        PPOcrOptions(n_threads=threads),
        keys_path=files.get("keys"),
    )


def _default_threads() -> int:
    import os

    try:
        n_cores = len(os.sched_getaffinity(0))
    except AttributeError:
        n_cores = os.cpu_count() or 1
    return max(1, min(4, n_cores))
