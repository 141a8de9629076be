"""One door for every document: whatever comes in, upright 8-bit RGB pages come out."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

import numpy as np

from edge_runtime import trace
from edge_runtime.errors import UsageError
from edge_runtime.ocr.array_loading import load_array
from edge_runtime.ocr.image_loading import load_heif_pages, load_image_pages, load_pillow_image
from edge_runtime.ocr.load_options import (
    DEFAULT_OPTIONS,
    STAGE,
    LoadOptions,
    PageSelection,
    no_such_pages,
)
from edge_runtime.ocr.page_image import PageImage
from edge_runtime.ocr.pixel_modes import AnyArray
from edge_runtime.ocr.sources import (
    HEAD_BYTES,
    STDIN,
    SourceKind,
    check_bytes,
    expand_inputs,
    expand_user,
    open_file,
    read_stdin,
    sniff,
)

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["LoadOptions", "PageSelection", "Source", "expand_inputs", "load_pages"]

Source: TypeAlias = "str | Path | bytes | bytearray | memoryview | Image.Image | AnyArray"


def load_pages(source: Source, options: LoadOptions = DEFAULT_OPTIONS) -> Iterator[PageImage]:
    """Open a document and yield its pages one at a time; only one is held in memory.

    Args:
        source: A path (`-` reads standard input), the bytes of a file, a Pillow image (its
            current frame) or an array as in `array_loading.load_array`.
        options: Bounds, password, resolution and page selection.

    Yields:
        Pages with EXIF orientation applied, transparent parts on a contrasting ground and
        everything noteworthy in `info.notes`. `info.index` is the number of the page in the
        document, also when only some are selected.

    Raises:
        UnreadableInput: missing, empty, truncated, damaged, not a document, or without pages.
        PasswordRequired: a locked PDF without the right password.
        InputTooLarge: beyond the bounds of `options`.
        MissingDependency: a HEIC file without the `heic` extra.
        UsageError: a source of another type, or a page selection that matches nothing.
    """
    if isinstance(source, np.ndarray):
        _check_single(options)
        with trace.current().span("ocr.load"):
            page = load_array(source, options)
        yield page
    elif isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
        check_bytes(data, options)
        yield from _load_stream(io.BytesIO(data), options, "The data")
    elif source == STDIN:
        yield from _load_stream(io.BytesIO(read_stdin(options)), options, "Standard input")
    elif isinstance(source, (str, Path)):
        path = expand_user(str(source))
        with open_file(path, options) as file:
            yield from _load_stream(file, options, str(path))
    else:
        yield _load_image_object(source, options)


def _load_image_object(source: object, options: LoadOptions) -> PageImage:
    from PIL import Image

    if not isinstance(source, Image.Image):
        raise UsageError(
            f"A {type(source).__name__} is not a document.",
            hint="pass a path, bytes, a Pillow image or a numpy array",
            stage=STAGE,
        )
    _check_single(options)
    return load_pillow_image(source, options)


def _check_single(options: LoadOptions) -> None:
    if not options.wants(0):
        raise no_such_pages(options.pages, 1)


def _load_stream(file: IO[bytes], options: LoadOptions, name: str) -> Iterator[PageImage]:
    head = file.read(HEAD_BYTES)
    file.seek(0)
    match sniff(head, name):
        case SourceKind.PDF:
            from edge_runtime.ocr.pdf_loading import load_pdf_pages

            return load_pdf_pages(file, options, name=name)
        case SourceKind.HEIF:
            return load_heif_pages(file, options, name=name)
        case SourceKind.IMAGE:
            return load_image_pages(file, options, name=name)
