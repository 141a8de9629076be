"""Optional packages: the hint that installs them, and their silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edge_runtime.errors import MissingDependency
from edge_runtime.optional import require


def test_a_missing_package_names_the_command() -> None:
    with pytest.raises(MissingDependency) as caught:
        require("no_such_package_here", package="no-such-package")
    assert caught.value.hint == "pip install no-such-package"


def test_onnx_runtime_keeps_no_device_number(tmp_path: Path) -> None:
    code = (
        "from edge_runtime.optional import require\n"
        "ort = require('onnxruntime')\n"
        "try:\n    ort.InferenceSession(b'not a model')\n"
        "except Exception:\n    pass\n"
    )
    unset = {"ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "CI", "XDG_CACHE_HOME"}
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    home = {"HOME": str(tmp_path), "PYTHONPATH": str(Path.cwd())}
    subprocess.run([sys.executable, "-c", code], env=inherited | home, check=True, timeout=60)
    assert list(tmp_path.rglob("*")) == []
