"""`edge-run doctor` in a child process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def doctor(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "edge_runtime", "doctor", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


def test_without_models_it_names_the_commands_that_fetch_them() -> None:
    done = doctor("--json")
    assert done.returncode == 3
    said = json.loads(done.stdout)
    assert said["works"] is False
    fixes = [check["fix"] for check in said["checks"] if check["state"] == "fail"]
    assert "edge-run models pull smollm2-135m-instruct" in fixes
    names = {check["name"] for check in said["checks"]}
    assert {"python", "processor", "memory", "llama-cpp-python", "onnxruntime"} <= names
    assert "default job" not in names, "what cannot work is not tried"


def test_for_people_the_commands_stand_at_the_end() -> None:
    done = doctor()
    assert done.returncode == 3
    _, _, mend = done.stdout.partition("To mend it:")
    assert "edge-run models pull smollm2-135m-instruct" in mend
    assert done.stderr == ""


@pytest.mark.models
@pytest.mark.usefixtures("real_models")
def test_with_models_the_default_job_is_tried_and_works() -> None:
    done = doctor("--json")
    said = json.loads(done.stdout)
    assert [check for check in said["checks"] if check["state"] == "fail"] == []
    assert said["checks"][-1]["name"] == "default job"
    assert said["works"] is True
    assert done.returncode == 0
