"""Requantised copies of a model and the marker file that says which of them to use.

They live beside the pulled models, in a folder named after the sha256 of the original, so that a
copy can never be taken for one of another model. The original is never changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from edge_runtime.errors import ModelError, ModelFileError
from edge_runtime.models.atomic_files import write_atomically
from edge_runtime.models.digests import cached_sha256
from edge_runtime.models.gguf import check_gguf

FOLDER = "optimized"
MARKER = "optimized.json"
_REDO = "edge-run models optimize --force makes it again"


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class VariantRecord(_Record):
    """One requantised copy: how fast it is and how close it stays to the original.

    `speedup` and `decode_speedup` are medians, over paired repetitions, of its tokens per second
    over the original's: of prefill, and of decoding one token at a time.
    `kl_mean` is the mean Kullback-Leibler divergence in nats of its next-token distribution from
    the original's (None if that is not a number, as for a copy that is broken outright),
    `same_top1` the share of positions where both name the same best token.
    """

    format: str
    file: str
    size_bytes: int = Field(gt=0)
    sha256: str
    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    speedup: float
    decode_speedup: float
    kl_mean: float | None
    same_top1: float
    passed: bool
    reason: str


class Marker(_Record):
    """The outcome of one `optimize`: figures of every copy and the one to use, if any."""

    version: int = 1
    original_name: str
    original_sha256: str
    original_weights: str
    original_prefill_tokens_per_s: float
    original_decode_tokens_per_s: float
    processor: str
    build: str
    n_threads: int
    n_tokens: int
    use_extra_bufts: bool
    max_kl_mean: float
    min_same_top1: float
    notes: tuple[str, ...] = ()
    variants: tuple[VariantRecord, ...] = ()
    chosen: str | None = None

    def variant(self, name: str) -> VariantRecord | None:
        """The copy in this format."""
        return next((v for v in self.variants if v.format == name), None)


@dataclass(frozen=True, slots=True)
class Variant:
    """A copy that is there and whole."""

    path: Path
    format: str
    sha256: str
    record: VariantRecord


def variants_folder(root: Path, original_sha256: str) -> Path:
    """Where copies of the model with this sha256 are kept."""
    return root / FOLDER / original_sha256[:32]


def read_marker(root: Path, original_sha256: str) -> Marker | None:
    """The marker for a model, None if it was never optimised.

    Raises:
        ModelFileError: The marker is damaged or belongs to another file.
    """
    path = variants_folder(root, original_sha256) / MARKER
    try:
        marker = Marker.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as err:
        raise ModelFileError(f"{path} is damaged", hint=_REDO, details={"path": str(path)}) from err
    if marker.original_sha256 != original_sha256:
        raise ModelFileError(f"{path} belongs to another model", hint=_REDO)
    return marker


def write_marker(root: Path, marker: Marker) -> Path:
    """Replace the marker of a model; returns its path."""
    path = variants_folder(root, marker.original_sha256) / MARKER
    write_atomically(path, marker.model_dump_json(indent=2).encode() + b"\n")
    return path


def chosen_variant(root: Path, original_sha256: str) -> Variant | None:
    """The copy to use in place of the original, None where the original is best or never
    compared.

    Raises:
        ModelFileError: The marker or the copy is damaged or gone.
    """
    marker = read_marker(root, original_sha256)
    if marker is None or marker.chosen is None:
        return None
    record = marker.variant(marker.chosen)
    if record is None or Path(record.file).name != record.file:
        raise ModelFileError("The marker names a copy that it does not describe", hint=_REDO)
    path = variants_folder(root, original_sha256) / record.file
    try:
        size = path.stat().st_size
    except OSError as err:
        raise ModelFileError(f"The optimised copy {path} is gone", hint=_REDO) from err
    if size != record.size_bytes:
        raise ModelFileError(
            f"The optimised copy {path} has {size} bytes instead of {record.size_bytes}", hint=_REDO
        )
    try:
        check_gguf(path)
    except ModelError as err:
        raise ModelFileError(f"The optimised copy is damaged: {err.message}", hint=_REDO) from err
    if cached_sha256(path) != record.sha256:
        raise ModelFileError(f"The optimised copy {path} does not have its checksum", hint=_REDO)
    return Variant(path, record.format, record.sha256, record)
