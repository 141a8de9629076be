"""`edge-run doctor`: what works on this machine, and the command that mends what does not."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edge_runtime.errors import EdgeRuntimeError, MissingError

if TYPE_CHECKING:
    from edge_runtime.cli.doctor_checks import Check

_TEST_LABEL = "TOTAL"
_TEST_VALUE = "27.80"


def add_parser(subparsers: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "doctor",
        help="say what works on this machine and how to mend the rest",
        description="Look at everything the default job needs, then try it on a drawn page. "
        "Ends with 0 when `edge-run ocr` works, else with 3.",
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="as a JSON object")
    parser.add_argument("--quick", action="store_true", help="do not try the default job")


def run(args: argparse.Namespace) -> int:
    """Print the findings; 0 when the default job works."""
    from edge_runtime.cli.doctor_checks import State

    checks: list[Check] = []
    for check in examine(try_job=not args.quick):
        checks.append(check)
        if not args.json:
            sys.stdout.write(_shown(check))
            sys.stdout.flush()
    works = not any(check.state is State.FAIL for check in checks)
    if args.json:
        sys.stdout.write(json.dumps(_as_json(checks, works=works), indent=2) + "\n")
    else:
        sys.stdout.write(_verdict(checks, works=works))
    return 0 if works else MissingError.exit_code


def examine(*, try_job: bool) -> Iterator[Check]:
    """All checks, one after the other as they finish."""
    from edge_runtime.cli import doctor_checks as doctor

    yield doctor.check_python()
    yield doctor.check_processor()
    yield doctor.check_memory()
    yield from doctor.our_folders()
    basics = [*doctor.check_packages(), doctor.check_onnxruntime(), doctor.check_llama_cpp()]
    yield from basics
    models = list(_guarded("models", doctor.check_models))
    yield from models
    ready = not any(check.state is doctor.State.FAIL for check in (*basics, *models))
    if ready:
        yield from _guarded("AMX kernels", _amx)
    yield from _guarded("prefix store", lambda: [doctor.check_prefix_store()])
    yield doctor.check_hub()
    yield from doctor.check_extras()
    if ready and try_job:
        with tempfile.TemporaryDirectory(prefix="edge-run-doctor-") as folder:
            yield doctor.check_default_job(draw_test_page, Path(folder))


def draw_test_page(path: Path) -> str:
    """Write a picture with a line of text and return what has to be read from it."""
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("RGB", (520, 200), "white")
    font = ImageFont.load_default(size=44)
    ImageDraw.Draw(page).text((60, 70), f"{_TEST_LABEL} {_TEST_VALUE}", fill="black", font=font)
    page.save(path)
    return _TEST_VALUE


def _amx() -> Iterator[Check]:
    from edge_runtime.cli.doctor_checks import check_amx
    from edge_runtime.models.catalogue import load_catalogue
    from edge_runtime.models.gguf import read_gguf_header
    from edge_runtime.models.store import resolve

    model = resolve(load_catalogue().default("llm").name, role="llm").path
    check = check_amx(model, read_gguf_header(model).weight_type)
    if check is not None:
        yield check


def _guarded(name: str, look: Any) -> Iterator[Check]:
    """Findings of `look`, or the error that kept it from looking."""
    from edge_runtime.cli.doctor_checks import Check, State

    try:
        yield from look()
    except EdgeRuntimeError as err:
        yield Check(name, State.FAIL, err.message, err.hint)


def _shown(check: Check) -> str:
    text = f"{check.state.value:<5} {check.name}: {check.detail}\n"
    label = "to get it" if check.state.value == "note" else "mend"
    return text + (f"      {label}: {check.fix}\n" if check.fix else "")


def _verdict(checks: Iterable[Check], *, works: bool) -> str:
    if works:
        return "\nThe default job works.\n"
    failed = [check for check in checks if check.state.value == "fail"]
    fixes = list(dict.fromkeys(check.fix for check in failed if check.fix))
    lines = ["", "The default job does not work. To mend it:", *(f"  {fix}" for fix in fixes), ""]
    return "\n".join(lines)


def _as_json(checks: Iterable[Check], *, works: bool) -> dict[str, Any]:
    return {
        "works": works,
        "checks": [
            {
                "name": check.name,
                "state": check.state.value,
                "detail": check.detail,
                "fix": check.fix,
                "facts": check.facts,
            }
            for check in checks
        ],
    }
