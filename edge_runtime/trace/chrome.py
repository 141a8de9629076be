"""Export of a run for `chrome://tracing` and Perfetto (Trace Event Format, complete events)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from edge_runtime.trace.recorder import Recorder


def chrome_trace(recorder: Recorder) -> dict[str, Any]:
    """The trace as a dictionary; one row per thread, times in microseconds."""
    pid = os.getpid()
    threads: dict[int, int] = {}
    events: list[dict[str, Any]] = []
    for span in sorted(recorder.spans, key=lambda s: s.start_ns):
        tid = threads.setdefault(span.thread, len(threads) + 1)
        events.append(
            {
                "name": span.name,
                "cat": span.name.split(".", 1)[0],
                "ph": "X",
                "pid": pid,
                "tid": tid,
                "ts": span.start_ns / 1e3,
                "dur": span.wall_ns / 1e3,
                "args": {"cpu_ms": span.cpu_ns / 1e6, "n_tokens": span.n_tokens, **span.notes},
            }
        )
    events.extend(
        {
            "name": mark.name,
            "ph": "i",
            "s": "p",
            "pid": pid,
            "tid": 0,
            "ts": mark.at_ns / 1e3,
            "args": mark.notes,
        }
        for mark in recorder.marks
    )
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"started_unix_s": recorder.started_unix_s},
    }


def chrome_trace_json(recorder: Recorder) -> str:
    """The trace as the text of a file that Chrome and Perfetto open."""
    return json.dumps(chrome_trace(recorder), default=str)


def write_chrome_trace(recorder: Recorder, path: Path) -> None:
    """Write the trace, whole or not at all; a device or a pipe is written to, not replaced."""
    text = chrome_trace_json(recorder)
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    target = path.resolve() if path.is_symlink() else path
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
