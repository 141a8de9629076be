"""What people and programs see when something goes wrong."""

from __future__ import annotations

import errno
import json
import os
import secrets
import signal
import sys
import traceback
from types import FrameType
from typing import Any, TextIO

from edge_runtime import resources
from edge_runtime.errors import (
    Cancelled,
    EdgeRuntimeError,
    ErrorCategory,
    ResourceError,
    UsageError,
)

SCHEMA_VERSION = "1.0"
BROKEN_PIPE_EXIT = 128 + 13  # as a shell reports a process ended by SIGPIPE
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_KEPT_TRACEBACKS = 20


def report(err: BaseException, *, as_json: bool, debug: bool) -> int:
    """Tell what happened (stderr for people, stdout for programs) and return the exit code."""
    if isinstance(err, BrokenPipeError):
        _give_up_stdout()  # whoever read it has left
        return BROKEN_PIPE_EXIT
    if isinstance(err, OSError) and err.errno in NO_SPACE:
        _give_up_stdout()
    if isinstance(err, KeyboardInterrupt):
        _leave_at_once_on_second_interrupt()
    facts, code = describe(err)
    if debug:
        traceback.print_exception(err)
    print_error(facts)
    if as_json and _is_open(sys.stdout):
        record = {"schema_version": SCHEMA_VERSION, "status": "failed", "error": facts}
        try:
            sys.stdout.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            return report(BrokenPipeError(), as_json=False, debug=False)
    return code


def _is_open(stream: TextIO | None) -> bool:
    """Python has no such stream at all when the process was started with it closed."""
    return stream is not None


def print_error(facts: dict[str, Any]) -> None:
    """The human form on stderr: what happened, then what mends it."""
    lines = [f"error: {facts['message']}"]
    if facts.get("hint"):
        lines.append(f"  hint: {facts['hint']}")
    if not _is_open(sys.stderr):
        return
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()


def describe(err: BaseException) -> tuple[dict[str, Any], int]:
    """The JSON form of any exception and the exit code that goes with it."""
    if isinstance(err, EdgeRuntimeError):
        return err.to_dict(), err.exit_code
    if isinstance(err, KeyboardInterrupt):
        return Cancelled("Interrupted.").to_dict(), Cancelled.exit_code
    if isinstance(err, OSError) and err.errno in NO_SPACE:
        full = ResourceError(f"Output cannot be written: {err.strerror}.", hint="make room")
        return full.to_dict(), full.exit_code
    if isinstance(err, MemoryError):
        short = ResourceError(
            "There is not enough memory for this.",
            hint="--dpi or a smaller picture, --ctx, or a smaller --model",
        )
        return short.to_dict(), short.exit_code
    return _describe_unexpected(err), 1


def _describe_unexpected(err: BaseException) -> dict[str, Any]:
    error_id = secrets.token_hex(4)
    kept_at = _keep_traceback(error_id, err)
    said = (str(err).strip().splitlines() or ["no message"])[0]
    where = f"The traceback is in {kept_at}. " if kept_at else ""
    return {
        "type": type(err).__name__,
        "category": ErrorCategory.STAGE.value,
        "message": f"Unexpected error {error_id}: {type(err).__name__}: {said}",
        "hint": f"{where}The same command with --debug shows it here; please report it.",
        "stage": None,
        "details": {"error_id": error_id, "traceback": kept_at},
    }


def _keep_traceback(error_id: str, err: BaseException) -> str | None:
    try:
        folder = resources.cache_dir() / "errors"
        folder.mkdir(parents=True, exist_ok=True)
        old = sorted(folder.glob("*.txt"), key=lambda path: path.stat().st_mtime)
        for path in old[: max(0, len(old) - _KEPT_TRACEBACKS + 1)]:
            path.unlink(missing_ok=True)
        path = folder / f"{error_id}.txt"
        path.write_text("".join(traceback.format_exception(err)), encoding="utf-8")
    except (OSError, UsageError):
        return None
    return str(path)


def _give_up_stdout() -> None:
    """Throw away what is still buffered, which would fail once more when the process ends."""
    if not _is_open(sys.stdout):
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave_at_once_on_second_interrupt() -> None:
    """The first Ctrl-C cleans up; a second one while that takes long ends the process."""
    try:
        signal.signal(signal.SIGINT, _leave_at_once)
    except ValueError:
        return  # not the main thread


def _leave_at_once(signum: int, frame: FrameType | None) -> None:
    del signum, frame
    os._exit(Cancelled.exit_code)
