"""The native log keeps what explains a failure."""

from __future__ import annotations

from edge_runtime.llm.native_log import CONT, DEBUG, ERROR, INFO, WARN, NativeLog


def texts(log: NativeLog, mark: int = 0) -> list[str]:
    return [line.text for line in log.since(mark)]


def test_pieces_of_a_line_are_joined() -> None:
    log = NativeLog()
    log.write(ERROR, "cannot ")
    log.write(CONT, "open file\nnext")
    assert texts(log) == ["cannot open file", "next"]


def test_debug_lines_and_progress_dots_are_dropped() -> None:
    log = NativeLog()
    log.write(DEBUG, "chatter\n")
    log.write(INFO, "....")
    log.write(CONT, "...\n")
    assert texts(log) == []


def test_only_lines_after_the_mark_are_quoted() -> None:
    log = NativeLog()
    log.write(ERROR, "old\n")
    mark = log.mark()
    log.write(ERROR, "new\n")
    assert log.quote(mark) == "new"


def test_warnings_are_quoted_rather_than_information() -> None:
    log = NativeLog()
    log.write(WARN, "reason\n")
    log.write(INFO, "noise\n")
    assert log.quote(0) == "reason"


def test_information_is_quoted_when_there_is_nothing_graver() -> None:
    log = NativeLog()
    log.write(INFO, "a\nb\n")
    assert log.quote(0, n_lines=1) == "b"


def test_old_lines_fall_out_and_marks_stay_true() -> None:
    log = NativeLog(n_lines=3)
    for i in range(10):
        log.write(WARN, f"{i}\n")
    mark = log.mark()
    assert texts(log) == ["7", "8", "9"]
    log.write(WARN, "last\n")
    assert texts(log, mark) == ["last"]


def test_a_line_without_an_end_belongs_to_the_time_before_the_mark() -> None:
    log = NativeLog()
    log.write(WARN, "unfinished")
    mark = log.mark()
    log.write(WARN, "later\n")
    assert texts(log, mark) == ["later"]
