"""Fetch a file over HTTP into a partial file, continuing where an earlier attempt stopped."""

from __future__ import annotations

import http.client
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edge_runtime.errors import DownloadError
from edge_runtime.models.http_client import Answer, is_transient, open_url, transient

_CHUNK_BYTES = 256 * 1024
_CONTENT_RANGE = re.compile(r"^bytes (?P<start>\d+)-\d+/(?P<total>\d+|\*)$")
_UNSATISFIED = re.compile(r"^bytes \*/(?P<total>\d+)$")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to try again without any progress, and how long to wait in between."""

    n_attempts: int = 5
    first_wait_s: float = 0.5
    max_wait_s: float = 8.0

    def wait_s(self, n_failed: int) -> float:
        """Pause after the `n_failed`-th failure in a row."""
        return min(self.max_wait_s, self.first_wait_s * 2 ** (n_failed - 1))


@dataclass(frozen=True, slots=True)
class Download:
    """What to fetch. `size_bytes` is checked as early as it can be; None when unknown."""

    url: str
    size_bytes: int | None = None
    headers: tuple[tuple[str, str], ...] = ()


def download(
    request: Download,
    partial: Path,
    *,
    retry: RetryPolicy,
    on_bytes: Callable[[int, int | None], None] | None = None,
) -> None:
    """Bring `partial` to the whole content of the address; what is there already is kept.

    The caller checks the result's checksum: a server may have changed the file in between.

    Raises:
        DownloadError: The server refuses, offers another size, or breaks off too often.
    """
    n_failed = 0
    while True:
        before = _size(partial)
        try:
            _attempt(request, partial, on_bytes or (lambda _done, _total: None))
        except DownloadError as err:
            if not is_transient(err):
                raise
            n_failed = 1 if _size(partial) > before else n_failed + 1
            if n_failed >= retry.n_attempts:
                raise
            time.sleep(retry.wait_s(n_failed))
        else:
            return


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _attempt(request: Download, partial: Path, on_bytes: Callable[[int, int | None], None]) -> None:
    start = _size(partial)
    if request.size_bytes is not None:
        if start == request.size_bytes:
            return
        if start > request.size_bytes:
            partial.unlink()
            start = 0
    headers = dict(request.headers)
    if start:
        headers["Range"] = f"bytes={start}-"
    with open_url(request.url, headers=headers) as answer:
        if answer.status == 416:
            _judge_unsatisfied(answer, partial, start)
            return
        start, total = _place(answer, start)
        if request.size_bytes is not None and total is not None and total != request.size_bytes:
            raise DownloadError(
                f"{request.url} offers {total} bytes where {request.size_bytes} are expected",
                hint="the file at its source has changed, or something else answers in its place",
                details={"url": request.url, "offered": total, "expected": request.size_bytes},
            )
        _receive(answer, partial, start, total or request.size_bytes, on_bytes)


def _judge_unsatisfied(answer: Answer, partial: Path, start: int) -> None:
    """Nothing lies beyond what we have: it is complete, or it is of another file."""
    match = _UNSATISFIED.match(answer.headers.get("Content-Range", ""))
    if match is None or int(match["total"]) != start:
        partial.unlink()
        raise transient(f"{answer.url} is smaller than the part that was fetched before")


def _place(answer: Answer, wanted: int) -> tuple[int, int | None]:
    """Where the body belongs in the file, and the size of the whole file if stated."""
    if answer.status == 206:
        match = _CONTENT_RANGE.match(answer.headers.get("Content-Range", ""))
        if match is None or int(match["start"]) != wanted:
            raise DownloadError(
                f"{answer.url} answered with another range than asked for",
                details={"content_range": answer.headers.get("Content-Range")},
            )
        return wanted, None if match["total"] == "*" else int(match["total"])
    # The server does not do ranges: the body is the whole file.
    length = answer.headers.get("Content-Length", "")
    return 0, int(length) if length.isdigit() else None


def _receive(
    answer: Answer,
    partial: Path,
    start: int,
    total: int | None,
    on_bytes: Callable[[int, int | None], None],
) -> None:
    done = start
    with partial.open("r+b" if start else "wb") as stream:
        stream.seek(start)
        try:
            while True:
                try:
                    chunk = answer.body.read(_CHUNK_BYTES)
                except (http.client.HTTPException, OSError) as err:
                    raise transient(
                        f"The connection to {answer.url} broke after {done} bytes: {err}"
                    ) from err
                if not chunk:
                    break
                if total is not None and done + len(chunk) > total:
                    raise DownloadError(f"{answer.url} sends more than the {total} bytes it stated")
                stream.write(chunk)
                done += len(chunk)
                on_bytes(done, total)
        finally:
            stream.flush()
            os.fsync(stream.fileno())
    if total is not None and done < total:
        raise transient(f"{answer.url} stopped after {done} of {total} bytes")
