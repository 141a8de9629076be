"""ONNX Runtime sessions as this package wants them: few threads, no spinning, clear errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from edge_runtime.errors import ModelFileError, ModelLoadError, ModelNotFound, StageError
from edge_runtime.optional import require

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How a session uses the machine.

    Attributes:
        n_threads: Threads inside one run. Runs may also be called from several threads at once.
        use_arena: Keep freed tensors for the next run. Faster (no page faults), at the price of
            holding on to the memory of the largest run so far.
    """

    n_threads: int = 1
    use_arena: bool = True


class OnnxModel:
    """A model with one input and one interesting output.

    Raises:
        ModelNotFound: there is no such file.
        ModelFileError: it is not an ONNX model that this build of ONNX Runtime reads.
        ModelLoadError: ONNX Runtime reads it and still refuses it.
    """

    def __init__(self, path: Path, options: SessionOptions) -> None:
        ort = require("onnxruntime")

        if not path.is_file():
            raise ModelNotFound(
                f"There is no model file {path}.",
                hint="edge-run models pull ppocrv6-small",
            )
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = options.n_threads
        settings.inter_op_num_threads = 1
        settings.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        settings.enable_cpu_mem_arena = options.use_arena
        # A memory pattern is kept per input shape for ever; pages come in thousands of shapes.
        settings.enable_mem_pattern = False
        settings.log_severity_level = 3
        # Idle threads that spin take the cores that the language model wants.
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.path = path
        try:
            self._session: Any = ort.InferenceSession(
                str(path), settings, providers=["CPUExecutionProvider"]
            )
        except _broken_file_errors() as err:
            raise ModelFileError(
                f"{path.name} is not a readable ONNX model: {_first_line(err)}",
                hint="edge-run models verify",
                details={"path": str(path), "native_log": str(err)},
            ) from err
        except native_errors() as err:
            raise ModelLoadError(
                f"ONNX Runtime refuses {path.name}: {_first_line(err)}",
                hint="use a model exported for this version of ONNX Runtime",
                details={"path": str(path), "native_log": str(err)},
            ) from err
        self._input: str = self._session.get_inputs()[0].name
        self._output: str = self._session.get_outputs()[0].name

    @property
    def input_shape(self) -> tuple[int | str | None, ...]:
        """Declared shape of the input; names and None stand for free dimensions."""
        return tuple(self._session.get_inputs()[0].shape)

    @property
    def metadata(self) -> dict[str, str]:
        """Key/value pairs stored in the model file."""
        return dict(self._session.get_modelmeta().custom_metadata_map)

    def run(self, tensor: FloatArray) -> FloatArray:
        """One forward pass; may be called from several threads at once.

        Raises:
            StageError: ONNX Runtime failed while running.
        """
        try:
            return self._session.run([self._output], {self._input: tensor})[0]
        except native_errors() as err:
            raise StageError(
                f"{self.path.name} failed on an input of shape {tensor.shape}: {_first_line(err)}",
                hint="check that det and rec models are not swapped",
                stage="ocr",
                details={"native_log": str(err)},
            ) from err


def _native() -> ModuleType:
    return require("onnxruntime.capi.onnxruntime_pybind11_state", package="onnxruntime")


def _broken_file_errors() -> tuple[type[Exception], ...]:
    native = _native()

    return (native.InvalidProtobuf, native.InvalidGraph, native.NoSuchFile)


def native_errors() -> tuple[type[Exception], ...]:
    """Everything ONNX Runtime raises; its exceptions share no base but `Exception`."""
    native = _native()

    return (
        native.EPFail,
        native.EngineError,
        native.Fail,
        native.InvalidArgument,
        native.InvalidGraph,
        native.InvalidProtobuf,
        native.ModelLoaded,
        native.NoModel,
        native.NoSuchFile,
        native.NotImplemented,
        native.RuntimeException,
        RuntimeError,
        ValueError,
    )


def _first_line(err: Exception) -> str:
    lines = str(err).strip().splitlines()
    return lines[0] if lines else type(err).__name__
