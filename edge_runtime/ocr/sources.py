"""Where documents come from: files, folders, patterns, standard input; and what they are."""

from __future__ import annotations

import glob
import io
import os
import re
import selectors
import stat
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import IO

from edge_runtime.errors import InputTooLarge, UnreadableInput, UsageError
from edge_runtime.ocr.load_options import STAGE, LoadOptions

STDIN = "-"
# fmt: off
EXTENSIONS = frozenset({
    ".pdf", ".png", ".apng", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".tif", ".tiff", ".bmp",
    ".dib", ".gif", ".jp2", ".j2k", ".avif", ".ppm", ".pgm", ".pbm", ".pnm", ".heic", ".heif",
    ".hif",
})
# fmt: on
HEAD_BYTES = 2048
PIPE_WAIT_S = 10.0

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_HEIF_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"}
_GENERIC_BRANDS = {b"mif1", b"msf1", b"mif2", b"miaf"}


class SourceKind(StrEnum):
    """Which loader a file needs."""

    PDF = "pdf"
    HEIF = "heif"
    IMAGE = "image"


def expand_inputs(patterns: Iterable[str | Path]) -> list[str | Path]:
    """Files named by paths, folders (searched to any depth), glob patterns and `-`.

    Folders and patterns give documents by extension, in natural order (page2 before page10);
    hidden files are left out. A file that is named itself is always kept, also when it is
    missing, so that in a batch it fails on its own. Every file appears once.

    Raises:
        UsageError: a folder or pattern without documents, an address, or nothing at all.
    """
    found: list[str | Path] = []
    for pattern in patterns:
        text = str(pattern)
        if text == STDIN:
            found.append(STDIN)
            continue
        if _URL.match(text):
            raise UsageError(
                f"{text} is an address; only local files are read.",
                hint="download it first, or pipe it: curl ADDRESS | edge-run ocr -",
                stage=STAGE,
            )
        if not text:
            raise UsageError(
                "An input has an empty name.",
                hint="check the variable it comes from; . names this folder",
                stage=STAGE,
            )
        path = expand_user(text)
        mode = _mode(path)
        if stat.S_ISDIR(mode):
            found += _documents_in(path)
        elif mode or not glob.has_magic(text):
            found.append(path)
        else:
            found += _matching(str(path))
    if not found:
        raise UsageError("No input was named.", hint="name a file, a folder or -", stage=STAGE)
    return list(dict.fromkeys(found))


def expand_user(text: str) -> Path:
    """The path with `~` replaced, or as it is where that user or home is not known."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def _mode(path: Path) -> int:
    """Kind and permissions of a file, 0 when they cannot be found out."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def _documents_in(folder: Path) -> list[Path]:
    documents = [
        path
        for path in folder.rglob("*")
        if _is_document(path) and not _is_hidden(path.relative_to(folder))
    ]
    if not documents:
        raise UsageError(
            f"The folder {folder} holds no documents.",
            hint="known endings: " + " ".join(sorted(EXTENSIONS)),
            stage=STAGE,
        )
    return sorted(documents, key=_natural_key)


def _matching(pattern: str) -> list[Path]:
    matches = [Path(match) for match in glob.glob(pattern, recursive=True)]  # noqa: PTH207
    documents = [path for path in matches if path.is_file()]
    if not documents:
        raise UsageError(
            f"Nothing matches {pattern}.",
            hint="quote the pattern as it is, or name the files",
            stage=STAGE,
        )
    return sorted(documents, key=_natural_key)


def _is_document(path: Path) -> bool:
    return path.suffix.lower() in EXTENSIONS and path.is_file()


def _is_hidden(relative: Path) -> bool:
    return any(part.startswith(".") for part in relative.parts)


def _natural_key(path: Path) -> list[tuple[int, int, str]]:
    pieces = re.split(r"(\d+)", str(path).lower())
    return [(1, int(p), "") if p.isdecimal() and p.isascii() else (0, 0, p) for p in pieces]


def open_file(path: Path, options: LoadOptions) -> IO[bytes]:
    """Open a file for reading; the caller closes it.

    Raises:
        UnreadableInput: it is missing, a folder, empty, or may not be read; or a pipe that
            nobody writes to.
        InputTooLarge: it is larger than `options.max_input_mb`.
    """
    try:
        mode = _mode(path)
        if stat.S_ISDIR(mode):
            raise UnreadableInput(
                f"{path} is a folder.",
                hint="name its files; on the command line a folder may be named",
                stage=STAGE,
            )
        file = _open_pipe(path) if stat.S_ISFIFO(mode) else path.open("rb")
        n_bytes = _measure(file)
    except FileNotFoundError as err:
        raise UnreadableInput(
            f"{path} does not exist.", hint="check the spelling of the path", stage=STAGE
        ) from err
    except (OSError, ValueError) as err:
        reason = (err.strerror if isinstance(err, OSError) else None) or str(err)
        raise UnreadableInput(
            f"{path} cannot be opened: {reason}.", hint="check its permissions", stage=STAGE
        ) from err
    if n_bytes is None:
        # a pipe or device: take it in whole, within the limit
        with file:
            return io.BytesIO(read_stream(file, options, name=str(path)))
    file.seek(0)
    try:
        _check_length(n_bytes, options, str(path))
    except (UnreadableInput, InputTooLarge):
        file.close()
        raise
    return file


