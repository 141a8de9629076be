"""HTTP by the standard library, with redirects followed by hand.

Redirects are seen one by one because a hub states a file's checksum on its own answer, before it
sends the client on to a storage host, and because a token for the hub must not travel there.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

from edge_runtime import __version__
from edge_runtime.errors import DownloadError

MAX_REDIRECTS = 10
TIMEOUT_S = 30.0
_REDIRECTS = {301, 302, 303, 307, 308}
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class Answer:
    """The last answer of a chain of redirects, open for reading.

    `first_headers` holds, lower-cased, the first value seen for each header along the chain.
    """

    status: int
    url: str
    headers: Message
    first_headers: dict[str, str]
    body: IO[bytes]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def transient(message: str, **details: Any) -> DownloadError:
    """An error that another attempt may not meet."""
    return DownloadError(
        message,
        hint="check the connection and run the same command again: it continues",
        details={"is_transient": True, **details},
    )


def is_transient(error: DownloadError) -> bool:
    """Whether trying again makes sense."""
    return bool(error.details.get("is_transient"))


@contextmanager
def open_url(
    url: str,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    leave_host: bool = True,
) -> Generator[Answer]:
    """Request `url`, following redirects, and close the answer afterwards.

    `Authorization` is only sent to the host that was asked first. With `leave_host` off, a
    redirect to another host is not followed but is itself the answer. Status codes below 400, and
    416 (range not satisfiable), are answers; all others are errors.

    Raises:
        DownloadError: No connection, a redirect loop, or a refusal.
    """
    sent = {"User-Agent": f"edge-runtime/{__version__}", "Accept-Encoding": "identity"}
    sent.update(headers or {})
    origin = _host(url)
    first: dict[str, str] = {}
    for _ in range(MAX_REDIRECTS + 1):
        if urlsplit(url).scheme not in {"http", "https"}:
            raise DownloadError(f"Cannot fetch {url}: only http and https are followed")
        if _host(url) != origin:
            sent.pop("Authorization", None)
        status, message, body = _request(url, method, sent)
        with body:
            for key, value in message.items():
                first.setdefault(key.lower(), value)
            following = urljoin(url, message.get("Location") or "")
            is_last = status not in _REDIRECTS
            if is_last or (not leave_host and _host(following) != origin):
                yield Answer(status, url, message, first, body)
                return
        if following == url:
            raise DownloadError(f"{url} redirects to itself")
        if urlsplit(url).scheme == "https" and urlsplit(following).scheme == "http":
            raise DownloadError(f"{url} redirects from https to plain http: refused")
        url = following
    raise DownloadError(f"{url} redirects more than {MAX_REDIRECTS} times")


def _host(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _request(url: str, method: str, headers: dict[str, str]) -> tuple[int, Message, IO[bytes]]:
    request = urllib.request.Request(url, method=method, headers=headers)  # noqa: S310
    try:
        answer = _OPENER.open(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as err:
        if err.code in _REDIRECTS or err.code == 416:
            return err.code, err.headers, err
        with err:
            raise _refusal(url, err.code) from err
    except (urllib.error.URLError, http.client.HTTPException, OSError) as err:
        reason = getattr(err, "reason", None) or err
        raise transient(f"Cannot reach {url}: {reason}", url=url) from err
    return answer.status, answer.headers, answer


def _refusal(url: str, status: int) -> DownloadError:
    details = {"url": url, "status": status}
    if status in _TRANSIENT:
        return transient(f"{url} answered with status {status}", status=status, url=url)
    if status in {401, 403}:
        return DownloadError(
            f"{url} refuses access (status {status})",
            hint="accept the model's terms on its page and set HF_TOKEN to your access token",
            details=details,
        )
    if status in {404, 410}:
        return DownloadError(
            f"There is no file at {url} (status {status})",
            hint="the catalogue entry may be outdated; set HF_ENDPOINT if you use a mirror",
            details=details,
        )
    return DownloadError(f"{url} answered with status {status}", details=details)
