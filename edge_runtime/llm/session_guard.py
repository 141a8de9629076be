"""What every session does the same way: one call at a time, none after an error, limits first."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Sequence

from edge_runtime.errors import Cancelled, ContextOverflow, SessionPoisoned, UsageError


class SessionGuard:
    """The lock of a session, and whether it may still be used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._poison: str | None = None
        self._is_closed = False

    @contextlib.contextmanager
    def exclusive(self) -> Generator[None]:
        """Wait for other threads' calls.

        Raises:
            UsageError: the session is closed.
            SessionPoisoned: an earlier call failed half-way.
        """
        with self._lock:
            self._check_open()
            if self._poison is not None:
                raise SessionPoisoned(
                    f"This session broke before: {self._poison}", hint="call reset()"
                )
            yield

    @contextlib.contextmanager
    def changing(self) -> Generator[None]:
        """Poison the session if the enclosed change fails, other than by cancellation.

        A failure in between leaves cache and history possibly apart.
        """
        try:
            yield
        except Cancelled:
            raise
        except BaseException as err:
            self._poison = f"{type(err).__name__}: {err}"
            raise

    def reset(self, forget: Callable[[], None]) -> None:
        """Empty the session with `forget` and make it usable again."""
        with self._lock:
            self._check_open()
            forget()
            self._poison = None

    def close(self, free: Callable[[], None]) -> None:
        """Call `free` once, when no call is in progress."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                free()

    def _check_open(self) -> None:
        if self._is_closed:
            raise UsageError("This session is closed", hint="open a new one")


def check_room(n_tokens: int, n_ctx: int) -> None:
    """Refuse more tokens than fit, before anything changes.

    Raises:
        ContextOverflow: with both numbers in its details.
    """
    if n_tokens > n_ctx:
        raise ContextOverflow(
            f"{n_tokens} tokens do not fit a context of {n_ctx}",
            hint="a larger n_ctx, or a shorter document",
            details={"n_tokens": n_tokens, "n_ctx": n_ctx},
        )


def check_vocabulary(tokens: Sequence[int], n_vocab: int) -> None:
    """Refuse token ids that do not exist.

    Raises:
        UsageError: naming the range.
    """
    if tokens and not 0 <= min(tokens) <= max(tokens) < n_vocab:
        raise UsageError(f"A token is not within 0..{n_vocab - 1}")


def n_shared(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common beginning of two lists."""
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    return next(i for i in range(n) if a[i] != b[i])
