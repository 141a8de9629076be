"""From a name or a path to checked model files."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from edge_runtime.errors import ModelFileError, ModelNotFound, UsageError
from edge_runtime.models.catalogue import Entry
from edge_runtime.models.digests import cached_sha256, combined_sha256
from edge_runtime.models.gguf import check_gguf, read_gguf_header, split_siblings
from edge_runtime.models.model_status import ModelStatus, not_pulled
from edge_runtime.models.onnx_file import check_onnx
from edge_runtime.models.variants import Variant, chosen_variant

if TYPE_CHECKING:
    from edge_runtime.models.store import ModelStore

_log = logging.getLogger(__name__)
Variation: TypeAlias = Literal["auto", "original", "optimized"]


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """Files of a model that are there and well-formed.

    `files` maps keys (`model`; `det`, `rec`, `keys`) to paths. `sha256` is that of the one file,
    or of all files together. `variant` is "original" or the format of a requantised copy, and
    `original_sha256` then tells which file it was made from. `notes` are things the user should
    hear, such as a damaged copy that was passed over.
    """

    name: str
    role: str
    files: dict[str, Path]
    sha256: str
    licence: str | None = None
    entry: Entry | None = None
    variant: str = "original"
    original_sha256: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The one file of a single-file model; of a split one, its first part."""
        if "model" in self.files:
            return self.files["model"]
        if len(self.files) == 1:
            return next(iter(self.files.values()))
        raise UsageError(
            f"{self.name} has several files ({', '.join(self.files)}): say which one",
        )


def resolve(ref: str | Path, *, role: str, variant: Variation, store: ModelStore) -> ResolvedModel:
    """Find and check the files of a model.

    Args:
        ref: A name of the catalogue, or a path to a file or folder.
        role: "llm", "ocr", "orientation" or "adapter".
        variant: "auto" takes the requantised copy that `optimize` chose, if there is one and it
            is whole; "optimized" insists on it; "original" never takes it.
        store: Where pulled models are.
    """
    is_path = isinstance(ref, Path)
    if not is_path and ref in store.catalogue:
        found = _from_catalogue(store.catalogue.get(str(ref)), role, store)
    elif is_path or _looks_like_path(str(ref)):
        found = _from_path(Path(ref).expanduser(), role)
    else:
        store.catalogue.get(str(ref))  # raises, with the names that are alike
        raise ModelNotFound(f"There is no model called {ref!r}")
    if role != "llm":
        if variant == "optimized":
            raise UsageError(f"Only language models have optimised copies, not {role}")
        return found
    return _with_variant(found, variant, store)


def _looks_like_path(ref: str) -> bool:
    separators = {os.sep, os.altsep} - {None}
    return (
        any(s in ref for s in separators if s)
        or ref.startswith("~")
        or ref.lower().endswith((".gguf", ".onnx"))
        or Path(ref).exists()
    )


def _from_catalogue(entry: Entry, role: str, store: ModelStore) -> ResolvedModel:
    if entry.role != role:
        raise UsageError(
            f"{entry.name} is a model for {entry.role}, not for {role}",
            hint="`edge-run models list` shows what each model is for",
        )
    status = store.status(entry.name)
    if not status.is_ready:
        raise not_pulled(status)
    for i, (file, known) in enumerate(zip(entry.files, status.files, strict=True)):
        if file.format == "onnx":
            check_onnx(known.path)
        elif file.format == "gguf" and i == 0:  # looks at all parts of a split model
            check_gguf(known.path)
    return ResolvedModel(
        name=entry.name,
        role=role,
        files={file.key: file.path for file in status.files},
        sha256=original_sha256(status),
        licence=entry.licence,
        entry=entry,
    )


def original_sha256(status: ModelStatus) -> str:
    """The sha256 of a pulled model: of its one file, or of all its files together."""
    digests = {file.key: file.sha256 or cached_sha256(file.path) for file in status.files}
    return combined_sha256(digests)


def _from_path(path: Path, role: str) -> ResolvedModel:
    if not path.exists():
        raise ModelNotFound(
            f"There is no model at {path}",
            hint="`edge-run models list` shows names that can be pulled",
            details={"path": str(path)},
        )
    files = _files_at(path, role)
    digests: dict[str, str] = {}
    for key, file in files.items():
        if file.suffix.lower() == ".onnx":
            check_onnx(file)
        elif role in {"llm", "adapter"}:
            check_gguf(file, with_siblings=key == "model")
        digests[key] = cached_sha256(file)
    return ResolvedModel(
        name=path.stem if path.is_file() else path.name,
        role=role,
        files=files,
        sha256=combined_sha256(digests),
    )


def _files_at(path: Path, role: str) -> dict[str, Path]:
    if role == "ocr":
        if not path.is_dir():
            raise UsageError(
                f"A text recogniser has two models: {path} must be a folder",
                hint="a folder with *det*.onnx, *rec*.onnx and perhaps *keys*.txt or *dict*.txt",
            )
        files = {"det": _only(path, "*det*.onnx"), "rec": _only(path, "*rec*.onnx")}
        keys = sorted({*path.glob("*keys*.txt"), *path.glob("*dict*.txt")})
        return {**files, "keys": keys[0]} if len(keys) == 1 else files
    if path.is_dir():
        path = _only(path, "*.onnx") if role == "orientation" else _first_gguf(path)
    if role != "llm":
        return {"model": path}
    if not path.is_file():
        raise ModelFileError(f"{path} is not a regular file", hint="name a GGUF file")
    parts = split_siblings(read_gguf_header(path))
    return {"model" if i == 0 else f"model-{i + 1}": part for i, part in enumerate(parts)}


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise ModelFileError(
            f"{folder} holds {len(found)} files like {pattern} where one is expected",
            hint="name the file itself, or keep one model per folder",
        )
    return found[0]


def _first_gguf(folder: Path) -> Path:
    later = {p for p in folder.glob("*-of-*.gguf") if "-00001-of-" not in p.name}
    found = sorted(set(folder.glob("*.gguf")) - later)
    if len(found) != 1:
        raise ModelFileError(
            f"{folder} holds {len(found)} GGUF models where one is expected",
            hint="name the file itself",
        )
    return found[0]


def _with_variant(found: ResolvedModel, variant: Variation, store: ModelStore) -> ResolvedModel:
    if variant == "original":
        return found
    try:
        copy = chosen_variant(store.root, found.sha256)
    except ModelFileError as err:
        if variant == "optimized":
            raise
        note = f"{err.message}; the original {found.path.name} is used instead ({err.hint})"
        _log.warning("%s", note)
        return _replaced(found, None, note)
    if copy is None and variant == "optimized":
        raise ModelNotFound(
            f"There is no optimised copy of {found.name} to use",
            hint=f"edge-run models optimize {found.name if found.entry else found.path}",
        )
    return _replaced(found, copy, None)


def _replaced(found: ResolvedModel, copy: Variant | None, note: str | None) -> ResolvedModel:
    return ResolvedModel(
        name=found.name,
        role=found.role,
        files=found.files if copy is None else {"model": copy.path},
        sha256=found.sha256 if copy is None else copy.sha256,
        licence=found.licence,
        entry=found.entry,
        variant="original" if copy is None else copy.format,
        original_sha256=found.sha256,
        notes=(*found.notes, note) if note else found.notes,
    )
