"""The options of `edge-run ocr`."""

from __future__ import annotations

import argparse
from pathlib import Path

from edge_runtime.cli.output.formats import FORMAT_NAMES

EXAMPLES = """examples:
  edge-run ocr receipt.jpg --schema receipt
  edge-run ocr scan.pdf --pages 1-3 --schema my_schema.json --json -o scan.json
  edge-run ocr inbox/ --schema invoice -o results.jsonl --resume
  edge-run ocr letter.png --ocr-only --format text
  edge-run ocr form.png --schema form --overlay form_boxes.png --trace form_trace.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add everything the command can be told."""
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="file, folder, glob, or - for standard input"
    )
    _add_what(parser)
    _add_output(parser)
    _add_reading(parser)
    _add_running(parser)


def _add_what(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to extract")
    group.add_argument(
        "--schema",
        "--preset",
        metavar="S",
        help="preset (edge-run schema list), JSON Schema file, module:Class of pydantic, or a "
        'short template such as {"total": "amount"}; default: auto, all key/value pairs',
    )
    group.add_argument(
        "--recipe", metavar="R", help="defaults from pipelines/*.toml by name, or from a file"
    )
    group.add_argument("--ocr-only", action="store_true", help="read the text, extract nothing")
    group.add_argument("--model", metavar="M", help="language model: catalogue name or GGUF file")
    group.add_argument("--no-model", action="store_true", help="never load a language model")
    group.add_argument(
        "--strategy",
        choices=("auto", "select", "generate"),
        help="choose among values found in the document, or write JSON under a grammar",
    )
    group.add_argument(
        "--min-confidence",
        type=_fraction,
        metavar="P",
        help="values below it become `review` (0 to 1)",
    )
    group.add_argument("--locale", help="such as en_GB; settles day/month order and decimal signs")


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--json", action="store_true", help="one JSON object; JSON Lines for several inputs"
    )
    group.add_argument(
        "--format",
        choices=FORMAT_NAMES,
        help="default: a table, or what the ending of -o says",
    )
    group.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="a file, or a folder for a file per input"
    )
    group.add_argument(
        "--overlay",
        type=Path,
        metavar="PNG",
        help="picture of the page with lines and fields; a folder for several inputs",
    )
    group.add_argument(
        "--trace",
        type=Path,
        metavar="JSON",
        help="timeline for a Chrome trace viewer; a folder for several inputs",
    )
    existing = group.add_mutually_exclusive_group()
    existing.add_argument(
        "--resume", action="store_true", help="skip inputs that have a result in -o already"
    )
    existing.add_argument(
        "--overwrite", action="store_true", help="begin an existing results file again"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    group.add_argument("-v", "--verbose", action="count", help="log more; twice for details")


def _add_reading(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reading")
    group.add_argument("--engine", choices=("onnx", "paddle"), help="text recognition engine")
    group.add_argument("--ocr-model", metavar="M", help="recognition model: name or folder")
    group.add_argument("--pages", metavar="RANGE", help="such as 1-3,7 (PDF, TIFF, GIF)")
    group.add_argument("--dpi", type=_positive, help="resolution at which PDF pages are drawn")
    group.add_argument("--password", help="for locked PDFs")
    group.add_argument(
        "--text-layer",
        choices=("auto", "always", "never"),
        help="whether a PDF's own text replaces recognition",
    )
    group.add_argument(
        "--rotate",
        choices=("auto", "0", "90", "180", "270"),
        help="how far the content is turned clockwise; auto detects it",
    )


def _add_running(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("running")
    group.add_argument("--threads", type=_positive, metavar="N", help="threads of every stage")
    group.add_argument("--ctx", type=_positive, metavar="N", help="context length in tokens")
    group.add_argument(
        "--timeout", type=_seconds, metavar="S", help="give up on a document after S seconds"
    )
    group.add_argument(
        "--no-cache", action="store_true", help="do not keep the prepared prompt on disk"
    )
    group.add_argument(
        "--fail-fast", action="store_true", help="stop at the first document that fails"
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a time above 0")
    return value


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value
