"""What the inputs are called, in records and in names of files made from them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edge_runtime.errors import UsageError

STDIN = "-"


@dataclass(frozen=True, slots=True)
class OcrInput:
    """One document to read: `label` names it in output."""

    label: str
    source: Path | bytes


def is_batch(patterns: Sequence[str]) -> bool:
    """Whether the arguments may stand for several documents, however many they turn out to be."""
    if len(patterns) != 1:
        return True
    only = patterns[0]
    if only == STDIN:
        return False
    try:
        path = Path(only).expanduser()
        if path.exists():
            return path.is_dir()
    except (OSError, RuntimeError):
        return False  # a name that the system refuses stands for itself, and fails as one input
    return any(sign in only for sign in "*?[")


def collect(patterns: Sequence[str]) -> list[OcrInput]:
    """The documents that files, folders, globs and `-` stand for; each only once.

    Raises:
        UsageError: a folder or pattern without documents, or standard input is a terminal.
        InputError: standard input is empty or too long.
    """
    from edge_runtime.ocr.load_options import DEFAULT_OPTIONS
    from edge_runtime.ocr.sources import expand_inputs, read_stdin

    found: dict[str, OcrInput] = {}
    for item in expand_inputs(list(patterns)):
        label = str(item)
        if label in found:
            continue
        source = read_stdin(DEFAULT_OPTIONS) if label == STDIN else Path(item)
        found[label] = OcrInput(label, source)
    return list(found.values())


def check_distinct(documents: Sequence[OcrInput], places: Mapping[str, Path | None]) -> None:
    """Refuse to write one file twice, or over a document.

    Raises:
        UsageError: names the option.
    """
    taken = {
        _identity(document.source): f"the document {document.label}"
        for document in documents
        if isinstance(document.source, Path)
    }
    for option, path in places.items():
        if path is None or (path.exists() and not path.is_file()):
            continue  # a folder or a device takes more than one thing
        other = taken.setdefault(_identity(path), option)
        if other != option:
            raise UsageError(
                f"{option} {path} would overwrite {other}.", hint=f"another place for {option}"
            )


def _identity(path: Path) -> str:
    return os.path.realpath(path)


def file_names(labels: Sequence[str]) -> Mapping[str, str]:
    """A file name for each label: its own last part, or the whole path where that is not unique."""
    short = {label: "stdin" if label == STDIN else Path(label).name for label in labels}
    counts = Counter(short.values())
    return {
        label: name if counts[name] == 1 else _flat(Path(label)) for label, name in short.items()
    }


def _flat(path: Path) -> str:
    parts = [part for part in path.parts if part not in {path.anchor, ".", ".."}]
    return "__".join(parts)
