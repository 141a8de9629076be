"""Read the same text from awkward encodings: does every file give it, or a typed error?

    python tools/check_odd_images.py --data DIR [--json]

DIR holds `odd_images/` with `rgb.png` as the reference. A file passes when its text (letters and
digits, case folded) equals the reference's, or contains it (several pages, or a taller picture), or
when it is refused with one of our errors. A blank picture passes with no text at all.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from edge_runtime import Pipeline, PipelineOptions
from edge_runtime.errors import EdgeRuntimeError


def plain(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def read(pipeline: Pipeline, path: Path) -> dict[str, Any]:
    start = time.perf_counter()
    row: dict[str, Any] = {"file": path.name}
    try:
        result = pipeline.run(path)
    except EdgeRuntimeError as err:
        row |= {"error": type(err).__name__, "message": err.message}
    else:
        lines = result.document.lines
        row |= {"n_lines": len(lines), "text": plain(" ".join(line.text for line in lines))}
        row["degraded"] = list(result.degraded)
        row["notes"] = [note for page in result.document.pages for note in page.info.notes]
    row["seconds"] = round(time.perf_counter() - start, 2)
    row["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return row


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    folder = args.data / "odd_images"
    rows: list[dict[str, Any]] = []
    with Pipeline(PipelineOptions(schema=None, model=None)) as pipeline:
        reference = read(pipeline, folder / "rgb.png")["text"]
        for path in sorted(folder.iterdir()):
            row = read(pipeline, path)
            text = row.pop("text", None)
            row["outcome"] = (
                "error"
                if text is None
                else "same"
                if text == reference
                else "contains"
                if reference in text
                else "no text"
                if not text
                else f"other: {text[:60]}"
            )
            rows.append(row)
    if args.json:
        print(json.dumps(rows))
        return 0
    for row in rows:
        what = row.get("error", row["outcome"])
        print(f"{row['file']:24} {what:18} {row['seconds']:7.2f} s {row['peak_rss_mb']:6} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
