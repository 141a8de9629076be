"""Locking, poisoning and limits shared by all sessions."""

from __future__ import annotations

import threading

import hypothesis.strategies as st
import pytest
from hypothesis import given

from edge_runtime.errors import Cancelled, ContextOverflow, SessionPoisoned, UsageError
from edge_runtime.llm.session_guard import SessionGuard, check_room, check_vocabulary, n_shared

Tokens = st.lists(st.integers(0, 2), max_size=8)


def use(guard: SessionGuard) -> bool:
    with guard.exclusive():
        return True


def fail(guard: SessionGuard, error: BaseException) -> None:
    with guard.exclusive(), guard.changing():
        raise error


@pytest.mark.parametrize("error", [ValueError("odd"), KeyboardInterrupt()])
def test_a_failed_change_poisons_and_the_cause_is_named(error: BaseException) -> None:
    guard = SessionGuard()
    with pytest.raises(type(error)):
        fail(guard, error)
    with pytest.raises(SessionPoisoned, match=type(error).__name__):
        use(guard)


def test_a_cancellation_does_not_poison() -> None:
    guard = SessionGuard()
    with pytest.raises(Cancelled):
        fail(guard, Cancelled("stop"))
    assert use(guard)


def test_a_reset_that_fails_leaves_the_session_poisoned() -> None:
    guard = SessionGuard()
    with pytest.raises(ValueError, match="odd"):
        fail(guard, ValueError("odd"))

    def broken() -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        guard.reset(broken)
    with pytest.raises(SessionPoisoned):
        use(guard)
    guard.reset(lambda: None)
    assert use(guard)


def test_closing_frees_once_and_waits_for_a_call() -> None:
    guard = SessionGuard()
    order: list[str] = []
    inside = threading.Event()
    leave = threading.Event()

    def call() -> None:
        with guard.exclusive():
            inside.set()
            leave.wait(10)
            order.append("call")

    worker = threading.Thread(target=call)
    worker.start()
    assert inside.wait(10)
    closer = threading.Thread(target=lambda: guard.close(lambda: order.append("free")))
    closer.start()
    leave.set()
    worker.join()
    closer.join()
    guard.close(lambda: order.append("free again"))
    assert order == ["call", "free"]
    with pytest.raises(UsageError):
        use(guard)


def test_limits_are_checked_with_numbers() -> None:
    check_room(4, 4)
    with pytest.raises(ContextOverflow) as caught:
        check_room(5, 4)
    assert caught.value.details == {"n_tokens": 5, "n_ctx": 4}
    check_vocabulary([], 1)
    check_vocabulary([0, 9], 10)
    for bad in ([10], [-1, 3]):
        with pytest.raises(UsageError):
            check_vocabulary(bad, 10)


@given(Tokens, Tokens)
def test_the_shared_beginning_is_as_long_as_it_can_be(a: list[int], b: list[int]) -> None:
    n = n_shared(a, b)
    assert a[:n] == b[:n]
    assert n == min(len(a), len(b)) or a[n] != b[n]
