"""One loaded `llama_model`: weights, vocabulary and metadata."""

from __future__ import annotations

import ctypes
import re
import weakref
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from edge_runtime.errors import ModelLoadError
from edge_runtime.llm.native_log import NATIVE_LOG

_OVERRIDE_BOOL = 2  # LLAMA_KV_OVERRIDE_TYPE_BOOL
_NO_TOKEN = -1
_USER_DEFINED = 1 << 4  # LLAMA_TOKEN_ATTR_USER_DEFINED
_MARKER = re.compile(rb"<.+>|\[.+\]", re.DOTALL)
_MARKER_START = re.compile(r"[<\[]")


class NativeModel:
    """Owns a `llama_model`; freed by `close` or when it is collected.

    Args:
        library: The low-level binding.
        path: A GGUF file that was checked before.
        use_extra_bufts: Whether weights may be repacked for faster kernels.
        n_gpu_layers: Layers on a GPU; None is the library's choice.

    Raises:
        ModelLoadError: llama.cpp refused the file; its log is quoted.
    """

    def __init__(
        self, library: Any, path: Path, *, use_extra_bufts: bool, n_gpu_layers: int | None
    ) -> None:
        self.library = library
        params = library.llama_model_default_params()
        params.use_extra_bufts = use_extra_bufts
        if n_gpu_layers is not None:
            params.n_gpu_layers = n_gpu_layers
        overrides = _no_space_prefix(library)
        params.kv_overrides = overrides
        mark = NATIVE_LOG.mark()
        handle = library.llama_model_load_from_file(str(path).encode(), params)
        if not handle:
            log = NATIVE_LOG.quote(mark)
            raise ModelLoadError(
                f"llama.cpp cannot load {path.name}: {log or 'no reason given'}",
                hint="a newer llama-cpp-python may know this architecture",
                details={"path": str(path), "native_log": log},
            )
        self.handle = handle
        self._free = weakref.finalize(self, library.llama_model_free, handle)
        self.vocab = library.llama_model_get_vocab(handle)
        self.n_vocab = int(library.llama_vocab_n_tokens(self.vocab))

    @property
    def is_open(self) -> bool:
        """Whether the weights are still there."""
        return self._free.alive

    def close(self) -> None:
        """Free the weights. May be called twice."""
        self._free()

    def count(self, name: str) -> int:
        """`llama_model_<name>` as a number, for example `n_layer`."""
        return int(getattr(self.library, f"llama_model_{name}")(self.handle))

    def metadata(self, key: str) -> str | None:
        """One value of the file's metadata as text."""
        buffer = ctypes.create_string_buffer(1024)
        n = self.library.llama_model_meta_val_str(self.handle, key.encode(), buffer, 1024)
        return None if n < 0 else buffer.value.decode("utf-8", errors="replace")

    @property
    def chat_template(self) -> str | None:
        """The default chat template, or None."""
        text = self.library.llama_model_chat_template(self.handle, None)
        return None if not text else bytes(text).decode("utf-8", errors="replace")

    @property
    def bos(self) -> int | None:
        """The token that the tokenizer puts first, or None when it puts none."""
        if not self.library.llama_vocab_get_add_bos(self.vocab):
            return None
        token = int(self.library.llama_vocab_bos(self.vocab))
        return None if token == _NO_TOKEN else token

    @cached_property
    def eos_ids(self) -> frozenset[int]:
        """All tokens that end a generation."""
        is_end = self.library.llama_vocab_is_eog
        return frozenset(t for t in range(self.n_vocab) if is_end(self.vocab, t))

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Tokens of `text` and nothing else; markers in it are text unless `special`."""
        tokens = self._tokenize(text, special=special)
        if special or not _MARKER_START.search(text) or self._markers.isdisjoint(tokens):
            return tokens
        # llama.cpp leaves out only "control" tokens here. Some files declare turn markers as
        # "user defined", and those it always recognises, unless their first character is cut off.
        cuts = [0, *(match.end() for match in _MARKER_START.finditer(text)), len(text)]
        return [
            token
            for start, end in pairwise(cuts)
            for token in self._tokenize(text[start:end], special=False)
        ]

    @cached_property
    def _markers(self) -> frozenset[int]:
        """Tokens that look like markup and that ordinary text must not become."""
        attributes = self.library.llama_vocab_get_attr
        user_defined = [
            token
            for token in range(self.n_vocab)
            if int(attributes(self.vocab, token)) & _USER_DEFINED
        ]
        return frozenset(t for t in user_defined if _MARKER.fullmatch(self.token_bytes(t)))

    def _tokenize(self, text: str, *, special: bool) -> list[int]:
        data = text.encode("utf-8", errors="replace")
        if not data:
            return []
        n_max = len(data) + 2
        while True:
            tokens = np.empty(n_max, np.int32)
            pointer = tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
            n = int(
                self.library.llama_tokenize(
                    self.vocab, data, len(data), pointer, n_max, False, special
                )
            )
            if n >= 0:
                return tokens[:n].tolist()
            n_max = -n

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token; special tokens give their text."""
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            n = int(self.library.llama_token_to_piece(self.vocab, token, buffer, size, 0, True))
            if n >= 0:
                return buffer.raw[:n]
            size = -n

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """The bytes of several tokens."""
        return b"".join(self.token_bytes(token) for token in tokens)


def _no_space_prefix(library: Any) -> Any:
    """Metadata override: never put a space before a text.

    SentencePiece vocabularies do so once per call, which would add a space wherever the parts of
    a prompt meet. Who wants the space writes it.
    """
    overrides = (library.llama_model_kv_override * 2)()
    overrides[0].tag = _OVERRIDE_BOOL
    overrides[0].key = b"tokenizer.ggml.add_space_prefix"
    overrides[0].value.val_bool = False
    overrides[1].key = b""
    return overrides
