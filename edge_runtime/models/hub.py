"""What a Hugging Face hub states about a file before it is fetched.

The hub answers `resolve/REVISION/FILE` with the checksum of the content: `X-Linked-ETag` is the
sha256 of a file in its large storage, `ETag` the git blob id of a small one.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import quote

from edge_runtime.errors import DownloadError
from edge_runtime.models.catalogue import HubSource
from edge_runtime.models.digests import Checksum
from edge_runtime.models.http_client import open_url

DEFAULT_ENDPOINT = "https://huggingface.co"
_TRUE = {"1", "true", "yes", "on"}


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file at one commit of a repository."""

    url: str
    checksum: Checksum
    size_bytes: int | None
    revision: str


def endpoint() -> str:
    """The hub's address without a trailing slash."""
    return (os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")


def request_headers() -> dict[str, str]:
    """The token of the user, if there is one."""
    token = os.environ.get("HF_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}


def look_up(source: HubSource) -> HubFile:
    """Ask the hub for checksum, size and commit of a file.

    Raises:
        DownloadError: Offline mode, no connection, no such file, no access, or no checksum.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in _TRUE:
        raise DownloadError(
            f"{source.repository} cannot be asked: HF_HUB_OFFLINE is set",
            hint="unset HF_HUB_OFFLINE, or pass the path of a model file instead of its name",
        )
    url = _resolve_url(source, source.revision)
    with open_url(url, method="HEAD", headers=request_headers(), leave_host=False) as answer:
        headers = answer.first_headers
    checksum = _checksum(headers)
    if checksum is None:
        raise DownloadError(
            f"{url} states no checksum, so what it sends could not be checked",
            hint="set HF_ENDPOINT to a hub that sends X-Linked-ETag",
            details={"url": url},
        )
    size = headers.get("x-linked-size") or headers.get("content-length", "")
    commit = headers.get("x-repo-commit", "")
    revision = commit if re.fullmatch(r"[0-9a-f]{40}", commit) else source.revision
    return HubFile(
        url=_resolve_url(source, revision),
        checksum=checksum,
        size_bytes=int(size) if size.isdigit() and int(size) > 0 else None,
        revision=revision,
    )


def _resolve_url(source: HubSource, revision: str) -> str:
    return f"{endpoint()}/{source.repository}/resolve/{quote(revision)}/{quote(source.file)}"


def _checksum(headers: dict[str, str]) -> Checksum | None:
    for name in ("x-linked-etag", "etag"):
        value = headers.get(name, "").removeprefix("W/").strip('"').lower()
        if re.fullmatch(r"[0-9a-f]{64}", value):
            return Checksum("sha256", value)
        if re.fullmatch(r"[0-9a-f]{40}", value):
            return Checksum("git-sha1", value)
    return None
