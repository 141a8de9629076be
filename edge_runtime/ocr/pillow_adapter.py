"""The boundary to Pillow: only named formats, only our errors, no warnings let through."""

from __future__ import annotations

import contextlib
import struct
import threading
import warnings
import zlib
from collections.abc import Generator, Iterator
from typing import IO, TYPE_CHECKING, Any

from edge_runtime.errors import InputTooLarge, UnreadableInput
from edge_runtime.ocr.load_options import STAGE

if TYPE_CHECKING:
    from PIL import Image

# In order of how often documents come in them. A fixed list, because Pillow also opens formats
# that start other programs (EPS) or that match nearly any bytes (TGA).
FORMATS = ("JPEG", "PNG", "TIFF", "WEBP", "GIF", "BMP", "JPEG2000", "AVIF", "PPM")
_PREFIX_BYTES = 16

# What Pillow's decoders were seen to raise on damaged files, beside OSError.
_DECODER_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    EOFError,
    AttributeError,
    RuntimeError,
    struct.error,
    zlib.error,
)


class _PillowWarningsMuted:
    """Mutes warnings that Pillow's modules raise while any thread decodes.

    `warnings.catch_warnings` swaps process-wide state: overlapping uses in threads would restore
    it in the wrong order, so the first to enter installs the filter and the last to leave
    removes it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._saved: contextlib.ExitStack | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._n_inside += 1
            if self._n_inside == 1:
                stack = contextlib.ExitStack()
                stack.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", module=r"PIL(\.|$)")
                self._saved = stack

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0 and self._saved is not None:
                self._saved.close()
                self._saved = None


_muted = _PillowWarningsMuted()


@contextlib.contextmanager
def pillow_errors(name: str, *, doing: str = "decode") -> Generator[None]:
    """Translate everything Pillow raises in the enclosed code, and mute its warnings.

    Raises:
        UnreadableInput: damaged, truncated or unsupported data.
        InputTooLarge: memory ran out or Pillow's own bomb limit was hit.
    """
    from PIL import Image

    with _muted:
        try:
            yield
        except Image.DecompressionBombError as err:
            raise InputTooLarge(
                f"{name}: {err}", hint="reduce the picture first", stage=STAGE
            ) from err
        except MemoryError as err:
            raise InputTooLarge(
                f"{name}: there is not enough memory to {doing} it.",
                hint="reduce the picture first",
                stage=STAGE,
            ) from err
        except _DECODER_ERRORS as err:
            raise UnreadableInput(
                f"{name} is damaged or truncated: {_sentence(err)}",
                hint="check that the file opens in a viewer, or fetch it again",
                stage=STAGE,
                details={"decoder_error": f"{type(err).__name__}: {err}"},
            ) from err


def _sentence(err: BaseException) -> str:
    text = str(err).strip() or type(err).__name__
    return text if text.endswith(".") else text + "."


def open_image(file: IO[bytes], name: str) -> Image.Image:
    """Read the header of a picture; nothing is decoded and no size is refused yet.

    `Image.open` is not used because it checks the size against a process-wide limit before the
    caller can look at it: a JPEG of 200 megapixels is harmless when decoded at an eighth.

    Raises:
        UnreadableInput: no known format, or a damaged header.
    """
    from PIL import Image

    prefix = file.read(_PREFIX_BYTES)
    Image.init()
    damage: Exception | None = None
    for factory in _matching_factories(prefix):
        file.seek(0)
        try:
            with _muted:
                return factory(file, name)
        except _DECODER_ERRORS as err:
            damage = err
    if damage is not None:
        raise UnreadableInput(
            f"{name} has a damaged or unsupported header: {_sentence(damage)}",
            hint="convert it to PNG, or fetch it again",
            stage=STAGE,
        ) from damage
    raise UnreadableInput(
        f"{name} is not a picture or PDF in a known format.",
        hint="known: PDF, " + ", ".join(FORMATS) + ", HEIC (with an extra)",
        stage=STAGE,
    )


def _matching_factories(prefix: bytes) -> Iterator[Any]:
    from PIL import Image

    for format_name in FORMATS:
        entry = Image.OPEN.get(format_name)
        if entry is None:
            continue
        factory, accept = entry
        try:
            # an accept function may also answer with a text that says why not
            accepted = accept is None or accept(prefix) is True
        except _DECODER_ERRORS:
            accepted = False  # fewer bytes than the function looks at
        if accepted:
            yield factory
