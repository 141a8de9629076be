from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from edge_runtime.trace import Recorder, current, recording
from edge_runtime.trace.chrome import chrome_trace, write_chrome_trace


def test_span_keeps_time_tokens_and_notes() -> None:
    recorder = Recorder()
    with recorder.span("llm.prefill", chunk=64) as span:
        span.n_tokens += 12
        span.note(cache_hit=True)
    (got,) = recorder.spans
    assert (got.name, got.n_tokens) == ("llm.prefill", 12)
    assert got.notes == {"chunk": 64, "cache_hit": True}
    assert got.wall_ns > 0


def test_span_is_kept_when_the_work_fails() -> None:
    recorder = Recorder()
    with pytest.raises(ValueError, match="broken"), recorder.span("ocr.detect"):
        raise ValueError("broken")
    assert recorder.spans[0].notes["error"] == "ValueError"


def test_stages_add_up_spans_of_one_name_in_order_of_first_start() -> None:
    recorder = Recorder()
    for name, n in (("b", 1), ("a", 2), ("b", 3)):
        with recorder.span(name) as span:
            span.n_tokens = n
    rows = recorder.stages()
    assert [(r.name, r.count, r.n_tokens) for r in rows] == [("b", 2, 4), ("a", 1, 2)]
    total_ms = sum(s.wall_ns for s in recorder.spans if s.name == "b") / 1e6
    assert rows[0].wall_ms == pytest.approx(total_ms)


def test_spans_of_several_threads_are_all_kept() -> None:
    recorder = Recorder()

    def work() -> None:
        for _ in range(50):
            with recorder.span("work"):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.stages()[0].count == 200


def test_first_and_last_mark() -> None:
    recorder = Recorder()
    first = recorder.mark("line")
    last = recorder.mark("line")
    assert recorder.first_mark_ns("line") == first
    assert recorder.last_mark_ns("line") == last
    assert recorder.first_mark_ns("never") is None


def test_current_recorder_is_the_enclosing_one_only() -> None:
    recorder = Recorder()
    assert current() is not recorder
    with recording(recorder):
        assert current() is recorder
    assert current() is not recorder


def test_chrome_trace_has_complete_events_and_is_written_whole(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.span("ocr.detect"):
        pass
    recorder.mark("first_token", field="total")
    target = tmp_path / "trace.json"
    write_chrome_trace(recorder, target)
    got = json.loads(target.read_text())
    assert got == json.loads(json.dumps(chrome_trace(recorder)))
    kinds = {e["name"]: e["ph"] for e in got["traceEvents"]}
    assert kinds == {"ocr.detect": "X", "first_token": "i"}
    assert all({"ts", "pid", "tid"} <= set(e) for e in got["traceEvents"])
    assert list(tmp_path.iterdir()) == [target]


def test_trace_is_written_into_a_pipe_that_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_chrome_trace(Recorder(), pipe)
    reader.join()
    assert pipe.is_fifo()
    assert "traceEvents" in json.loads(got[0])


def test_trace_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory"):
        write_chrome_trace(Recorder(), tmp_path)
    nowhere = tmp_path / "none" / "trace.json"
    with pytest.raises(FileNotFoundError):
        write_chrome_trace(Recorder(), nowhere)
    assert list(tmp_path.iterdir()) == []
