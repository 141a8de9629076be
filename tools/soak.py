"""Many documents through one pipeline in one process: does memory stay flat?

    python tools/soak.py --data DIR [--set receipts] [--n 500] [--settle 50] [--json]

Takes the set's images in turn, again and again, until `--n` documents are done. `growth` compares
the median resident memory of the last tenth with the median of the documents right after the first
`--settle` ones (a tenth of them too).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from itertools import cycle, islice
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from edge_runtime import Pipeline, PipelineOptions
from edge_runtime.errors import EdgeRuntimeError
from tools.eval_documents import SCHEMAS, rows_of


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", dest="set_name", default="receipts")
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--settle", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    rows = list(rows_of(args.data, args.set_name, None))
    process = psutil.Process(os.getpid())
    rss_mb: list[float] = []
    n_failed = 0
    with Pipeline(PipelineOptions(schema=SCHEMAS.get(args.set_name, "auto"))) as pipeline:
        for row in islice(cycle(rows), args.n):
            try:
                pipeline.run(args.data / row["image"])
            except EdgeRuntimeError as err:
                n_failed += 1
                print(f"{row['id']}: {err}", file=sys.stderr)
            rss_mb.append(process.memory_info().rss / 2**20)
            if len(rss_mb) % 50 == 0:
                print(f"{len(rss_mb)}: {rss_mb[-1]:.1f} MB", file=sys.stderr, flush=True)
    tenth = max(1, (len(rss_mb) - args.settle) // 10)
    before = statistics.median(rss_mb[args.settle : args.settle + tenth])
    after = statistics.median(rss_mb[-tenth:])
    report = {
        "n": len(rss_mb),
        "n_failed": n_failed,
        "rss_mb_after_settling": round(before, 1),
        "rss_mb_at_end": round(after, 1),
        "rss_mb_max": round(max(rss_mb), 1),
        "growth": round(after / before - 1, 4),
        "n_threads_at_end": process.num_threads(),
        "n_files_at_end": len(process.open_files()),
    }
    print(json.dumps(report) if args.json else json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
