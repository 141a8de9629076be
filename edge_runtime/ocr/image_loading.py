"""Pictures in files and streams: which of their frames are pages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

from edge_runtime import trace
from edge_runtime.errors import UnreadableInput
from edge_runtime.ocr.frame_decoding import decode_frame
from edge_runtime.ocr.load_options import STAGE, LoadOptions, no_such_pages
from edge_runtime.ocr.page_image import PageImage
from edge_runtime.ocr.pillow_adapter import open_image, pillow_errors
from edge_runtime.optional import require

if TYPE_CHECKING:
    from PIL import Image

# Formats whose frames are moments of an animation rather than pages.
_ANIMATED = {"GIF", "PNG", "WEBP", "AVIF"}
# A JPEG's further pictures (MPO) are depth maps, gain maps and previews of the first.
_ONE_PAGE = {"JPEG", "MPO", "BMP", "PPM", "JPEG2000"}
_NEW_SUBFILE_TYPE = 254
_NOT_A_PAGE = 0b101  # bit 0: a smaller copy of another page, bit 2: a transparency mask


def load_image_pages(file: IO[bytes], options: LoadOptions, *, name: str) -> Iterator[PageImage]:
    """Pages of a picture file, decoded one at a time.

    TIFF: every page, without thumbnails and masks. GIF, WebP, APNG and AVIF with several frames:
    every frame that differs from all before it, at most `options.max_animation_frames`; all
    else: one page.

    Raises:
        UnreadableInput: not a picture, damaged, truncated, or without pages.
        InputTooLarge: beyond the bounds of `options`.
        UsageError: `options.pages` matches nothing.
    """
    image = open_image(file, name)
    try:
        if image.format in _ONE_PAGE:
            frames = _single(image, options, name)
        else:
            with pillow_errors(name, doing="read"):
                n_frames = int(getattr(image, "n_frames", 1))
            if n_frames == 1:
                frames = _single(image, options, name)
            elif image.format in _ANIMATED:
                frames = _distinct_frames(image, n_frames, options, name)
            else:
                frames = _tiff_pages(image, n_frames, options, name)
        yield from frames
    finally:
        image.close()


def load_pillow_image(image: Image.Image, options: LoadOptions) -> PageImage:
    """The current frame of a caller's picture; EXIF orientation is applied, `image` is not closed.

    Raises:
        UnreadableInput: it was opened lazily and turns out to be damaged, or was closed.
        InputTooLarge: beyond the bounds of `options`.
    """
    if 0 in image.size:
        raise UnreadableInput(
            "The picture has no pixels.", hint="pass at least one pixel", stage=STAGE
        )
    with trace.current().span("ocr.load"):
        page = decode_frame(image, 0, options, name="The picture", may_draft=False)
        n_frames = 1 if image.format in _ONE_PAGE else int(getattr(image, "n_frames", 1))
    if n_frames > 1:
        return _with_note(page, f"only the current one of {n_frames} frames was read")
    return page


def load_heif_pages(file: IO[bytes], options: LoadOptions, *, name: str) -> Iterator[PageImage]:
    """The primary picture of a HEIC/HEIF file; the decoder applies its orientation itself.

    Raises:
        MissingDependency: pillow-heif is not installed.
        UnreadableInput: damaged or truncated.
        InputTooLarge: beyond the bounds of `options`.
        UsageError: `options.pages` matches nothing.
    """
    heif: Any = require("pillow_heif", package="pillow-heif")
    if not options.wants(0):
        raise no_such_pages(options.pages, 1)
    with trace.current().span("ocr.load", page=0):
        with pillow_errors(name):
            container = heif.open_heif(file)
            width, height = container.size
            options.check_decode_memory(width * height * 16, name)
            image: Image.Image = container.to_pillow()
        page = decode_frame(image, 0, options, name=name)
    yield page


def _single(image: Image.Image, options: LoadOptions, name: str) -> Iterator[PageImage]:
    if not options.wants(0):
        raise no_such_pages(options.pages, 1)
    with trace.current().span("ocr.load", page=0):
        page = decode_frame(image, 0, options, name=name)
    yield page


def _tiff_pages(
    image: Image.Image, n_frames: int, options: LoadOptions, name: str
) -> Iterator[PageImage]:
    """Pages are numbered without thumbnails and masks."""
    index = 0
    n_yielded = 0
    for frame in range(n_frames):
        with pillow_errors(f"{name}, page {index + 1}", doing="read"):
            image.seek(frame)
            tags: Any = getattr(image, "tag_v2", {})
            kind = tags.get(_NEW_SUBFILE_TYPE, 0)
        if isinstance(kind, int) and kind & _NOT_A_PAGE and frame > 0:
            continue
        if options.wants(index):
            with trace.current().span("ocr.load", page=index):
                page = decode_frame(image, index, options, name=f"{name}, page {index + 1}")
            n_yielded += 1
            yield page
        index += 1
    if n_yielded == 0:
        raise no_such_pages(options.pages, index)


def _distinct_frames(
    image: Image.Image, n_frames: int, options: LoadOptions, name: str
) -> Iterator[PageImage]:
    """Frames that show something new; each is numbered by its place among those."""
    seen: set[bytes] = set()
    n_yielded = 0
    limit = options.max_animation_frames
    for frame in range(n_frames):
        index = len(seen)
        with trace.current().span("ocr.load", page=index):
            with pillow_errors(f"{name}, frame {frame + 1}"):
                image.seek(frame)
            page = decode_frame(image, index, options, name=f"{name}, frame {frame + 1}")
            digest = hashlib.blake2b(page.pixels.data, digest_size=16).digest()
        if digest in seen:
            continue
        seen.add(digest)
        if options.wants(index):
            n_yielded += 1
            if n_yielded == 1:
                page = _with_note(
                    page, f"animation of {n_frames} frames: at most {limit} distinct are read"
                )
            yield page
        if len(seen) >= limit:
            break
    if n_yielded == 0:
        raise no_such_pages(options.pages, len(seen))


def _with_note(page: PageImage, note: str) -> PageImage:
    return replace(page, info=replace(page.info, notes=(*page.info.notes, note)))
