"""What a GGUF file says about its model, and whether native code may see it.

llama.cpp has crashed on malformed files (an empty key in 37 bytes, tensors past the end of the
file, two tokens of the same text), so `check_gguf` looks first, in plain Python and within bounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge_runtime.errors import ModelFileError, ModelNotFound
from edge_runtime.models.gguf_reader import TOKENS_KEY, LongArray, RawGguf, Vocabulary, read_front
from edge_runtime.models.gguf_types import TENSOR_TYPES

_SPLIT_NAME = re.compile(r"^(?P<stem>.+)-(?P<part>\d{5})-of-(?P<count>\d{5})\.gguf$")
_MAX_SPLITS = 4096
# Far above any model there is; a file that claims more is damaged.
_LIMITS = {"block_count": 4096, "embedding_length": 2**20, "head_count": 2**16}


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Facts from the metadata. Numbers the file does not state are None.

    `metadata` holds scalars, strings and short arrays; long arrays (the vocabulary) are replaced
    by `gguf_reader.LongArray`, which knows only type and length.
    """

    path: Path
    version: int
    architecture: str
    kind: str
    name: str | None
    metadata: dict[str, Any]
    n_tensors: int
    n_parameters: int
    n_layers: int | None
    n_embd: int | None
    n_head: int | None
    n_head_kv: int | None
    head_dim: int | None
    n_ctx_train: int | None
    vocab_size: int | None
    chat_template: str | None
    licence: str | None
    weight_type: str
    split_index: int
    n_splits: int
    file_bytes: int
    data_start: int
    n_missing_bytes: int


def read_gguf_header(path: str | Path) -> GgufHeader:
    """Read the header of `path`; the tensor data is not looked at.

    Raises:
        ModelNotFound: There is no such file.
        ModelFileError: The header is malformed.
    """
    path = Path(path)
    if not path.exists():
        raise ModelNotFound(
            f"There is no file {path}",
            hint="`edge-run models list` shows what can be pulled",
            details={"path": str(path)},
        )
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a GGUF file", details={"path": str(path)})
    return _describe(path, read_front(path))


def check_gguf(path: str | Path, *, with_siblings: bool = True) -> GgufHeader:
    """Raise unless `path` is a GGUF model that is all there; return its header.

    Args:
        path: The file; of a split model, its first part.
        with_siblings: Also look at the other parts of a split model.

    Raises:
        ModelNotFound: There is no such file.
        ModelFileError: Not GGUF, malformed, cut short, a Git-LFS pointer, or a split model of
            which a part is missing.
    """
    header = read_gguf_header(path)
    _check_complete(header)
    if header.split_index == 0:
        _check_architecture(header)
        _check_vocabulary(header)
    if header.n_splits > 1 and with_siblings:
        if header.split_index != 0:
            raise _error(
                header,
                f"this is part {header.split_index + 1} of {header.n_splits} of a split model",
                hint="name the first part; llama.cpp finds the others beside it",
            )
        for sibling in split_siblings(header)[1:]:
            check_gguf(sibling, with_siblings=False)
    return header


def split_siblings(header: GgufHeader) -> list[Path]:
    """All parts of a split model in order (one path for a model that is not split).

    Raises:
        ModelFileError: The file is not named like a part, or a part is missing.
    """
    if header.n_splits == 1:
        return [header.path]
    match = _SPLIT_NAME.match(header.path.name)
    if match is None or int(match["count"]) != header.n_splits:
        raise _error(
            header,
            f"the model is split in {header.n_splits} parts but this file is not named "
            f"NAME-00001-of-{header.n_splits:05d}.gguf, so the others cannot be found",
        )
    paths = [
        header.path.with_name(f"{match['stem']}-{i + 1:05d}-of-{header.n_splits:05d}.gguf")
        for i in range(header.n_splits)
    ]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise _error(header, f"parts of the split model are missing: {', '.join(missing)}")
    return paths


