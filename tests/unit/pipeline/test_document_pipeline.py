from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from edge_runtime.errors import (
    Cancelled,
    DeadlineExceeded,
    StageError,
    UnreadableInput,
    UsageError,
)
from edge_runtime.events import (
    Degraded,
    Event,
    FieldDecided,
    LineRead,
    PageFound,
    Result,
    StageDone,
)
from edge_runtime.llm.scripted_engine import ScriptedOptions
from edge_runtime.ocr.page_image import PageImage
from edge_runtime.pipeline import PipelineOptions
from edge_runtime.values import FieldStatus, Line, ResultStatus
from tests.unit.pipeline.conftest import PAGE, Built, ListedLines

Build = Callable[..., Built]
TEXTS = ["name Ada", "milk 1.20", "total 12.40"]


def test_events_come_in_order_and_the_result_last(build: Build) -> None:
    events = list(build(TEXTS).pipeline.events(PAGE))
    kinds = [type(e) for e in events if not isinstance(e, StageDone)]
    assert kinds == [PageFound, LineRead, LineRead, LineRead, FieldDecided, FieldDecided, Result]


def test_result_holds_lines_fields_and_data(build: Build) -> None:
    result = build(TEXTS).pipeline.run(PAGE)
    assert result.status is ResultStatus.OK
    assert result.data == {"total": 12.4, "name": "Ada"}
    assert [line.text for line in result.document.lines] == TEXTS
    assert result.document.pages[0].info.width == 60
    assert result.timing.ttft_ms is not None
    assert result.timing.ttft_after_input_ms is not None
    assert 0 < result.timing.ttft_after_input_ms <= result.timing.ttft_ms
    assert result.timing.ttft_ms <= result.timing.total_ms


def test_fields_come_in_the_order_of_the_data(build: Build) -> None:
    built = build(TEXTS)
    built.strategy.backwards = True
    result = built.pipeline.run(PAGE)
    assert [f.path for f in result.fields] == ["total", "name"] == list(result.data)


def test_absent_field_is_null_and_missing(build: Build) -> None:
    result = build(["total 3.00"]).pipeline.run(PAGE)
    assert result.data == {"total": 3.0, "name": None}
    assert {f.path: f.status for f in result.fields}["name"] is FieldStatus.MISSING


def test_model_is_asked_with_prefix_and_all_lines_in_its_cache(build: Build) -> None:
    built = build(TEXTS)
    for _ in range(2):
        built.pipeline.run(PAGE)
    prompt = built.strategy.prompts[0]
    assert prompt.startswith("<|im_start|>system\nFind total, name<|im_end|>")
    assert "name Ada\nmilk 1.20\ntotal 12.40\n?" in prompt
    assert built.strategy.prompts[0] == built.strategy.prompts[1]


def test_document_is_prefilled_while_it_is_read(build: Build) -> None:
    lines = [f"item number {i} of a long document 1.00" for i in range(40)]
    built = build(lines, recogniser=ListedLines(lines, pause_s=0.002))
    built.pipeline.run(PAGE)
    recorder = built.pipeline.recorder
    assert recorder is not None
    last_line = recorder.last_mark_ns("line")
    assert last_line is not None
    before = [s for s in recorder.spans if s.name == "llm.prefill" and s.start_ns < last_line]
    assert sum(s.n_tokens for s in before) > 1000


def test_works_without_a_model(build: Build) -> None:
    built = build(TEXTS, with_model=False)
    assert built.pipeline.run(PAGE).data == {"total": 12.4, "name": "Ada"}
    assert built.strategy.prompts == []


def test_page_without_text_has_only_missing_fields(build: Build) -> None:
    result = build([]).pipeline.run(PAGE)
    assert result.data == {"total": None, "name": None}
    assert result.timing.ttft_after_input_ms is None


def test_notices_of_loading_make_every_result_degraded(build: Build) -> None:
    built = build(TEXTS, notices=("no orientation model",))
    for _ in range(2):
        events = list(built.pipeline.events(PAGE))
        assert isinstance(events[0], Degraded)
        result = built.pipeline.run(PAGE)
        assert result.status is ResultStatus.DEGRADED
        assert result.degraded == ("no orientation model",)


def test_document_longer_than_the_context_says_which_lines_were_left_out(build: Build) -> None:
    lines = [f"filler line number {i} with some more words" for i in range(60)] + TEXTS
    built = build(lines, engine_options=ScriptedOptions(n_ctx=1400))
    result = built.pipeline.run(PAGE)
    assert result.status is ResultStatus.DEGRADED
    assert "lines, the least useful ones, were kept from the model" in result.degraded[0]
    assert result.data == {"total": 12.4, "name": "Ada"}
    assert "total 12.40" in built.strategy.prompts[0]
    assert len(result.document.lines) == len(lines)


def test_error_of_recognition_reaches_the_caller_after_its_events(build: Build) -> None:
    broken = ListedLines(TEXTS, fail_at=2, error=StageError("broken page", stage="ocr"))
    built = build(TEXTS, recogniser=broken)
    seen: list[Event] = []
    with pytest.raises(StageError, match="broken page"):
        seen.extend(built.pipeline.events(PAGE))
    assert sum(isinstance(e, LineRead) for e in seen) == 2
    built.recogniser.error = None
    assert built.pipeline.run(PAGE).status is ResultStatus.OK


