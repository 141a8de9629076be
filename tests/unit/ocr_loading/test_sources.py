"""Files, folders, patterns and standard input."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from edge_runtime.errors import MissingDependency, UnreadableInput, UsageError
from edge_runtime.ocr import sources
from edge_runtime.ocr.loading import load_pages
from edge_runtime.ocr.sources import SourceKind, expand_inputs, sniff
from tests.unit.ocr_loading.drawing import encoded, page

PNG = encoded(page(), "PNG")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("scan10.png", "scan2.PNG", "notes.txt", "sub/a.pdf", ".hidden.png", ".git/x.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(PNG)
    return tmp_path


def names(found: list[str | Path], root: Path) -> list[str]:
    return [p if isinstance(p, str) else p.relative_to(root).as_posix() for p in found]


def test_folders_give_documents_in_natural_order(folder: Path) -> None:
    assert names(expand_inputs([folder]), folder) == ["scan2.PNG", "scan10.png", "sub/a.pdf"]


def test_patterns_and_duplicates(folder: Path) -> None:
    pattern = str(folder / "scan*")
    found = expand_inputs([pattern, folder / "scan10.png", "-", "-"])
    assert names(found, folder) == ["scan2.PNG", "scan10.png", "-"]
    assert names(expand_inputs([str(folder / "**" / "*.pdf")]), folder) == ["sub/a.pdf"]


def test_named_files_are_kept_even_when_missing_or_of_another_ending(folder: Path) -> None:
    found = expand_inputs([folder / "none.png", folder / "notes.txt"])
    assert names(found, folder) == ["none.png", "notes.txt"]


def test_a_name_with_pattern_characters_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "receipt [1].png"
    path.write_bytes(PNG)
    assert expand_inputs([path]) == [path]


@pytest.mark.parametrize("pattern", ["*.nothing", "https://example.org/a.png"])
def test_nothing_found_is_said(pattern: str) -> None:
    with pytest.raises(UsageError) as caught:
        expand_inputs([pattern])
    assert caught.value.hint


def test_empty_folder_and_no_input(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no documents"):
        expand_inputs([tmp_path])
    with pytest.raises(UsageError, match="No input"):
        expand_inputs([])


class FakeStdin:
    def __init__(self, data: bytes, *, terminal: bool = False) -> None:
        self.buffer = io.BytesIO(data)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", FakeStdin(PNG))
    (loaded,) = load_pages("-")
    assert loaded.pixels.shape == (60, 90, 3)


def test_standard_input_without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", FakeStdin(b""))
    with pytest.raises(UnreadableInput, match="Standard input is empty"):
        list(load_pages("-"))
    monkeypatch.setattr(sys, "stdin", FakeStdin(b"", terminal=True))
    with pytest.raises(UsageError, match="terminal"):
        list(load_pages("-"))


def test_named_pipes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(PNG,))
    writer.start()
    (loaded,) = load_pages(pipe)
    writer.join()
    assert loaded.pixels.shape == (60, 90, 3)


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_bytes_of_every_kind(make: type) -> None:
    (loaded,) = load_pages(make(PNG))
    assert loaded.pixels.shape == (60, 90, 3)


def test_the_content_counts_not_the_ending(tmp_path: Path) -> None:
    path = tmp_path / "photo.pdf"
    path.write_bytes(PNG)
    assert len(list(load_pages(str(path)))) == 1


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", SourceKind.HEIF),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", SourceKind.HEIF),
        (b"\0\0\0\x18ftypavif\0\0\0\0mif1avif", SourceKind.IMAGE),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1avif", SourceKind.IMAGE),
        (b"junk before\n%PDF-1.7", SourceKind.PDF),
        (PNG, SourceKind.IMAGE),
    ],
)
def test_sniffing(head: bytes, kind: SourceKind) -> None:
    assert sniff(head, "x") is kind


def test_heic_without_the_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(MissingDependency) as caught:
        list(load_pages(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(64)))
    assert caught.value.hint == "pip install pillow-heif"


def test_heic_with_the_extra() -> None:
    heif = pytest.importorskip("pillow_heif", reason="needs the heic extra")
    buffer = io.BytesIO()
    heif.from_pillow(page(128, 96)).save(buffer, quality=95)
    (loaded,) = load_pages(buffer.getvalue())
    assert loaded.pixels.shape == (96, 128, 3)
    assert loaded.pixels[8, 20, 0] > 150 > loaded.pixels[8, 20, 1]
    with pytest.raises(UnreadableInput):
        list(load_pages(buffer.getvalue()[:300]))


def test_an_empty_name_is_not_the_current_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(UsageError, match="empty name"):
        expand_inputs([""])


@pytest.mark.parametrize("name", ["/" + "a" * 5000, "~no-such-user-here/a.png"])
def test_a_name_that_the_system_refuses_fails_as_one_input(name: str) -> None:
    (found,) = expand_inputs([name])
    with pytest.raises(UnreadableInput) as caught:
        list(load_pages(found))
    assert caught.value.hint


def test_a_pipe_that_nobody_writes_to_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PIPE_WAIT_S", 0.05)
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)
    with pytest.raises(UnreadableInput, match="Nothing was written"):
        list(load_pages(pipe))


def test_a_file_that_cannot_be_measured_is_unreadable() -> None:
    unmeasurable = Path("/proc/self/mem")
    if not unmeasurable.exists():
        pytest.skip("needs /proc")
    with pytest.raises(UnreadableInput, match="cannot be opened"):
        list(load_pages(unmeasurable))


def test_closed_standard_input_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UnreadableInput, match="closed"):
        list(load_pages("-"))
