from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from edge_runtime.cli.output.files import ResultFile, write_atomically
from edge_runtime.errors import ResourceError, UsageError


def record(source: str, status: str = "ok") -> str:
    return json.dumps({"source": source, "status": status}) + "\n"


def growing(path: Path, *, resume: bool = False) -> ResultFile:
    return ResultFile(path, header="", separator="", resume=resume)


def test_atomic_write_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "new" / "out.json"
    write_atomically(target, "one")
    write_atomically(target, b"two")
    assert target.read_bytes() == b"two"
    assert [path.name for path in target.parent.iterdir()] == ["out.json"]


def test_failed_atomic_write_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")

    def no_room(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(ResourceError, match="No space left"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_unwritable_place_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be written"):
        write_atomically(tmp_path / "file" / "out.json", "x")


def test_file_names_that_are_not_unicode_survive_json(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.png")
    write_atomically(tmp_path / "out.json", json.dumps({"source": name}, ensure_ascii=False))
    assert json.loads((tmp_path / "out.json").read_text("utf-8"))["source"] == name


def test_results_are_on_disk_at_once(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with growing(path) as file:
        file.add(record("a"))
        assert path.read_text() == record("a")


def test_header_comes_once_and_separator_between(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with ResultFile(path, header="h\n", separator="--\n", resume=False) as file:
        file.add("a\n")
        file.add("b\n")
    assert path.read_text() == "h\na\n--\nb\n"


def test_existing_results_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(record("a"))
    with pytest.raises(UsageError, match="already") as caught:
        growing(path)
    assert "--resume" in (caught.value.hint or "")
    assert path.read_text() == record("a")


def test_resume_knows_what_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(record("a") + "\n" + record("b", "failed"))
    with growing(path, resume=True) as file:
        assert file.finished == {"a": "ok", "b": "failed"}
        file.add(record("c"))
    assert path.read_text() == record("a") + "\n" + record("b", "failed") + record("c")


@pytest.mark.parametrize("n_bytes", range(1, len(record("b")) - 1))
def test_torn_last_line_is_cut_off(tmp_path: Path, n_bytes: int) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(record("a") + record("b")[:n_bytes])
    with growing(path, resume=True) as file:
        assert file.finished == {"a": "ok"}
        file.add(record("b"))
    assert path.read_text() == record("a") + record("b")


def test_torn_in_the_middle_of_a_character_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(record("a").encode() + '{"source":"ü'.encode()[:-1])
    with growing(path, resume=True) as file:
        assert file.finished == {"a": "ok"}
    assert path.read_text() == record("a")


def test_whole_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(record("a") + record("b").rstrip("\n"))
    with growing(path, resume=True) as file:
        assert set(file.finished) == {"a", "b"}
        file.add(record("c"))
    assert path.read_text() == record("a") + record("b") + record("c")


@pytest.mark.parametrize("foreign", ["not json\n", "[1]\n", '{"a": 1}\n'])
def test_foreign_file_is_left_alone(tmp_path: Path, foreign: str) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text(foreign + record("a"))
    with pytest.raises(UsageError, match="Line 1"):
        growing(path, resume=True)
    assert path.read_text() == foreign + record("a")


def test_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with growing(path), pytest.raises(UsageError, match="Another process"):
        growing(path, resume=True)
    with growing(path, resume=True) as file:
        assert file.finished == {}


def test_resume_of_a_missing_file_begins_it(tmp_path: Path) -> None:
    with growing(tmp_path / "deep" / "out.jsonl", resume=True) as file:
        file.add(record("a"))
    assert (tmp_path / "deep" / "out.jsonl").read_text() == record("a")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    real.write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to(real)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert {p.name for p in tmp_path.iterdir()} == {"real.json", "link.json"}
