"""Imports of optional packages, with the command that installs them."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

from edge_runtime.errors import MissingDependency

# Since 1.29 the Linux wheels of ONNX Runtime keep a device number in the user's cache folder and
# report sessions to their maker unless this is set before the first session. Documents stay here.
_SILENT = {"ORT_DISABLE_TELEMETRY": "1"}


def require(module: str, *, package: str | None = None) -> ModuleType:
    """Import `module` or raise `MissingDependency` naming the pip command.

    Args:
        module: Dotted module name.
        package: The PyPI name where it is another than the module's.
    """
    os.environ.update(_SILENT)
    try:
        return importlib.import_module(module)
    except ImportError as err:
        raise MissingDependency(
            f"The package {module!r} cannot be imported: {err}",
            hint=f"pip install {package or module}",
            details={"module": module},
        ) from err
