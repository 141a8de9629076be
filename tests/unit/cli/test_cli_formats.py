from __future__ import annotations

from pathlib import Path

import pytest

from edge_runtime.cli.output.formats import FORMAT_NAMES, choose_name, make_format
from edge_runtime.errors import UsageError
from edge_runtime.values import RunResult


def chosen(
    given: str | None = None, output: str | None = None, *, json: bool = False, batch: bool = False
) -> str:
    path = None if output is None else Path(output)
    return choose_name(given=given, as_json=json, output=path, is_batch=batch)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "table"),
        ({"batch": True}, "table"),
        ({"json": True}, "json"),
        ({"json": True, "batch": True}, "jsonl"),
        ({"given": "json", "batch": True}, "jsonl"),
        ({"given": "csv", "output": "x.json"}, "csv"),
        ({"output": "x.json"}, "json"),
        ({"output": "x.JSON", "batch": True}, "jsonl"),
        ({"output": "x.jsonl"}, "jsonl"),
        ({"output": "x.jsonl", "json": True}, "jsonl"),
        ({"output": "x.md"}, "markdown"),
        ({"output": "x.txt"}, "text"),
        ({"output": "x.csv", "batch": True}, "csv"),
        ({"output": "x.dat"}, "json"),
        ({"output": "folder", "batch": True}, "json"),
        ({"output": "folder", "json": True, "batch": True}, "json"),
        ({"output": "folder", "given": "text", "batch": True}, "text"),
    ],
)
def test_format_is_what_was_asked_for(
    arguments: dict[str, object], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert chosen(**arguments) == expected  # type: ignore[arg-type]


def test_json_and_another_format_contradict() -> None:
    with pytest.raises(UsageError, match="contradict"):
        chosen("csv", json=True)


def test_existing_folder_with_a_dot_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "results.d"
    folder.mkdir()
    assert chosen(output=str(folder), batch=True) == "json"


@pytest.mark.parametrize("name", FORMAT_NAMES)
@pytest.mark.parametrize("terminal", [False, True])
def test_every_format_renders(name: str, terminal: bool, result: RunResult) -> None:
    form = make_format(name, text_only=False, wide_paths=["total"], terminal=terminal)
    assert form.render(result).endswith("\n")
    assert form.suffix.startswith(".")


def test_wide_csv_needs_fixed_columns() -> None:
    with pytest.raises(UsageError, match="fixes the fields"):
        make_format("csv-wide", text_only=False, wide_paths=None, terminal=False)


def test_colour_can_be_switched_off(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    form = make_format("table", text_only=False, wide_paths=None, terminal=True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in form.render(result)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in form.render(result)
