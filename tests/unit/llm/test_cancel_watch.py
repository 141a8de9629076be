"""A cancel check reaches code that does not ask."""

from __future__ import annotations

import threading

from edge_runtime.llm.cancel_watch import CancelWatch


def test_a_yes_is_reported_from_another_thread() -> None:
    reported = threading.Event()
    with CancelWatch(lambda: True, reported.set):
        assert reported.wait(5)


def test_a_no_is_never_reported() -> None:
    reported = threading.Event()
    asked = threading.Event()

    def cancel() -> bool:
        asked.set()
        return False

    with CancelWatch(cancel, reported.set):
        assert asked.wait(5)
    assert not reported.is_set()


def test_a_failing_check_counts_as_a_yes_and_is_kept() -> None:
    reported = threading.Event()

    def cancel() -> bool:
        raise ZeroDivisionError

    with CancelWatch(cancel, reported.set) as watch:
        assert reported.wait(5)
    assert isinstance(watch.error, ZeroDivisionError)


def test_nothing_runs_after_the_watch_ends() -> None:
    n_threads = threading.active_count()
    for _ in range(20):
        with CancelWatch(lambda: False, lambda: None):
            pass
    assert threading.active_count() == n_threads
