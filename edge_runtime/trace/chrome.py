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


def write_chrome_trace(recorder: Recorder, path: Path) -> None:
    """Write the trace atomically."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(chrome_trace(recorder), default=str), encoding="utf-8")
    partial.replace(path)
