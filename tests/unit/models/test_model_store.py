"""The store never shows a half-written file, whoever dies or interferes."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from edge_runtime.errors import (
    ChecksumMismatch,
    DownloadError,
    ModelNotFound,
    ResourceError,
    UsageError,
)
from edge_runtime.models.atomic_files import disk_errors, exclusive, write_atomically
from edge_runtime.models.digests import cached_sha256
from edge_runtime.models.progress import Phase, PullProgress
from edge_runtime.models.store import FileState, ModelStore
from tests.unit.models.serving import (
    NO_WAIT,
    FakeServer,
    catalogue,
    entry,
    file,
    sha256,
)

REPOSITORY = Path(__file__).resolve().parents[3]


def url_source(server: FakeServer, path: str = "/m.gguf") -> dict[str, Any]:
    return {"kind": "url", "url": server.url + path}


def a_store(root: Path, *files: dict[str, Any], **more: Any) -> ModelStore:
    return ModelStore(root, catalogue=catalogue(entry(*files, **more)), retry=NO_WAIT)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_pull_status_path_verify(server: FakeServer, root: Path, tiny_bytes: bytes) -> None:
    server.add("/m.gguf", tiny_bytes)
    store = a_store(root, file(url_source(server), tiny_bytes))
    assert store.status("one").state is FileState.MISSING
    with pytest.raises(ModelNotFound) as caught:
        store.path("one")
    assert caught.value.hint == "edge-run models pull one"
    assert store.pull("one").state is FileState.READY
    assert store.path("one") == root / "one" / "m.gguf"
    assert store.verify("one").is_ok
    store.verify("one").raise_if_bad()


def test_second_pull_asks_nobody(server: FakeServer, root: Path, tiny_bytes: bytes) -> None:
    server.add("/m.gguf", tiny_bytes)
    store = a_store(root, file(url_source(server), tiny_bytes))
    store.pull("one")
    server.requests.clear()
    store.pull("one")
    assert server.requests == []


def test_one_bad_file_keeps_the_good_one(server: FakeServer, root: Path, tiny_bytes: bytes) -> None:
    server.add("/m.gguf", tiny_bytes)
    second = file(url_source(server, "/gone"), b"abc", key="keys", name="k.txt", kind="text")
    store = a_store(root, file(url_source(server), tiny_bytes), second)
    with pytest.raises(DownloadError):
        store.pull("one")
    states = [f.state for f in store.status("one").files]
    assert states == [FileState.READY, FileState.MISSING]
    server.add("/gone", b"abc")
    server.requests.clear()
    assert store.pull("one").is_ready
    assert [r.path for r in server.requests] == ["/gone"]


def test_verify_finds_flipped_bits_and_force_mends_them(
    server: FakeServer, root: Path, tiny_bytes: bytes
) -> None:
    server.add("/m.gguf", tiny_bytes)
    store = a_store(root, file(url_source(server), tiny_bytes))
    store.pull("one")
    store.path("one").write_bytes(tiny_bytes[:-1] + b"\x01")
    report = store.verify("one")
    assert not report.is_ok
    with pytest.raises(ChecksumMismatch) as caught:
        report.raise_if_bad()
    assert caught.value.hint == "edge-run models pull one --force"
    assert store.pull("one", force=True).is_ready
    assert store.verify("one").is_ok


def test_shortened_file_is_damaged_and_pulled_again(
    server: FakeServer, root: Path, tiny_bytes: bytes
) -> None:
    server.add("/m.gguf", tiny_bytes)
    store = a_store(root, file(url_source(server), tiny_bytes))
    store.pull("one")
    os.truncate(store.path("one"), 1000)
    assert store.status("one").state is FileState.DAMAGED
    with pytest.raises(ModelNotFound, match="damaged"):
        store.path("one")
    assert store.pull("one").is_ready


def test_catalogue_that_moved_on_makes_a_file_damaged(
    server: FakeServer, root: Path, tiny_bytes: bytes
) -> None:
    server.add("/m.gguf", tiny_bytes)
    a_store(root, file(url_source(server), tiny_bytes)).pull("one")
    newer = tiny_bytes[:-1] + b"\x01"
    assert a_store(root, file(url_source(server), newer)).status("one").state is FileState.DAMAGED


def test_damaged_receipt_is_only_extra_work(
    server: FakeServer, root: Path, tiny_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    server.add("/m.gguf", tiny_bytes)
    store = a_store(root, file(url_source(server), tiny_bytes))
    store.pull("one")
    (root / "one" / "receipt.json").write_text('{"files": 7')
    assert store.status("one").is_ready
    assert "damaged" in caplog.text


def test_local_file_is_copied(root: Path, tmp_path: Path, tiny_gguf: Path) -> None:
    store = a_store(root, file({"kind": "local", "path": str(tiny_gguf)}))
    assert store.pull("one").files[0].sha256 == sha256(tiny_gguf.read_bytes())
    assert not store.path("one").samefile(tiny_gguf)


def test_local_file_that_is_not_there(root: Path, tmp_path: Path) -> None:
    store = a_store(root, file({"kind": "local", "path": str(tmp_path / "none.gguf")}))
    with pytest.raises(ModelNotFound, match=r"none\.gguf"):
        store.pull("one")


def test_terms_have_to_be_accepted_once(server: FakeServer, root: Path, tiny_bytes: bytes) -> None:
    server.add("/m.gguf", tiny_bytes)
    store = a_store(root, file(url_source(server), tiny_bytes), must_accept=True)
    with pytest.raises(UsageError, match="accept") as caught:
        store.pull("one")
    assert "--accept-licence" in str(caught.value.hint)
    assert server.requests == []
    store.pull("one", accept_licence=True)
    store.path("one").unlink()
    assert store.pull("one").is_ready


def test_too_little_space_is_said_before_the_download(
    server: FakeServer, root: Path, tiny_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(root.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    store = a_store(root, file(url_source(server), tiny_bytes))
    with pytest.raises(ResourceError, match="are free in") as caught:
        store.pull("one")
    assert caught.value.exit_code == 4
    assert server.requests == []


def test_disk_that_fills_up_on_the_way(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="the disk is full"), disk_errors(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(FileNotFoundError), disk_errors(tmp_path):
        (tmp_path / "none").stat()


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    write_atomically(path, b"old")

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_remembered_checksum_follows_the_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"one")
    os.utime(path, ns=(1, 10**18))
    assert cached_sha256(path) == sha256(b"one")
    assert cached_sha256(path) == sha256(b"one")
    path.write_bytes(b"two")
    assert cached_sha256(path) == sha256(b"two")


def test_remembered_checksum_is_really_used_and_survives_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_RUNTIME_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "f"
    path.write_bytes(b"one")
    os.utime(path, ns=(1, 10**18))
    cached_sha256(path)
    record = next((tmp_path / "cache" / "digests").iterdir())
    known = json.loads(record.read_text())
    record.write_text(json.dumps({**known, "sha256": "f" * 64}))
    assert cached_sha256(path) == "f" * 64
    record.write_text("[]")
    assert cached_sha256(path) == sha256(b"one")


def test_checksum_of_a_file_just_written_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_RUNTIME_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "f"
    path.write_bytes(b"one")
    cached_sha256(path)
    assert not (tmp_path / "cache" / "digests").exists()


PULL = """
import json, sys
from pathlib import Path
sys.path.insert(0, {repository!r})
from edge_runtime.models.catalogue import Catalogue, Entry
from edge_runtime.models.store import ModelStore
entry = Entry.model_validate(json.loads({entry!r}))
store = ModelStore(Path({root!r}), catalogue=Catalogue({{entry.name: entry}}))
print("started", flush=True)
print(store.pull("one").state.value, flush=True)
"""


def child(root: Path, one: Any) -> subprocess.Popen[str]:
    code = PULL.format(repository=str(REPOSITORY), entry=one.model_dump_json(), root=str(root))
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.15, 0.3, 0.6])
def test_killed_pull_leaves_no_usable_half_and_the_next_one_works(
    server: FakeServer, root: Path, tiny_bytes: bytes, moment: float
) -> None:
    # Cuts make the child reconnect (and wait) several times: many moments to die at.
    server.add("/m.gguf", tiny_bytes, cuts=[300_000, 300_000, 300_000])
    one = entry(file(url_source(server), tiny_bytes))
    store = ModelStore(root, catalogue=catalogue(one), retry=NO_WAIT)
    process = child(root, one)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    process.wait()
    target = root / "one" / "m.gguf"
    assert not target.exists() or target.read_bytes() == tiny_bytes
    server.files["/m.gguf"].cuts.clear()
    assert store.pull("one").is_ready
    assert target.read_bytes() == tiny_bytes
    assert list(target.parent.glob("*.partial")) == []


def test_two_processes_pull_at_once_and_fetch_once(
    server: FakeServer, root: Path, tiny_bytes: bytes
) -> None:
    server.add("/m.gguf", tiny_bytes, cuts=[200_000, 200_000])
    one = entry(file(url_source(server), tiny_bytes))
    processes = [child(root, one) for _ in range(3)]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert outputs == ["started\nready\n"] * 3
    # One process fetched, in three pieces because of the cuts; the others waited.
    assert [r.headers.get("range") for r in server.requests] == [
        None,
        "bytes=200000-",
        "bytes=400000-",
    ]


def hold(lock: Path, ready: Any, leave: Any) -> None:
    with exclusive(lock):
        ready.set()
        leave.wait(30)


def test_waiting_for_another_process_is_reported(
    server: FakeServer, root: Path, tiny_bytes: bytes
) -> None:
    server.add("/m.gguf", tiny_bytes)
    store = a_store(root, file(url_source(server), tiny_bytes))
    context = multiprocessing.get_context("spawn")
    ready, leave = context.Event(), context.Event()
    other = context.Process(target=hold, args=(root / ".locks" / "one.lock", ready, leave))
    other.start()
    assert ready.wait(30)
    seen: list[PullProgress] = []

    def on_progress(progress: PullProgress) -> None:
        seen.append(progress)
        leave.set()

    assert store.pull("one", progress=on_progress).is_ready
    other.join()
    assert seen[0].phase is Phase.WAIT


def test_a_file_where_the_folder_should_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ResourceError, match="is a file"), disk_errors(tmp_path / "file"):
        (tmp_path / "file" / "model").mkdir(parents=True)