def _measure(file: IO[bytes]) -> int | None:
    """Length in bytes, None of what can only be read once; closes the file when it fails."""
    try:
        return file.seek(0, io.SEEK_END) if file.seekable() else None
    except OSError:
        file.close()
        raise


def _open_pipe(path: Path) -> IO[bytes]:
    """Open a named pipe without waiting for ever for somebody to write to it.

    Raises:
        UnreadableInput: nothing arrives within `PIPE_WAIT_S`.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    with selectors.DefaultSelector() as selector:
        selector.register(file, selectors.EVENT_READ)
        if selector.select(PIPE_WAIT_S):
            os.set_blocking(file.fileno(), True)
            return file
    file.close()
    raise UnreadableInput(
        f"Nothing was written to the pipe {path} for {PIPE_WAIT_S:.0f} seconds.",
        hint="start the program that writes to it first",
        stage=STAGE,
    )


def read_stdin(options: LoadOptions) -> bytes:
    """All of standard input.

    Raises:
        UnreadableInput: nothing arrives, or it is a terminal.
        InputTooLarge: more than `options.max_input_mb` arrives.
    """
    if _stdin_is_closed():
        raise UnreadableInput("Standard input is closed.", hint="pipe a file into it", stage=STAGE)
    if sys.stdin.isatty():
        raise UsageError(
            "Standard input is a terminal, not a document.",
            hint="pipe a file into it: edge-run ocr - < receipt.png",
            stage=STAGE,
        )
    return read_stream(sys.stdin.buffer, options, name="Standard input")


def _stdin_is_closed() -> bool:
    """Python has no such stream at all when the process was started without one."""
    stream: object = sys.stdin
    return stream is None


def read_stream(stream: IO[bytes], options: LoadOptions, *, name: str) -> bytes:
    """Everything in a stream up to the limit of `options`.

    Raises:
        UnreadableInput: it is empty or breaks off.
        InputTooLarge: it is longer than `options.max_input_mb`.
    """
    limit = int(options.max_input_mb * 1e6)
    try:
        data = stream.read(limit + 1)
    except (OSError, ValueError) as err:
        raise UnreadableInput(f"{name} cannot be read: {err}.", stage=STAGE) from err
    _check_length(len(data), options, name)
    return data


def check_bytes(data: bytes, options: LoadOptions) -> None:
    """Refuse empty or oversized data.

    Raises:
        UnreadableInput: no bytes.
        InputTooLarge: more than `options.max_input_mb`.
    """
    _check_length(len(data), options, "The data")


def _check_length(n_bytes: int, options: LoadOptions, name: str) -> None:
    if n_bytes == 0:
        raise UnreadableInput(f"{name} is empty.", hint="fetch or save it again", stage=STAGE)
    if n_bytes > options.max_input_mb * 1e6:
        raise InputTooLarge(
            f"{name} is larger than {options.max_input_mb:.0f} MB.",
            hint="split it, or raise max_input_mb",
            stage=STAGE,
        )


def sniff(head: bytes, name: str) -> SourceKind:
    """What kind of document begins with these bytes (the name's ending is not believed).

    Raises:
        UnreadableInput: it is recognisably something else.
    """
    if b"%PDF-" in head[:1024]:
        return SourceKind.PDF
    if head[4:8] == b"ftyp":
        major = head[8:12]
        n_box = min(int.from_bytes(head[:4], "big"), len(head))
        compatible = {head[i : i + 4] for i in range(16, n_box, 4)}
        is_avif = b"avif" in compatible or major in {b"avif", b"avis"}
        if major in _HEIF_BRANDS or (major in _GENERIC_BRANDS and not is_avif):
            return SourceKind.HEIF
    foreign = _foreign(head)
    if foreign is not None:
        what, hint = foreign
        raise UnreadableInput(f"{name} is {what}.", hint=hint, stage=STAGE)
    return SourceKind.IMAGE


def _foreign(head: bytes) -> tuple[str, str] | None:
    """Things often handed over by mistake, and what to do instead."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:64].lower()
    if start.startswith(b"version https://git-lfs"):
        return "a Git-LFS pointer, not the file itself", "run: git lfs pull"
    if start.startswith((b"<!doctype html", b"<html")):
        return "a web page, perhaps a failed download", "fetch the document itself"
    if start.startswith(b"<svg") or b"<svg" in head[:512]:
        return "a vector drawing (SVG)", "convert it to PDF or PNG"
    if head.startswith(b"PK\x03\x04"):
        return "an archive or office document", "unpack it, or print it to PDF"
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        return "an old office document", "print it to PDF"
    if head.startswith((b"%!PS", b"{\\rtf")):
        return "a PostScript or RTF document", "convert it to PDF"
    if not head.strip(b"\0"):
        return "nothing but zero bytes, perhaps an unfinished download", "fetch it again"
    return None
