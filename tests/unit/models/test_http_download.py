"""Downloads continue, restart or fail in words, whatever the server does."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from edge_runtime.errors import DownloadError
from edge_runtime.models.http_client import is_transient, open_url
from edge_runtime.models.http_download import Download, RetryPolicy, download
from tests.unit.models.serving import NO_WAIT, FakeServer

CONTENT = bytes(range(256)) * 4000


def fetch(url: str, partial: Path, *, size: int | None = len(CONTENT)) -> list[int]:
    seen: list[int] = []
    request = Download(url, size)
    download(request, partial, retry=NO_WAIT, on_bytes=lambda done, _total: seen.append(done))
    return seen


def test_whole_file_with_progress(server: FakeServer, tmp_path: Path) -> None:
    url = server.add("/f", CONTENT)
    seen = fetch(url, tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == CONTENT
    assert seen == sorted(seen)
    assert seen[-1] == len(CONTENT)


def test_size_need_not_be_known(server: FakeServer, tmp_path: Path) -> None:
    fetch(server.add("/f", CONTENT), tmp_path / "p", size=None)
    assert (tmp_path / "p").read_bytes() == CONTENT


def test_part_is_continued(server: FakeServer, tmp_path: Path) -> None:
    partial = tmp_path / "p"
    partial.write_bytes(CONTENT[:100_000])
    fetch(server.add("/f", CONTENT), partial)
    assert partial.read_bytes() == CONTENT
    assert [r.headers.get("range") for r in server.requests] == ["bytes=100000-"]


def test_broken_connection_is_continued(server: FakeServer, tmp_path: Path) -> None:
    url = server.add("/f", CONTENT, cuts=[300_000, 300_000])
    fetch(url, tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == CONTENT
    ranges = [r.headers.get("range") for r in server.requests]
    assert ranges == [None, "bytes=300000-", "bytes=600000-"]


def test_server_without_ranges_starts_over(server: FakeServer, tmp_path: Path) -> None:
    partial = tmp_path / "p"
    partial.write_bytes(b"something else" * 1000)
    fetch(server.add("/f", CONTENT, does_ranges=False), partial)
    assert partial.read_bytes() == CONTENT


def test_finished_part_asks_for_nothing(server: FakeServer, tmp_path: Path) -> None:
    partial = tmp_path / "p"
    partial.write_bytes(CONTENT)
    fetch(server.add("/f", CONTENT), partial)
    assert server.requests == []


def test_finished_part_of_unknown_size(server: FakeServer, tmp_path: Path) -> None:
    partial = tmp_path / "p"
    partial.write_bytes(CONTENT)
    fetch(server.add("/f", CONTENT), partial, size=None)
    assert partial.read_bytes() == CONTENT


@pytest.mark.parametrize("size", [None, 1000])
def test_part_longer_than_the_file_starts_over(
    server: FakeServer, tmp_path: Path, size: int | None
) -> None:
    partial = tmp_path / "p"
    partial.write_bytes(CONTENT)
    fetch(server.add("/f", CONTENT[:1000]), partial, size=size)
    assert partial.read_bytes() == CONTENT[:1000]


def test_endless_breaking_gives_up_and_keeps_the_part(server: FakeServer, tmp_path: Path) -> None:
    url = server.add("/f", CONTENT, cuts=[5000] + [0] * 20)
    with pytest.raises(DownloadError, match="stopped after 5000 of") as caught:
        fetch(url, tmp_path / "p")
    assert "continues" in str(caught.value.hint)
    assert (tmp_path / "p").read_bytes() == CONTENT[:5000]
    assert len(server.requests) == 1 + NO_WAIT.n_attempts - 1


def test_busy_server_is_asked_again(server: FakeServer, tmp_path: Path) -> None:
    fetch(server.add("/f", CONTENT, statuses=[503, 429]), tmp_path / "p")
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "match"),
    [(404, "There is no file"), (410, "There is no file"), (401, "refuses"), (403, "refuses")],
)
def test_refusal_is_final(server: FakeServer, tmp_path: Path, status: int, match: str) -> None:
    with pytest.raises(DownloadError, match=match) as caught:
        fetch(server.add("/f", status=status), tmp_path / "p")
    assert caught.value.hint
    assert len(server.requests) == 1
    assert not (tmp_path / "p").exists()


def test_other_size_is_refused_before_the_body(server: FakeServer, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="offers 1024000 bytes where 77 are expected"):
        fetch(server.add("/f", CONTENT), tmp_path / "p", size=77)
    assert not (tmp_path / "p").exists()


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/f"
        with pytest.raises(DownloadError, match="Cannot reach") as caught:
            fetch(url, tmp_path / "p")
    assert is_transient(caught.value)


def test_redirects_are_followed_and_the_token_stays_home(server: FakeServer) -> None:
    server.add("/a", location="/b", headers={"X-Linked-Size": "7"})
    server.add("/b", location=f"{server.other_url}/c")
    server.add("/c", b"content")
    with open_url(f"{server.url}/a", headers={"Authorization": "Bearer secret"}) as answer:
        assert answer.body.read() == b"content"
        assert answer.first_headers["x-linked-size"] == "7"
    sent = {r.path: r.headers.get("authorization") for r in server.requests}
    assert sent == {"/a": "Bearer secret", "/b": "Bearer secret", "/c": None}


def test_redirect_to_a_file_of_this_machine_is_refused(server: FakeServer) -> None:
    server.add("/a", location="file:///etc/passwd")
    with pytest.raises(DownloadError, match="only http"), open_url(f"{server.url}/a"):
        pass


def test_redirect_loop_ends(server: FakeServer) -> None:
    server.add("/a", location="/b")
    server.add("/b", location="/a")
    with pytest.raises(DownloadError, match="more than 10 times"), open_url(f"{server.url}/a"):
        pass


def test_waits_grow_to_a_limit() -> None:
    policy = RetryPolicy(first_wait_s=0.5, max_wait_s=8.0)
    assert [policy.wait_s(n) for n in range(1, 7)] == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
