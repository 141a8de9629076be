"""The output formats by name, and which one is meant."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from edge_runtime.cli.output import csv_rows, markdown, plain_text, result_json
from edge_runtime.errors import UsageError
from edge_runtime.values import RunResult

FORMAT_NAMES = ("table", "json", "jsonl", "csv", "csv-wide", "markdown", "text")
_BY_SUFFIX = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
}


@dataclass(frozen=True, slots=True)
class Format:
    """How results become text.

    `render` makes one result's text, ended by a newline unless it is empty; `header` comes once
    before all results; `separator` stands between two results of one file.
    """

    name: str
    suffix: str
    render: Callable[[RunResult], str]
    header: str = ""
    separator: str = ""


def choose_name(*, given: str | None, as_json: bool, output: Path | None, is_batch: bool) -> str:
    """The name of the format: what was asked for, else what the output file's name says.

    `--json` means one object for one document, and JSON Lines for several.

    Raises:
        UsageError: `--json` and another format.
    """
    if as_json and given not in {None, "json", "jsonl"}:
        raise UsageError(
            f"--json and --format {given} contradict each other.", hint="give one of them"
        )
    to_folder = output is not None and is_folder(output)
    by_suffix = None if output is None or to_folder else _BY_SUFFIX.get(output.suffix.lower())
    if given is not None:
        name = given
    elif as_json:
        name = "jsonl" if by_suffix == "jsonl" else "json"
    else:
        name = by_suffix or ("table" if output is None else "json")
    return "jsonl" if name == "json" and is_batch and not to_folder else name


def is_folder(output: Path) -> bool:
    """Whether `-o` names a folder: it exists as one, or has no file ending."""
    return output.is_dir() or (not output.exists() and not output.suffix)


def make_format(
    name: str, *, text_only: bool, wide_paths: Sequence[str] | None, terminal: bool
) -> Format:
    """The format `name`.

    Args:
        name: One of `FORMAT_NAMES`.
        text_only: No fields are extracted.
        wide_paths: Columns of `csv-wide`; None when the schema does not fix them.
        terminal: Whether people see the output directly, in colour.

    Raises:
        UsageError: `csv-wide` without a schema that fixes its columns.
    """
    if name == "csv-wide":
        if text_only or wide_paths is None:
            raise UsageError(
                "csv-wide needs a schema that fixes the fields.",
                hint="--format csv, or --schema with a file or a preset such as receipt",
            )
        header = csv_rows.header(csv_rows.wide_columns(wide_paths))
        return Format(name, ".csv", partial(csv_rows.render_wide, paths=wide_paths), header)
    if name == "csv" and text_only:
        header = csv_rows.header(csv_rows.LINE_COLUMNS)
        return Format(name, ".csv", csv_rows.render_lines, header)
    if name == "table" and terminal:
        return Format(name, ".txt", _render_in_terminal, separator="\n")
    return {
        "csv": Format(
            name, ".csv", csv_rows.render_fields, csv_rows.header(csv_rows.FIELD_COLUMNS)
        ),
        "json": Format(name, ".json", result_json.render_object),
        "jsonl": Format(name, ".jsonl", result_json.render_line),
        "markdown": Format(name, ".md", markdown.render_markdown),
        "table": Format(name, ".txt", plain_text.render_plain, separator="\n"),
        "text": Format(name, ".txt", plain_text.render_text, separator="\f"),
    }[name]


def _render_in_terminal(result: RunResult) -> str:
    import os
    import shutil

    from edge_runtime.cli.output.table import render_table

    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size().columns
    return render_table(result, width=width, colour=colour)


def stdout_is_terminal() -> bool:
    """Whether people look at standard output directly."""
    return sys.stdout.isatty()
