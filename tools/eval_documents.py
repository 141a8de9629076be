"""Run the document pipeline over a folder with reference answers and print how right it is.

    python tools/eval_documents.py --data DIR [--set receipts] [--ids FILE] [--limit N] [--json]

DIR holds `documents.jsonl`: a row per document with `set`, `id`, `image` (path below DIR), `fields`
(name -> value) and, where known, `grounding` (name -> boxes x0,y0,x1,y1 in the image's pixels).
`exact` compares the text as printed, `normalised` compares what it means (see score_fields.py).
`grounding_hit` is the share of correct, grounded values whose evidence touches a reference box;
`false_success_rate` the share of fields with status `ok` that are wrong.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from edge_runtime import Pipeline, PipelineOptions, RunResult
from edge_runtime.errors import EdgeRuntimeError
from edge_runtime.values import Box, FieldStatus, FieldValue
from tools.score_fields import exact_equal, normalised_equal

SCHEMAS = {"receipts": "receipt"}


@dataclass
class Scores:
    """Counts over all documents."""

    n: int = 0
    n_failed: int = 0
    n_fields: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    exact: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    normalised: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    n_ok: int = 0
    n_ok_wrong: int = 0
    n_review: int = 0
    n_missing: int = 0
    n_grounded: int = 0
    n_grounding_hit: int = 0
    pairs: list[tuple[float, bool]] = field(default_factory=list)
    per_field_ok: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    total_ms: list[float] = field(default_factory=list)
    ttft_after_input_ms: list[float] = field(default_factory=list)
    peak_rss_mb: float = 0.0


def touches(evidence: Box, reference: Sequence[float]) -> bool:
    """Whether two boxes share at least half of the smaller one."""
    other = Box(*reference)
    smaller = min(evidence.width * evidence.height, other.width * other.height)
    return smaller > 0 and evidence.intersection_area(other) >= 0.5 * smaller


def grounding_hit(got: FieldValue, boxes: Sequence[Sequence[float]]) -> bool:
    return any(touches(e.quad.box, box) for e in got.evidence for box in boxes)


def score_document(scores: Scores, row: Mapping[str, Any], result: RunResult) -> list[str]:
    """Add one result to the counts; returns a line per wrong field."""
    got_by_path = {f.path: f for f in result.fields}
    wrong: list[str] = []
    for name, reference in row["fields"].items():
        got = got_by_path.get(name)
        scores.n_fields[name] += 1
        value = None if got is None else got.value
        raw = None if got is None else got.raw
        right = normalised_equal(name, value, raw, reference)
        scores.normalised[name] += right
        scores.exact[name] += exact_equal(raw, reference)
        if not right:
            status = "absent" if got is None else got.status.value
            wrong.append(f"{row['id']} {name}: {value!r} ({status}) should be {reference!r}")
        if got is None:
            continue
        if got.value is not None:
            scores.pairs.append((got.confidence, right))
        scores.n_review += got.status is FieldStatus.REVIEW
        scores.n_missing += got.status is FieldStatus.MISSING
        if got.status is FieldStatus.OK:
            scores.n_ok += 1
            scores.n_ok_wrong += not right
            scores.per_field_ok[name][0] += 1
            scores.per_field_ok[name][1] += not right
        boxes = (row.get("grounding") or {}).get(name)
        if right and boxes:
            scores.n_grounded += 1
            scores.n_grounding_hit += grounding_hit(got, boxes)
    return wrong


def calibration_error(pairs: Sequence[tuple[float, bool]], n_bins: int = 10) -> float | None:
    """Expected calibration error: mean |confidence - accuracy| over equal-width bins."""
    if not pairs:
        return None
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for confidence, right in pairs:
        bins[min(int(confidence * n_bins), n_bins - 1)].append((confidence, right))
    gaps = (
        abs(sum(c for c, _ in rows) / len(rows) - sum(r for _, r in rows) / len(rows)) * len(rows)
        for rows in bins.values()
    )
    return sum(gaps) / len(pairs)


def quantile(values: Sequence[float], q: float) -> float | None:
    """The q-quantile with linear interpolation, None without values."""
    if not values:
        return None
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def summary(scores: Scores) -> dict[str, Any]:
    """The figures that the JSON output holds."""

    def share(a: int, b: int) -> float | None:
        return round(a / b, 4) if b else None

    normalised = {n: share(scores.normalised[n], scores.n_fields[n]) for n in scores.n_fields}
    n_fields = sum(scores.n_fields.values())
    spread = {
        name: {"p50": quantile(values, 0.5), "p95": quantile(values, 0.95), "n": len(values)}
        for name, values in (
            ("total_ms", scores.total_ms),
            ("ttft_after_input_ms", scores.ttft_after_input_ms),
        )
    }
    return {
        "n": scores.n,
        "n_failed": scores.n_failed,
        "exact": {n: share(scores.exact[n], scores.n_fields[n]) for n in scores.n_fields},
        "normalised": normalised,
        "mean_normalised": round(statistics.fmean(v or 0.0 for v in normalised.values()), 4)
        if normalised
        else None,
        "grounding_hit": share(scores.n_grounding_hit, scores.n_grounded),
        "false_success_rate": share(scores.n_ok_wrong, scores.n_ok),
        "ok_rate": share(scores.n_ok, n_fields),
        "review_rate": share(scores.n_review, n_fields),
        "missing_rate": share(scores.n_missing, n_fields),
        "ok_wrong_by_field": {n: f"{w}/{ok}" for n, (ok, w) in scores.per_field_ok.items()},
        "calibration_error": calibration_error(scores.pairs),
        **spread,
        "peak_rss_mb": round(scores.peak_rss_mb, 1),
    }


def rows_of(data: Path, set_name: str, ids: set[str] | None) -> Iterator[dict[str, Any]]:
    """The documents to run, in file order."""
    with (data / "documents.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["set"] == set_name and (ids is None or row["id"] in ids):
                yield row


def template_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A schema of strings for sets without a preset: every field name that occurs."""
    names = sorted({name for row in rows for name in row["fields"]})
    return {
        "type": "object",
        "title": "fields",
        "properties": {name: {"type": ["string", "null"]} for name in names},
    }


