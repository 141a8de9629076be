"""Run the optimiser's native part in a child process, where a crash is an error like any other."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any

from edge_runtime.errors import DeadlineExceeded, MissingDependency, ModelLoadError

_LOG_LINES = 8
COMMAND = (sys.executable, "-m", "edge_runtime.models.optimize_worker")


class NativeCrash(ModelLoadError):
    """The child died by a signal, as builds with AMX do on some virtual machines."""


def ask(
    request: dict[str, Any],
    *,
    timeout_s: float,
    command: tuple[str, ...] = COMMAND,
) -> dict[str, Any]:
    """Send a request to a fresh worker and return its answer.

    Raises:
        MissingDependency: llama-cpp-python is not installed.
        NativeCrash: The worker died by a signal; its log is in `details["native_log"]`.
        ModelLoadError: llama.cpp refused.
        DeadlineExceeded: No answer within `timeout_s`.
    """
    if importlib.util.find_spec("llama_cpp") is None:
        raise MissingDependency(
            "llama-cpp-python is not installed", hint="pip install 'llama-cpp-python>=0.3.36,<0.4'"
        )
    with tempfile.TemporaryFile() as log:
        try:
            done = subprocess.run(
                command,
                check=False,
                input=json.dumps(request).encode(),
                stdout=subprocess.PIPE,
                stderr=log,
                timeout=timeout_s,
                env={**os.environ, "OMP_WAIT_POLICY": "passive"},
            )
        except subprocess.TimeoutExpired as err:
            raise DeadlineExceeded(
                f"{request['action']} took longer than {timeout_s:.0f} s", stage="models.optimize"
            ) from err
        log.seek(0)
        lines = log.read().decode("utf-8", errors="replace").splitlines()
    native_log = "\n".join([line for line in lines if line.strip()][-_LOG_LINES:])
    if done.returncode < 0:
        raise NativeCrash(
            f"llama.cpp crashed ({_signal_name(-done.returncode)}) while it tried to "
            f"{request['action']} the model",
            hint="rebuild llama-cpp-python without AMX (see the README), or keep the original",
            details={"native_log": native_log, "signal": -done.returncode},
        )
    answer = _parse(done.stdout)
    if done.returncode != 0 or "error" in answer:
        reason = answer.get("error") or f"the worker ended with status {done.returncode}"
        raise ModelLoadError(
            f"The model cannot be optimised: {reason}",
            hint="the last lines of llama.cpp's log are in the details (--json)",
            details={"native_log": native_log},
        )
    return answer


def _parse(output: bytes) -> dict[str, Any]:
    lines = output.decode("utf-8", errors="replace").strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else {}
    except json.JSONDecodeError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