def test_unreadable_document_leaves_the_pipeline_usable(build: Build) -> None:
    built = build(TEXTS)
    with pytest.raises(UnreadableInput):
        built.pipeline.run(b"this is no picture")
    assert built.pipeline.run(PAGE).data["total"] == 12.4


def test_error_of_the_model_reaches_the_caller(build: Build) -> None:
    def fail(operation: str, n_tokens: int) -> None:
        if operation == "score":
            raise StageError(f"{operation} of {n_tokens} failed", stage="llm")

    built = build(TEXTS, engine_options=ScriptedOptions(before=fail))
    with pytest.raises(StageError, match="score of"):
        built.pipeline.run(PAGE)


def test_error_while_reading_ahead_degrades_when_no_question_met_it(build: Build) -> None:
    def fail(operation: str, n_tokens: int) -> None:
        if operation == "sync" and n_tokens > 40:
            raise StageError("no memory", stage="llm")

    built = build(
        [f"line {i} with words" for i in range(20)],
        engine_options=ScriptedOptions(before=fail),
        asks=False,
    )
    result = built.pipeline.run(PAGE)
    assert result.status is ResultStatus.DEGRADED
    assert "no memory" in result.degraded[0]


def test_run_after_a_poisoned_session_starts_afresh(build: Build) -> None:
    calls: list[str] = []

    def fail_once(operation: str, n_tokens: int) -> None:
        del n_tokens
        calls.append(operation)
        if operation == "score" and calls.count("score") == 1:
            raise StageError("once", stage="llm")

    built = build(TEXTS, engine_options=ScriptedOptions(before=fail_once))
    with pytest.raises(StageError, match="once"):
        built.pipeline.run(PAGE)
    assert built.pipeline.run(PAGE).data == {"total": 12.4, "name": "Ada"}


def test_leaving_the_loop_early_stops_the_work(build: Build) -> None:
    lines = [f"line {i}" for i in range(500)]
    built = build(lines, recogniser=ListedLines(lines, pause_s=0.005))
    for event in built.pipeline.events(PAGE):
        if isinstance(event, LineRead):
            break
    assert built.recogniser.n_read < 100
    assert built.pipeline.run is not None


def test_deadline_ends_a_run_with_its_own_error(build: Build) -> None:
    lines = [f"line {i}" for i in range(500)]
    built = build(
        lines,
        recogniser=ListedLines(lines, pause_s=0.005),
        options=PipelineOptions(deadline_s=0.05),
    )
    with pytest.raises(DeadlineExceeded):
        built.pipeline.run(PAGE)


def test_second_document_inside_the_loop_is_refused(build: Build) -> None:
    built = build(TEXTS)
    for _ in built.pipeline.events(PAGE):
        with pytest.raises(UsageError, match="in the middle"):
            built.pipeline.run(PAGE)
        break


def test_threads_take_turns(build: Build) -> None:
    built = build(TEXTS, recogniser=ListedLines(TEXTS, pause_s=0.01))
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(built.pipeline.run(PAGE).data))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [{"total": 12.4, "name": "Ada"}] * 4


def test_slow_caller_does_not_hold_up_the_work(build: Build) -> None:
    built = build(TEXTS)
    events = built.pipeline.events(PAGE)
    next(events)
    time.sleep(0.2)
    assert built.recogniser.n_read == len(TEXTS)
    assert isinstance(list(events)[-1], Result)


def test_closed_pipeline_is_refused_and_closing_twice_is_fine(build: Build) -> None:
    built = build(TEXTS)
    built.pipeline.warm_up()
    built.pipeline.close()
    built.pipeline.close()
    assert built.recogniser.closed == 1
    with pytest.raises(UsageError, match="closed"):
        built.pipeline.run(PAGE)


def test_own_confidence_threshold_asks_for_review(build: Build) -> None:
    built = build(TEXTS, options=PipelineOptions(min_confidence=0.9))
    result = built.pipeline.run(PAGE)
    assert {f.status for f in result.fields} == {FieldStatus.REVIEW}
    assert all("below_min_confidence" in f.reasons for f in result.fields)


def test_trace_has_every_stage(build: Build) -> None:
    built = build(TEXTS)
    built.pipeline.run(PAGE)
    recorder = built.pipeline.recorder
    assert recorder is not None
    assert {"ocr.load", "llm.prefill", "llm.score", "extract"} <= {s.name for s in recorder.spans}


def test_a_stage_stopped_by_the_deadline_is_late_not_cancelled(build: Build) -> None:
    class Stopping(ListedLines):
        def read(
            self, page: PageImage, *, cancel: Callable[[], bool] | None = None
        ) -> Iterator[Line]:
            yield from ()
            while cancel is not None and not cancel():
                time.sleep(0.005)
            raise Cancelled("Stopped while reading a page.", stage="ocr.recognise")

    built = build([], recogniser=Stopping([]), options=PipelineOptions(deadline_s=0.05))
    with pytest.raises(DeadlineExceeded) as caught:
        built.pipeline.run(PAGE)
    assert caught.value.hint
    assert caught.value.stage == "ocr.recognise"
