"""Files of a hub are checked against the checksum that the hub itself states."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from edge_runtime.errors import ChecksumMismatch, DownloadError, ModelFileError
from edge_runtime.models.store import FileState, ModelStore
from tests.unit.models.serving import (
    NO_WAIT,
    FakeServer,
    catalogue,
    entry,
    file,
    sha256,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SOURCE = {"kind": "hub", "repository": "acme/tiny-GGUF", "file": "tiny.gguf"}
AT_MAIN = "/acme/tiny-GGUF/resolve/main/tiny.gguf"
AT_COMMIT = f"/acme/tiny-GGUF/resolve/{COMMIT}/tiny.gguf"


@pytest.fixture(autouse=True)
def _hub_is_the_server(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", server.url + "/")


def serve(server: FakeServer, content: bytes, *, stated: str | None = None, **storage: Any) -> None:
    """A hub: the answer for a file redirects to a storage host, which does not answer HEAD."""
    headers = {
        "X-Repo-Commit": COMMIT,
        "X-Linked-Size": str(len(content)),
        "X-Linked-ETag": f'"{stated or sha256(content)}"',
        "ETag": '"feedface"',
    }
    for path in (AT_MAIN, AT_COMMIT):
        server.add(path, headers=headers, location=f"{server.other_url}/storage")
    server.add("/storage", content, **storage)


def a_store(tmp_path: Path, **more: Any) -> ModelStore:
    one = entry({**file(SOURCE, name="tiny.gguf"), **more})
    return ModelStore(tmp_path / "store", catalogue=catalogue(one), retry=NO_WAIT)


def test_pull_checks_the_stated_checksum_and_keeps_it(
    server: FakeServer, tmp_path: Path, tiny_bytes: bytes
) -> None:
    serve(server, tiny_bytes)
    store = a_store(tmp_path)
    status = store.pull("one")
    assert status.is_ready
    assert status.files[0].sha256 == sha256(tiny_bytes)
    assert store.path("one").read_bytes() == tiny_bytes
    assert store.verify("one").is_ok
    receipt = json.loads((tmp_path / "store/one/receipt.json").read_text())
    assert receipt["files"]["model"]["revision"] == COMMIT
    asked = [(r.method, r.path) for r in server.requests]
    assert asked == [("HEAD", AT_MAIN), ("GET", AT_COMMIT), ("GET", "/storage")]


def test_wrong_content_is_removed(server: FakeServer, tmp_path: Path, tiny_bytes: bytes) -> None:
    serve(server, tiny_bytes, stated=sha256(b"something else"))
    with pytest.raises(ChecksumMismatch, match="does not have the expected content"):
        a_store(tmp_path).pull("one")
    assert [p.name for p in (tmp_path / "store/one").iterdir()] == []


def test_interrupted_pull_continues_at_the_same_commit(
    server: FakeServer, tmp_path: Path, tiny_bytes: bytes
) -> None:
    serve(server, tiny_bytes, cuts=[400_000, 0, 0, 0])
    store = a_store(tmp_path)
    with pytest.raises(DownloadError, match="stopped after 400000"):
        store.pull("one")
    assert store.status("one").state is FileState.PARTIAL
    server.requests.clear()
    server.files["/storage"].cuts.clear()
    assert store.pull("one").is_ready
    assert server.requests[-1].headers["range"] == "bytes=400000-"


def test_part_of_an_older_version_is_not_continued(
    server: FakeServer, tmp_path: Path, tiny_bytes: bytes
) -> None:
    serve(server, b"older" * 100_000, cuts=[300_000, 0, 0, 0])
    store = a_store(tmp_path)
    with pytest.raises(DownloadError):
        store.pull("one")
    serve(server, tiny_bytes)
    assert store.pull("one").is_ready
    assert store.path("one").read_bytes() == tiny_bytes
    assert list((tmp_path / "store/one").glob("*.partial")) == []


def test_damaged_part_is_fetched_again_from_the_start(
    server: FakeServer, tmp_path: Path, tiny_bytes: bytes
) -> None:
    serve(server, tiny_bytes)
    folder = tmp_path / "store" / "one"
    folder.mkdir(parents=True)
    part = folder / f"tiny.gguf.{sha256(tiny_bytes)[:16]}.partial"
    part.write_bytes(bytes(500_000))
    store = a_store(tmp_path)
    assert store.pull("one").is_ready
    assert store.path("one").read_bytes() == tiny_bytes


def test_hub_that_changed_under_the_catalogue(
    server: FakeServer, tmp_path: Path, tiny_bytes: bytes
) -> None:
    serve(server, tiny_bytes)
    with pytest.raises(ChecksumMismatch, match="not the file of the catalogue"):
        a_store(tmp_path, sha256=sha256(b"before")).pull("one")
    assert server.n_gets("/storage") == 0


def test_hub_without_a_checksum_is_refused(server: FakeServer, tmp_path: Path) -> None:
    server.add(AT_MAIN, b"content")
    with pytest.raises(DownloadError, match="states no checksum"):
        a_store(tmp_path).pull("one")


def test_small_file_is_checked_by_its_git_id(
    server: FakeServer, tmp_path: Path, tiny_bytes: bytes
) -> None:
    blob = hashlib.sha1(
        b"blob %d\0" % len(tiny_bytes) + tiny_bytes, usedforsecurity=False
    ).hexdigest()
    headers = {"X-Repo-Commit": COMMIT, "ETag": f'W/"{blob}"'}
    for path in (AT_MAIN, AT_COMMIT):
        server.add(path, tiny_bytes, headers=headers)
    status = a_store(tmp_path).pull("one")
    assert status.files[0].sha256 == sha256(tiny_bytes)


def test_not_a_model_behind_a_right_checksum(server: FakeServer, tmp_path: Path) -> None:
    serve(server, b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ModelFileError, match="Git-LFS"):
        a_store(tmp_path).pull("one")
    assert [p.name for p in (tmp_path / "store/one").iterdir()] == []


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="There is no file"):
        a_store(tmp_path).pull("one")


def test_token_goes_to_the_hub_only(
    server: FakeServer, tmp_path: Path, tiny_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    serve(server, tiny_bytes)
    a_store(tmp_path).pull("one")
    for request in server.requests:
        is_hub = request.path != "/storage"
        assert (request.headers.get("authorization") == "Bearer hf_secret") == is_hub


def test_offline_mode_asks_nobody(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DownloadError, match="HF_HUB_OFFLINE"):
        a_store(tmp_path).pull("one")
    assert server.requests == []


def test_pulled_model_needs_no_hub(
    server: FakeServer, tmp_path: Path, tiny_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(server, tiny_bytes)
    store = a_store(tmp_path)
    store.pull("one")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    server.requests.clear()
    assert store.pull("one").is_ready
    assert store.status("one").is_ready
    assert server.requests == []


def test_lost_receipt_is_made_again_without_fetching(
    server: FakeServer, tmp_path: Path, tiny_bytes: bytes
) -> None:
    serve(server, tiny_bytes)
    store = a_store(tmp_path)
    store.pull("one")
    (tmp_path / "store/one/receipt.json").unlink()
    assert store.status("one").state is FileState.UNCHECKED
    server.requests.clear()
    assert store.pull("one").is_ready
    assert server.n_gets("/storage") == 0


def test_force_finds_a_newer_version(server: FakeServer, tmp_path: Path, tiny_bytes: bytes) -> None:
    serve(server, tiny_bytes)
    store = a_store(tmp_path)
    store.pull("one")
    newer = tiny_bytes + bytes(32)
    serve(server, newer)
    assert store.pull("one").files[0].sha256 == sha256(tiny_bytes)
    assert store.pull("one", force=True).files[0].sha256 == sha256(newer)
