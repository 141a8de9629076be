"""Where results go: standard output, one file, one growing file, or a file per input."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from edge_runtime.cli.output.files import ResultFile, write_atomically
from edge_runtime.cli.output.formats import Format
from edge_runtime.values import RunResult


class Sink(Protocol):
    """Takes results one by one; each is safe when `put` returns."""

    finished: Mapping[str, str]
    """Status of the sources that have a result from an earlier run."""

    def put(self, label: str, result: RunResult) -> None:
        """Write one result."""
        ...

    def close(self) -> None:
        """End the output."""
        ...


class StdoutSink:
    """Writes to standard output at once."""

    finished: Mapping[str, str]

    def __init__(self, form: Format) -> None:
        self._form = form
        self._before = form.header
        self.finished = {}

    def put(self, label: str, result: RunResult) -> None:
        """Write and flush one result."""
        del label
        sys.stdout.write(self._before + self._form.render(result))
        sys.stdout.flush()
        self._before = self._form.separator

    def close(self) -> None:
        """Write the header at least."""
        if self._before == self._form.header:
            sys.stdout.write(self._before)


class OneFileSink:
    """Makes one file of one result, whole or not at all."""

    finished: Mapping[str, str]

    def __init__(self, form: Format, path: Path) -> None:
        self._form = form
        self._path = path
        self.finished = {}

    def put(self, label: str, result: RunResult) -> None:
        """Write the file."""
        del label
        write_atomically(self._path, self._form.header + self._form.render(result))

    def close(self) -> None:
        """Nothing is open."""


class GrowingFileSink:
    """Adds every result to one file, each on disk before the next document starts."""

    finished: Mapping[str, str]

    def __init__(self, form: Format, path: Path, *, resume: bool) -> None:
        self._form = form
        self._file = ResultFile(path, header=form.header, separator=form.separator, resume=resume)
        self.finished = self._file.finished

    def put(self, label: str, result: RunResult) -> None:
        """Append one result."""
        del label
        self._file.add(self._form.render(result))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class FolderSink:
    """Writes a file per input, each whole or not at all."""

    finished: Mapping[str, str]

    def __init__(
        self, form: Format, folder: Path, names: Mapping[str, str], *, resume: bool
    ) -> None:
        self._form = form
        self._paths = {label: folder / (name + form.suffix) for label, name in names.items()}
        self.finished = {
            label: "there" for label, path in self._paths.items() if resume and path.is_file()
        }

    def put(self, label: str, result: RunResult) -> None:
        """Write the input's file."""
        write_atomically(self._paths[label], self._form.header + self._form.render(result))

    def close(self) -> None:
        """Nothing is open."""
