"""Opening the engine that fits a model file."""

from __future__ import annotations

from pathlib import Path

from edge_runtime.errors import CapabilityError
from edge_runtime.kv.prefix_store import PrefixStore
from edge_runtime.llm.engine import Engine
from edge_runtime.llm.llama_cpp_options import LlamaOptions


def open_engine(
    path: str | Path,
    options: LlamaOptions | None = None,
    *,
    sha256: str | None = None,
    prefix_store: PrefixStore | None = None,
) -> Engine:
    """Load a language model.

    Args:
        path: A GGUF file.
        options: How to run it; None takes the defaults.
        sha256: Digest of the file, where a catalogue knows it.
        prefix_store: Where computed prefixes are found and left.

    Raises:
        ModelNotFound: there is no such file.
        ModelFileError: the file is damaged.
        ModelLoadError: the library refused it.
        CapabilityError: no engine reads this kind of file, or the options do not fit the model.
    """
    path = Path(path)
    if path.suffix.lower() == ".onnx":
        raise CapabilityError(
            f"{path.name}: there is no language model engine for ONNX files",
            hint="use a GGUF file",
        )
    from edge_runtime.llm.llama_cpp_engine import LlamaCppEngine

    return LlamaCppEngine.load(
        path, options or LlamaOptions(), sha256=sha256, prefix_store=prefix_store
    )
