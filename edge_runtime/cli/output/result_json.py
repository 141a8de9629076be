"""A result as the published JSON object (`edge-run schema result`)."""

from __future__ import annotations

import json
from typing import Any

from edge_runtime.values import (
    Evidence,
    FieldValue,
    Line,
    Page,
    Quad,
    RunResult,
    StageTiming,
    Timing,
    Word,
)

SCHEMA_VERSION = "1.0"


def result_object(result: RunResult) -> dict[str, Any]:
    """The JSON object of a result.

    Coordinates are pixels of the original raster with one decimal, times milliseconds with two.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "status": result.status.value,
        "degraded": list(result.degraded),
        "source": result.source,
        "schema": result.schema_name,
        "data": result.data,
        "fields": [_field(value) for value in result.fields],
        "pages": [_page(page) for page in result.document.pages],
        "timing": _timing(result.timing),
        "models": [
            {"role": m.role, "name": m.name, "sha256": m.sha256, "licence": m.licence}
            for m in result.models
        ],
        "error": result.error,
        "extra": result.extra,
    }


def render_object(result: RunResult) -> str:
    """One indented object."""
    return json.dumps(result_object(result), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def render_line(result: RunResult) -> str:
    """One object on one line, for JSON Lines."""
    compact = (",", ":")
    text = json.dumps(
        result_object(result), ensure_ascii=False, allow_nan=False, separators=compact
    )
    return text + "\n"


def _page(page: Page) -> dict[str, Any]:
    info = page.info
    return {
        "index": info.index,
        "width": info.width,
        "height": info.height,
        "rotation": info.rotation,
        "dpi": info.dpi,
        "notes": list(info.notes),
        "lines": [_line(line) for line in page.lines],
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "index": line.index,
        "row": line.row,
        "text": line.text,
        "confidence": round(line.confidence, 4),
        "quad": _quad(line.quad),
        "source": line.source.value,
        "words": [_word(word) for word in line.words],
    }


def _word(word: Word) -> dict[str, Any]:
    return {
        "text": word.text,
        "confidence": round(word.confidence, 4),
        "quad": _quad(word.quad),
    }


def _field(value: FieldValue) -> dict[str, Any]:
    return {
        "path": value.path,
        "value": value.value,
        "raw": value.raw,
        "confidence": round(value.confidence, 4),
        "status": value.status.value,
        "evidence": [_evidence(item) for item in value.evidence],
        "reasons": list(value.reasons),
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "page": evidence.page,
        "line": evidence.line,
        "text": evidence.text,
        "quad": _quad(evidence.quad),
    }


def _quad(quad: Quad) -> list[list[float]]:
    return [[round(float(x), 1), round(float(y), 1)] for x, y in quad.points]


def _timing(timing: Timing) -> dict[str, Any]:
    return {
        "total_ms": round(timing.total_ms, 2),
        "ttft_ms": _rounded(timing.ttft_ms),
        "ttft_after_input_ms": _rounded(timing.ttft_after_input_ms),
        "stages": [_stage(stage) for stage in timing.stages],
        "peak_rss_mb": _rounded(timing.peak_rss_mb),
    }


def _stage(stage: StageTiming) -> dict[str, Any]:
    return {
        "name": stage.name,
        "count": stage.count,
        "wall_ms": round(stage.wall_ms, 2),
        "cpu_ms": round(stage.cpu_ms, 2),
        "n_tokens": stage.n_tokens,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
