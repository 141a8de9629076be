"""`edge-run`: parse the command line, run one command, turn what went wrong into an exit code.

Each command is a module `edge_runtime.cli.<name>_command` with `add_parser(subparsers)` and
`run(args) -> int`. Those modules import heavy packages only inside `run`, so that `--help` is
instant.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from edge_runtime import __version__
from edge_runtime.cli import error_report
from edge_runtime.errors import UsageError

COMMANDS = ("ocr", "models", "schema", "cache", "doctor")

_EPILOG = """exit codes:
  0  done                      4  not enough memory, disk or context
  1  the run failed            5  a remote was required and failed
  2  wrong usage or settings   130  interrupted
  3  a model or package is missing
"""


class _Parser(argparse.ArgumentParser):
    """Raises instead of leaving the process, so that `--json` covers wrong usage too."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(
            f"{self.prog}: {message}",
            hint=f"{self.prog} --help",
            details={"usage": " ".join(self.format_usage().split())},
        )


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = _Parser(
        prog="edge-run",
        description="Documents into structured data with models that run on this device.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"edge-run {__version__}")
    parser.add_argument(
        "--debug",
        action="store_true",
        help="show tracebacks and detailed logs (allowed anywhere on the line)",
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in COMMANDS:
        importlib.import_module(f"edge_runtime.cli.{name}_command").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code (see `edge_runtime.errors`)."""
    words = list(sys.argv[1:] if argv is None else argv)
    words, debug = _take_debug(words)
    as_json = "--json" in words
    _prepare_streams()
    previous = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, _terminate)
    except ValueError:
        previous = None  # not the main thread: the caller owns the signals
    try:
        parser = build_parser()
        args = parser.parse_args(words)
        if args.command is None:
            parser.print_help(sys.stderr)
            return UsageError.exit_code
        args.debug = debug
        _set_up_logging(debug=debug, verbosity=getattr(args, "verbose", 0) or 0)
        module = importlib.import_module(f"edge_runtime.cli.{args.command}_command")
        code = module.run(args)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as err:  # noqa: BLE001 - the outermost boundary
        return error_report.report(err, as_json=as_json, debug=debug)
    else:
        return int(code)
    finally:
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)


def _take_debug(words: list[str]) -> tuple[list[str], bool]:
    """Remove `--debug` wherever it stands before a `--`."""
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != "--debug"]
    return kept + words[end:], len(kept) < end


def _prepare_streams() -> None:
    """Data that leaves through a pipe or into a file is UTF-8 whatever the locale says.

    A file name that is not UTF-8 holds lone surrogates; as backslash escapes they stay valid
    JSON and come back unchanged.
    """
    import io

    # Python sets a stream to None when its file descriptor was closed before the start.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _set_up_logging(*, debug: bool, verbosity: int) -> None:
    level = logging.WARNING
    if verbosity:
        level = logging.INFO
    if debug or verbosity > 1:
        level = logging.DEBUG
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("edge_runtime").setLevel(level)


def _terminate(signum: int, frame: FrameType | None) -> None:
    """Leave through the `finally` blocks, so that nothing half-written stays."""
    del frame
    raise SystemExit(128 + signum)
