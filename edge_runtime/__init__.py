"""edge_runtime: documents and speech into structured data, on this device."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edge_runtime.errors import EdgeRuntimeError
    from edge_runtime.pipeline import Pipeline, PipelineOptions
    from edge_runtime.values import (
        Document,
        FieldStatus,
        FieldValue,
        Line,
        ResultStatus,
        RunResult,
    )

__version__ = "0.1.0"

_HOMES = {
    "Document": "edge_runtime.values",
    "EdgeRuntimeError": "edge_runtime.errors",
    "FieldStatus": "edge_runtime.values",
    "FieldValue": "edge_runtime.values",
    "Line": "edge_runtime.values",
    "Pipeline": "edge_runtime.pipeline",
    "PipelineOptions": "edge_runtime.pipeline",
    "ResultStatus": "edge_runtime.values",
    "RunResult": "edge_runtime.values",
}

__all__ = [
    "Document",
    "EdgeRuntimeError",
    "FieldStatus",
    "FieldValue",
    "Line",
    "Pipeline",
    "PipelineOptions",
    "ResultStatus",
    "RunResult",
]


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that `import edge_runtime` stays light."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'edge_runtime' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
