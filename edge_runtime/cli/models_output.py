"""Rows and tables of `edge-run models`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edge_runtime.cli.output.plain_text import aligned
from edge_runtime.errors import EdgeRuntimeError

if TYPE_CHECKING:
    from edge_runtime.models.catalogue import Entry
    from edge_runtime.models.store import ModelStore
    from edge_runtime.models.variants import Marker


def model_row(store: ModelStore, entry: Entry) -> dict[str, Any]:
    """The JSON form of a model and its state."""
    status = store.status(entry.name)
    sizes = [file.size_bytes for file in status.files]
    known = [size for size in sizes if size is not None]
    return {
        "name": entry.name,
        "role": entry.role,
        "title": entry.title,
        "is_default": entry.is_default,
        "state": status.state.value,
        "optimized": _optimised_format(store, entry) if status.is_ready else None,
        "size_bytes": sum(known) if len(known) == len(sizes) else None,
        "licence": entry.licence,
        "licence_url": entry.licence_url,
        "must_accept": entry.must_accept,
        "source": entry.source,
        "dimensions": entry.dimensions.model_dump(exclude_none=True),
        "files": [
            {
                "key": file.key,
                "path": str(file.path),
                "state": file.state.value,
                "size_bytes": file.size_bytes,
                "sha256": file.sha256,
            }
            for file in status.files
        ],
    }


def _optimised_format(store: ModelStore, entry: Entry) -> str | None:
    """Which copy stands in for the model; "damaged" where one should but cannot."""
    from edge_runtime.models.resolving import original_sha256
    from edge_runtime.models.variants import read_marker

    if entry.role != "llm":
        return None
    try:
        marker = read_marker(store.root, original_sha256(store.status(entry.name)))
    except EdgeRuntimeError:
        return "damaged copy"
    return marker.chosen if marker else None


def model_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lines of the table of models."""
    head = ("name", "for", "size", "licence", "state", "title")
    cells = [
        (
            row["name"] + (" *" if row["is_default"] else ""),
            row["role"],
            _megabytes(row["size_bytes"]),
            row["licence"],
            row["state"] + (f", {row['optimized']}" if row["optimized"] else ""),
            row["title"],
        )
        for row in rows
    ]
    lines = list(aligned([head, *cells], right=(2,)))
    lines.append("* is the default of its kind. `edge-run models pull NAME` fetches one.")
    return lines


def licence_notice(entry: Entry) -> str:
    """What is shown before a model is fetched for the first time."""
    size = f", {_megabytes(entry.size_bytes)}" if entry.size_bytes else ""
    lines = [f"{entry.name}: {entry.title}{size}, from {entry.source}"]
    lines.append(f"  licence: {entry.licence} ({entry.licence_url})")
    if entry.licence_note:
        lines.append(f"  {entry.licence_note}")
    return "\n".join(lines)


def marker_table(marker: Marker) -> list[str]:
    """Lines that tell how the copies of a model compare."""
    rows = [("format", "prefill t/s", "decoding t/s", "KL", "same best", "outcome")]
    rows.append(
        (
            f"{marker.original_weights} (original)",
            f"{marker.original_prefill_tokens_per_s:.0f}",
            f"{marker.original_decode_tokens_per_s:.0f}",
            "",
            "",
            "used" if marker.chosen is None else "kept",
        )
    )
    for variant in marker.variants:
        outcome = "used" if variant.format == marker.chosen else variant.reason.split(" (")[0]
        rows.append(
            (
                variant.format,
                f"{variant.prefill_tokens_per_s:.0f}",
                f"{variant.decode_tokens_per_s:.0f}",
                "not a number" if variant.kl_mean is None else f"{variant.kl_mean:.4f}",
                f"{variant.same_top1:.1%}",
                outcome,
            )
        )
    lines = [f"{marker.original_name} on {marker.processor}, {marker.n_threads} threads"]
    lines += aligned(rows, right=(1, 2, 3, 4))
    lines += [f"note: {note}" for note in marker.notes]
    return lines


def _megabytes(size_bytes: int | None) -> str:
    return "" if size_bytes is None else f"{size_bytes / 1e6:.0f} MB"