def _describe(path: Path, raw: RawGguf) -> GgufHeader:
    meta = raw.metadata
    architecture = meta.get("general.architecture")
    architecture = architecture if isinstance(architecture, str) else ""

    def number(key: str) -> int | None:
        return _first_number(meta.get(f"{architecture}.{key}"))

    n_embd, n_head = number("embedding_length"), number("attention.head_count")
    head_dim = number("attention.key_length")
    if head_dim is None and n_embd and n_head and n_head > 0:
        head_dim = n_embd // n_head
    n_head_kv = number("attention.head_count_kv")
    return GgufHeader(
        path=path,
        version=raw.version,
        architecture=architecture,
        kind=_text(meta.get("general.type")) or "model",
        name=_text(meta.get("general.name")),
        metadata=meta,
        n_tensors=len(raw.tensors),
        n_parameters=sum(tensor.n_elements for tensor in raw.tensors),
        n_layers=number("block_count"),
        n_embd=n_embd,
        n_head=n_head,
        n_head_kv=n_head if n_head_kv is None else n_head_kv,
        head_dim=head_dim,
        n_ctx_train=number("context_length"),
        vocab_size=_count(meta.get(TOKENS_KEY)) or number("vocab_size"),
        chat_template=_text(meta.get("tokenizer.chat_template")),
        licence=_text(meta.get("general.license")),
        weight_type=_weight_type(raw),
        split_index=_first_number(meta.get("split.no")) or 0,
        n_splits=_first_number(meta.get("split.count")) or 1,
        file_bytes=raw.file_bytes,
        data_start=raw.data_start,
        n_missing_bytes=max(0, _needed_bytes(raw) - raw.file_bytes),
    )


def _needed_bytes(raw: RawGguf) -> int:
    return max((raw.data_start + end for end in _tensor_ends(raw)), default=0)


def _tensor_ends(raw: RawGguf) -> Iterator[int]:
    for tensor in raw.tensors:
        n_bytes = tensor.n_bytes
        # Of a type newer than our table only the start can be checked.
        yield tensor.offset + (1 if n_bytes is None else n_bytes)


def _weight_type(raw: RawGguf) -> str:
    """The type that holds most values of the layers.

    Not of the whole file: in a small model with a large vocabulary the embeddings outweigh them,
    and those are often kept in another type.
    """
    totals: dict[int, int] = {}
    layers = [tensor for tensor in raw.tensors if tensor.name.startswith("blk.")]
    for tensor in layers or raw.tensors:
        totals[tensor.type_id] = totals.get(tensor.type_id, 0) + tensor.n_elements
    if not totals:
        return "none"
    type_id = max(totals, key=lambda key: totals[key])
    known = TENSOR_TYPES.get(type_id)
    return known.name if known else f"type {type_id}"


def _check_complete(header: GgufHeader) -> None:
    if header.n_missing_bytes:
        raise _error(
            header,
            f"{header.n_missing_bytes} bytes are missing at the end: tensors lie past the end of "
            "the file, so it is cut short or one part of a split file",
        )
    if header.n_tensors == 0 and header.n_splits == 1:
        raise _error(header, "the file holds metadata but no tensors")
    if not 1 <= header.n_splits <= _MAX_SPLITS or not 0 <= header.split_index < header.n_splits:
        raise _error(header, f"part {header.split_index} of {header.n_splits} makes no sense")


def _check_architecture(header: GgufHeader) -> None:
    if not header.architecture:
        raise _error(header, "general.architecture is missing")
    if header.kind != "model":  # an adapter or projector has no shape of its own
        return
    shape = {
        "block_count": header.n_layers,
        "embedding_length": header.n_embd,
        "head_count": header.n_head,
    }
    for key, value in shape.items():
        # Some recurrent models have no attention heads; what is stated must be possible.
        if value is None and key == "head_count":
            continue
        if value is None or not 1 <= value <= _LIMITS[key]:
            raise _error(header, f"{header.architecture}.{key} is {value}, which cannot be")


def _check_vocabulary(header: GgufHeader) -> None:
    """llama.cpp ends the process when two tokens have the same text (seen with damaged files)."""
    vocabulary = header.metadata.get(TOKENS_KEY)
    if not isinstance(vocabulary, Vocabulary) or vocabulary.has_empty:
        return
    n_twice = vocabulary.count - vocabulary.n_distinct
    if n_twice:
        raise _error(header, f"{n_twice} tokens of the vocabulary are there twice")


def _error(header: GgufHeader, message: str, hint: str | None = None) -> ModelFileError:
    return ModelFileError(
        f"{header.path.name}: {message}",
        hint=hint or "fetch the file again",
        details={"path": str(header.path), "file_bytes": header.file_bytes},
    )


def _first_number(value: Any) -> int | None:
    """An integer, or the largest of a per-layer list."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, list):
        numbers = [v for v in value if isinstance(v, int) and not isinstance(v, bool)]
        return max(numbers, default=None)
    return None


def _count(value: Any) -> int | None:
    if isinstance(value, LongArray):
        return value.count
    return len(value) if isinstance(value, list) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
