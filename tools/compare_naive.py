"""Time the pipeline against the obvious one: RapidOCR, then llama-cpp-python with a JSON schema.

    python tools/compare_naive.py --data DIR --set receipts [--limit N] [--json]

Both sides read the same images with the same weights file and the same number of threads, in one
process, alternating (the side that starts changes with every document). The naive side is what a
user writes from the two libraries' front pages: `RapidOCR()(image)`, the lines joined into one
prompt, `Llama.create_chat_completion(response_format={"type": "json_object", "schema": ...})`,
streamed. Ratios are naive over ours, medians over the pairs. Accuracy of both is printed too, so
that speed is never bought with wrong answers unseen.

`ttft` is the time from the last recognised line to the first token (naive) or to the first token
or decided field (ours).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from edge_runtime import Pipeline, PipelineOptions
from tools.eval_documents import SCHEMAS, as_rows, quantile, rows_of
from tools.score_fields import normalised_equal

INSTRUCTION = (
    "Extract the fields of this receipt as JSON. Use null for a field that is not there.\n\n"
)


@dataclass
class Run:
    """One document through one side."""

    total_ms: float
    ttft_ms: float
    n_right: int
    n_fields: int


class Naive:
    """RapidOCR with its defaults, then a chat completion bound by a JSON schema."""

    def __init__(self, model: Path, fields: list[str], n_threads: int) -> None:
        from llama_cpp import Llama
        from rapidocr import RapidOCR

        self.ocr = RapidOCR(
            params={
                "Global.log_level": "error",
                "EngineConfig.onnxruntime.intra_op_num_threads": n_threads,
            }
        )
        self.llm = Llama(
            model_path=str(model),
            n_ctx=4096,
            n_threads=n_threads,
            n_threads_batch=n_threads,
            verbose=False,
        )
        self.schema = {
            "type": "object",
            "properties": {name: {"type": ["string", "null"]} for name in fields},
            "required": fields,
        }

    def run(self, image: Path, reference: Mapping[str, str]) -> Run:
        start = time.perf_counter()
        lines = self.ocr(str(image)).txts or ()
        read = time.perf_counter()
        first: float | None = None
        pieces: list[str] = []
        for chunk in self.llm.create_chat_completion(
            messages=[{"role": "user", "content": INSTRUCTION + "\n".join(lines)}],
            response_format={"type": "json_object", "schema": self.schema},
            temperature=0.0,
            max_tokens=256,
            stream=True,
        ):
            piece = chunk["choices"][0]["delta"].get("content")
            if piece:
                if first is None:
                    first = time.perf_counter()
                pieces.append(piece)
        end = time.perf_counter()
        try:
            data = json.loads("".join(pieces))
        except json.JSONDecodeError:
            data = {}
        right = sum(normalised_equal(k, data.get(k), data.get(k), v) for k, v in reference.items())
        ttft_ms = 1e3 * ((first or end) - read)
        return Run(1e3 * (end - start), ttft_ms, right, len(reference))


def run_ours(pipeline: Pipeline, image: Path, reference: Mapping[str, str]) -> Run:
    start = time.perf_counter()
    result = pipeline.run(image)
    total_ms = 1e3 * (time.perf_counter() - start)
    got = {f.path: f for f in result.fields}
    right = sum(
        normalised_equal(k, got[k].value if k in got else None, got[k].raw if k in got else None, v)
        for k, v in reference.items()
    )
    ttft_ms = result.timing.ttft_after_input_ms
    return Run(total_ms, total_ms if ttft_ms is None else ttft_ms, right, len(reference))


def report(naive: list[Run], ours: list[Run]) -> dict[str, Any]:
    def ratio(name: str) -> float:
        pairs = zip(naive, ours, strict=True)
        return statistics.median(getattr(a, name) / max(getattr(b, name), 0.01) for a, b in pairs)

    def spread(runs: list[Run], name: str) -> dict[str, float | None]:
        values = [getattr(run, name) for run in runs]
        return {"p50": quantile(values, 0.5), "p95": quantile(values, 0.95)}

    def accuracy(runs: list[Run]) -> float:
        return sum(r.n_right for r in runs) / max(1, sum(r.n_fields for r in runs))

    return {
        "n": len(ours),
        "total_ratio": ratio("total_ms"),
        "ttft_ratio": ratio("ttft_ms"),
        "naive": {
            "total_ms": spread(naive, "total_ms"),
            "ttft_ms": spread(naive, "ttft_ms"),
            "normalised": accuracy(naive),
        },
        "ours": {
            "total_ms": spread(ours, "total_ms"),
            "ttft_ms": spread(ours, "ttft_ms"),
            "normalised": accuracy(ours),
        },
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", dest="set_name", default="receipts")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--ids", type=Path, help="file with one document id per line")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--weights",
        default="original",
        choices=("original", "optimized"),
        help="which weights file both sides use: the catalogue's, or the one `optimize` made",
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)

    from edge_runtime.models.store import resolve

    ids = set(args.ids.read_text(encoding="utf-8").split()) if args.ids else None
    rows = as_rows(list(rows_of(args.data, args.set_name, ids))[: args.limit])
    fields = sorted({name for row in rows for name in row["fields"]})
    weights = resolve("smollm2-135m-instruct", role="llm", variant=args.weights).path
    naive_side = Naive(weights, fields, args.threads)
    options = PipelineOptions(
        schema=SCHEMAS[args.set_name], model=str(weights), n_threads=args.threads
    )
    naive: list[Run] = []
    ours: list[Run] = []
    with Pipeline(options) as pipeline:
        pipeline.warm_up()
        first = args.data / rows[0]["image"]
        naive_side.run(first, rows[0]["fields"])
        pipeline.run(first)
        for i, row in enumerate(rows):
            image = args.data / row["image"]
            if i % 2:
                ours.append(run_ours(pipeline, image, row["fields"]))
            naive.append(naive_side.run(image, row["fields"]))
            if not i % 2:
                ours.append(run_ours(pipeline, image, row["fields"]))
            print(
                f"{row['id']}: naive {naive[-1].total_ms:.0f} ms, ours {ours[-1].total_ms:.0f} ms",
                file=sys.stderr,
            )
    figures = report(naive, ours)
    print(json.dumps(figures) if args.json else json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