def as_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with scalar fields; a list of one field object is unwrapped, nested lists left out."""
    kept: list[dict[str, Any]] = []
    for row in rows:
        fields = row.get("fields")
        if isinstance(fields, list):
            fields = fields[0] if fields else {}
        if not fields:
            continue
        scalars = {k: str(v) for k, v in fields.items() if not isinstance(v, (list, dict))}
        kept.append({**row, "fields": scalars})
    return kept


def peak_rss_mb() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", dest="set_name", default="receipts")
    parser.add_argument("--ids", type=Path, help="file with one document id per line")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--model", help="catalogue name or GGUF file; 'none' for no model")
    parser.add_argument("--schema", help="schema or preset instead of the set's own")
    parser.add_argument("--rotate", type=int, default=0, choices=(0, 90, 180, 270))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--wrong", action="store_true", help="list wrong fields on stderr")
    args = parser.parse_args(argv)
    ids = set(args.ids.read_text(encoding="utf-8").split()) if args.ids else None
    rows = as_rows(list(rows_of(args.data, args.set_name, ids))[: args.limit])
    if not rows:
        print(f"No documents of set {args.set_name!r} in {args.data}", file=sys.stderr)
        return 2
    schema: Any = args.schema or SCHEMAS.get(args.set_name) or template_of(rows)
    options = PipelineOptions(schema=schema, **({"model": args.model} if args.model else {}))
    scores = Scores()
    with Pipeline(options) as pipeline:
        pipeline.warm_up()
        for row in rows:
            run_one(pipeline, args.data / row["image"], row, scores, args)
    scores.peak_rss_mb = peak_rss_mb()
    report = {"set": args.set_name, "rotate": args.rotate, **summary(scores)}
    print(json.dumps(report) if args.json else json.dumps(report, indent=2))
    return 0


def turned(image: Path, degrees: int) -> Any:
    """The picture itself, or a copy turned clockwise by `degrees`."""
    if degrees == 0:
        return image
    from PIL import Image

    with Image.open(image) as opened:
        return opened.convert("RGB").rotate(-degrees, expand=True)


def run_one(
    pipeline: Pipeline, image: Path, row: dict[str, Any], scores: Scores, args: Any
) -> None:
    start = time.perf_counter()
    try:
        result = pipeline.run(turned(image, args.rotate))
    except EdgeRuntimeError as err:
        print(f"{row['id']}: {err}", file=sys.stderr)
        scores.n_failed += 1
        for name in row["fields"]:
            scores.n_fields[name] += 1
        return
    scores.n += 1
    scores.total_ms.append(1e3 * (time.perf_counter() - start))
    if result.timing.ttft_after_input_ms is not None:
        scores.ttft_after_input_ms.append(result.timing.ttft_after_input_ms)
    if args.rotate:
        row = {**row, "grounding": None}
    for line in score_document(scores, row, result):
        if args.wrong:
            print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
