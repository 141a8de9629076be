"""Models that travel in wheels: fetched by the real pip from a local folder, not installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from edge_runtime.errors import ChecksumMismatch, DownloadError, MissingDependency
from edge_runtime.models.progress import Phase, PullProgress
from edge_runtime.models.store import FileState, ModelStore
from tests.unit.models.serving import (
    NO_WAIT,
    catalogue,
    entry,
    file,
    part,
    sha256,
    write_wheel,
)


def a_store(tmp_path: Path, *files: dict[str, Any]) -> ModelStore:
    return ModelStore(tmp_path / "store", catalogue=catalogue(entry(*files)), retry=NO_WAIT)


def wheel(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "wheel", "parts": list(parts), **more}


def names(tmp_path: Path) -> list[str]:
    return sorted(p.name for p in (tmp_path / "store" / "one").iterdir())


def test_file_in_a_wheel(wheels: Path, tmp_path: Path, tiny_bytes: bytes) -> None:
    write_wheel(wheels, "acme-tiny", {"acme_tiny/m.gguf": tiny_bytes})
    source = wheel(part("acme-tiny", "acme_tiny/m.gguf", tiny_bytes))
    store = a_store(tmp_path, file(source, tiny_bytes))
    seen: list[PullProgress] = []
    assert store.pull("one", progress=seen.append).is_ready
    assert store.path("one").read_bytes() == tiny_bytes
    assert names(tmp_path) == ["m.gguf", "receipt.json"]
    assert importlib.util.find_spec("acme_tiny") is None
    phases = list(dict.fromkeys(p.phase for p in seen))
    assert phases == [Phase.DOWNLOAD, Phase.UNPACK, Phase.CHECK, Phase.DONE]


def test_two_files_of_one_wheel_fetch_it_once(
    wheels: Path, tmp_path: Path, tiny_bytes: bytes
) -> None:
    keys = b"a\nb\n"
    write_wheel(wheels, "acme-two", {"two/m.gguf": tiny_bytes, "two/k.txt": keys})
    store = a_store(
        tmp_path,
        file(wheel(part("acme-two", "two/m.gguf", tiny_bytes)), tiny_bytes),
        file(
            wheel(part("acme-two", "two/k.txt", keys)), keys, key="keys", name="k.txt", kind="text"
        ),
    )
    seen: list[PullProgress] = []
    store.pull("one", progress=seen.append)
    assert store.path("one", "keys").read_bytes() == keys
    assert {p.file for p in seen if p.phase is Phase.DOWNLOAD} == {"m.gguf"}


def chunks(wheels: Path, content: bytes, n: int = 3) -> dict[str, Any]:
    size = len(content) // n + 1
    parts: list[dict[str, Any]] = []
    for i in range(n):
        piece = content[i * size : (i + 1) * size]
        write_wheel(wheels, f"acme-part{i}", {f"acme_part{i}/c": piece})
        parts.append(part(f"acme-part{i}", f"acme_part{i}/c", piece))
    return wheel(*parts)


def test_chunks_of_several_wheels_are_joined(
    wheels: Path, tmp_path: Path, tiny_bytes: bytes
) -> None:
    store = a_store(tmp_path, file(chunks(wheels, tiny_bytes), tiny_bytes))
    store.pull("one")
    assert store.path("one").read_bytes() == tiny_bytes


@pytest.mark.parametrize("extra", [0, 1, 70_000])
def test_chunks_that_are_there_are_not_fetched_again(
    wheels: Path, tmp_path: Path, tiny_bytes: bytes, extra: int
) -> None:
    source = chunks(wheels, tiny_bytes)
    store = a_store(tmp_path, file(source, tiny_bytes))
    folder = tmp_path / "store" / "one"
    folder.mkdir(parents=True)
    done = source["parts"][0]["size_bytes"] + extra
    (folder / f"m.gguf.{sha256(tiny_bytes)[:16]}.partial").write_bytes(tiny_bytes[:done])
    (wheels / "acme_part0-1.0-py3-none-any.whl").unlink()
    assert store.pull("one").is_ready
    assert store.path("one").read_bytes() == tiny_bytes


def test_leftovers_of_a_dead_process_are_swept(
    wheels: Path, tmp_path: Path, tiny_bytes: bytes
) -> None:
    write_wheel(wheels, "acme-tiny", {"acme_tiny/m.gguf": tiny_bytes})
    stale = tmp_path / "store" / "one" / ".wheels-dead" / "acme-tiny"
    stale.mkdir(parents=True)
    (stale / "acme_tiny-1.0-py3-none-any.whl").write_bytes(b"half a wheel")
    source = wheel(part("acme-tiny", "acme_tiny/m.gguf", tiny_bytes))
    store = a_store(tmp_path, file(source, tiny_bytes))
    assert store.pull("one").is_ready
    assert names(tmp_path) == ["m.gguf", "receipt.json"]


def test_no_such_package(wheels: Path, tmp_path: Path, tiny_bytes: bytes) -> None:
    source = wheel(part("acme-none", "a/m.gguf", tiny_bytes))
    with pytest.raises(DownloadError, match=r"pip could not fetch acme-none==1\.0: ERROR"):
        a_store(tmp_path, file(source, tiny_bytes)).pull("one")
    assert names(tmp_path) == []


def test_source_distributions_are_not_run(wheels: Path, tmp_path: Path, tiny_bytes: bytes) -> None:
    import io
    import tarfile

    data = b"raise SystemExit('this must not run')"
    with tarfile.open(wheels / "acme-sdist-1.0.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("acme-sdist-1.0/setup.py")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    source = wheel(part("acme-sdist", "a/m.gguf", tiny_bytes))
    with pytest.raises(DownloadError, match="could not fetch") as caught:
        a_store(tmp_path, file(source, tiny_bytes)).pull("one")
    assert "must not run" not in caught.value.message


@pytest.mark.parametrize(
    ("members", "match"),
    [({"a/other": b"x"}, "holds no file"), ({"a/m.gguf": b"short"}, "has 5 bytes where")],
)
def test_wheel_with_other_content(
    wheels: Path, tmp_path: Path, tiny_bytes: bytes, members: dict[str, bytes], match: str
) -> None:
    write_wheel(wheels, "acme-tiny", members)
    source = wheel(part("acme-tiny", "a/m.gguf", tiny_bytes))
    with pytest.raises(DownloadError, match=match):
        a_store(tmp_path, file(source, tiny_bytes)).pull("one")


def test_wheel_with_changed_bytes(wheels: Path, tmp_path: Path, tiny_bytes: bytes) -> None:
    changed = tiny_bytes[:-1] + b"\x01"
    write_wheel(wheels, "acme-tiny", {"a/m.gguf": changed})
    source = wheel(part("acme-tiny", "a/m.gguf", tiny_bytes))
    with pytest.raises(ChecksumMismatch):
        a_store(tmp_path, file(source, tiny_bytes)).pull("one")
    assert names(tmp_path) == []


def test_damaged_wheel(wheels: Path, tmp_path: Path, tiny_bytes: bytes) -> None:
    path = write_wheel(wheels, "acme-tiny", {"a/m.gguf": tiny_bytes})
    content = bytearray(path.read_bytes())
    content[2000:2100] = bytes(100)
    path.write_bytes(bytes(content))
    source = wheel(part("acme-tiny", "a/m.gguf", tiny_bytes))
    with pytest.raises(DownloadError, match="is damaged"):
        a_store(tmp_path, file(source, tiny_bytes)).pull("one")


def test_environment_without_pip(
    tmp_path: Path, tiny_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    source = wheel(part("acme-tiny", "a/m.gguf", tiny_bytes))
    with pytest.raises(MissingDependency, match="pip is needed"):
        a_store(tmp_path, file(source, tiny_bytes)).pull("one")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_bytes: bytes) -> Path:
    """A package with the model inside, on the import path."""
    site = tmp_path / "site"
    info = site / "acme_installed-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-installed\nVersion: 2.0\n")
    model = site / "acme_installed" / "m.gguf"
    model.parent.mkdir()
    model.write_bytes(tiny_bytes)
    monkeypatch.syspath_prepend(str(site))
    assert importlib.metadata.version("acme-installed") == "2.0"
    return model


def test_file_of_an_installed_package_is_used_where_it_is(
    installed: Path, wheels: Path, tmp_path: Path, tiny_bytes: bytes
) -> None:
    source = wheel(part("acme-installed", "acme_installed/m.gguf", tiny_bytes), installed=True)
    store = a_store(tmp_path, file(source, tiny_bytes))
    assert store.status("one").state is FileState.INSTALLED
    assert store.pull("one").is_ready
    assert store.path("one") == installed
    assert store.verify("one").is_ok


def test_installed_file_with_other_content_is_not_used(
    installed: Path, wheels: Path, tmp_path: Path, tiny_bytes: bytes
) -> None:
    installed.write_bytes(tiny_bytes[:-1] + b"\x01")
    write_wheel(wheels, "acme-installed", {"acme_installed/m.gguf": tiny_bytes})
    source = wheel(part("acme-installed", "acme_installed/m.gguf", tiny_bytes), installed=True)
    store = a_store(tmp_path, file(source, tiny_bytes))
    assert store.status("one").state is FileState.MISSING
    assert store.pull("one").is_ready
    assert store.path("one") == tmp_path / "store" / "one" / "m.gguf"
