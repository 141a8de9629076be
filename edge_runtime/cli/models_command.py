"""`edge-run models`: what models there are, fetching, checking and optimising them."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from edge_runtime.errors import EdgeRuntimeError, ModelNotFound, UsageError

if TYPE_CHECKING:
    from edge_runtime.models.variants import Marker


def add_parser(subparsers: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "models",
        help="list, pull, verify and optimise models",
        description="Models: what there is, fetching and checking them, making them faster.",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="all models of the catalogue and what is here")
    pull = actions.add_parser("pull", help="fetch models; a download that broke off continues")
    pull.add_argument("names", nargs="*", metavar="NAME")
    pull.add_argument("--default", action="store_true", help="the default model of every role")
    pull.add_argument(
        "--accept-licence",
        action="store_true",
        help="accept the terms of models that ask for it, such as Gemma",
    )
    pull.add_argument("--force", action="store_true", help="check and fetch even what is here")
    verify = actions.add_parser("verify", help="read whole files and compare their checksums")
    verify.add_argument("names", nargs="*", metavar="NAME", help="default: every pulled model")
    optimise = actions.add_parser(
        "optimize",
        help="requantise for this device and keep the fastest copy that is good enough",
    )
    _add_optimize_arguments(optimise)
    path = actions.add_parser("path", help="print where the files of a model are")
    path.add_argument("name", metavar="NAME")
    path.add_argument("--file", metavar="KEY", help="only this file (model, det, rec, keys)")
    path.add_argument(
        "--variant",
        choices=("auto", "original", "optimized"),
        default="auto",
        help="of a language model; auto is what the other commands use",
    )
    for action in (listing, pull, verify, optimise, path):
        action.add_argument("--json", action="store_true", help="as JSON on standard output")


def _add_optimize_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a name or path; the default model"
    )
    parser.add_argument(
        "--formats", default="q4_0,q8_0", metavar="LIST", help="to try (%(default)s)"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="default: all processors")
    parser.add_argument(
        "--max-kl", type=float, metavar="NATS", help="largest mean KL divergence from the original"
    )
    parser.add_argument(
        "--min-same-top1", type=float, metavar="SHARE", help="least share of equal best tokens"
    )
    parser.add_argument(
        "--no-repack", action="store_true", help="measure without repacked weights (AMX crashes)"
    )
    parser.add_argument("--force", action="store_true", help="again, even if it was done before")


def run(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    action = {
        "list": _list,
        "pull": _pull,
        "verify": _verify,
        "optimize": _optimize,
        "path": _path,
    }[args.action]
    return action(args)


def _list(args: argparse.Namespace) -> int:
    from edge_runtime.cli.models_output import model_row, model_table
    from edge_runtime.models.store import ModelStore

    store = ModelStore()
    rows = [model_row(store, entry) for entry in store.catalogue]
    if args.json:
        _print_json(rows)
        return 0
    sys.stdout.write("\n".join(model_table(rows)) + "\n")
    return 0


def _pull(args: argparse.Namespace) -> int:
    from edge_runtime.cli.models_output import licence_notice, model_row
    from edge_runtime.cli.models_progress import PullDisplay
    from edge_runtime.models.store import ModelStore

    store = ModelStore()
    entries = [store.catalogue.get(name) for name in args.names]
    if args.default:
        entries += [entry for entry in store.catalogue.defaults() if entry not in entries]
    if not entries:
        raise UsageError(
            "Say which models to pull",
            hint="edge-run models pull --default, or names from `edge-run models list`",
        )
    rows: list[dict[str, Any]] = []
    failures: list[EdgeRuntimeError] = []
    with PullDisplay(quiet=args.json) as display:
        for entry in entries:
            if not store.status(entry.name).is_ready:
                display.notice(licence_notice(entry))
            try:
                store.pull(
                    entry.name,
                    progress=display.show,
                    accept_licence=args.accept_licence,
                    force=args.force,
                )
            except EdgeRuntimeError as err:
                if len(entries) == 1:
                    raise
                failures.append(err)
                display.say(f"error: {err.message}" + (f"\n  hint: {err.hint}" if err.hint else ""))
                continue
            row = model_row(store, entry)
            rows.append(row)
            display.say(f"{entry.name}: {row['state']}")
    if args.json:
        _print_json({"models": rows, "errors": [err.to_dict() for err in failures]})
    return failures[0].exit_code if failures else 0


def _verify(args: argparse.Namespace) -> int:
    from edge_runtime.cli.models_progress import PullDisplay
    from edge_runtime.models.model_status import FileState
    from edge_runtime.models.store import ModelStore

    store = ModelStore()
    names = args.names or [
        entry.name
        for entry in store.catalogue
        if store.status(entry.name).state not in {FileState.MISSING, FileState.PARTIAL}
    ]
    if not names:
        raise ModelNotFound("No model has been pulled", hint="edge-run models pull --default")
    with PullDisplay(quiet=args.json) as display:
        reports = [store.verify(name, progress=display.show) for name in names]
    if args.json:
        _print_json(
            [
                {
                    "name": report.name,
                    "ok": report.is_ok,
                    "files": [
                        {"key": file.key, "path": str(file.path), "problem": file.problem}
                        for file in report.files
                    ],
                }
                for report in reports
            ]
        )
    else:
        for report in reports:
            for file in report.files:
                outcome = "ok" if file.problem is None else f"BAD: {file.problem}"
                sys.stdout.write(f"{report.name}  {file.path.name}  {outcome}\n")
            if not report.is_ok:
                sys.stderr.write(f"  hint: edge-run models pull {report.name} --force\n")
    return 0 if all(report.is_ok for report in reports) else 1


def _optimize(args: argparse.Namespace) -> int:
    from edge_runtime.cli.models_output import marker_table
    from edge_runtime.models.optimize import OptimizeOptions, QualityGate, optimize
    from edge_runtime.models.store import ModelStore, resolve

    store = ModelStore()
    names = args.names or [store.catalogue.default("llm").name]
    if args.threads is not None and args.threads < 1:
        raise UsageError("--threads must be at least 1")
    defaults = QualityGate()
    options = OptimizeOptions(
        n_threads=args.threads,
        use_extra_bufts=False if args.no_repack else None,
        gate=QualityGate(
            max_kl_mean=defaults.max_kl_mean if args.max_kl is None else args.max_kl,
            min_same_top1=(
                defaults.min_same_top1 if args.min_same_top1 is None else args.min_same_top1
            ),
        ),
    )
    formats = [name.strip() for name in args.formats.lower().split(",") if name.strip()]
    markers: list[Marker] = []
    for name in names:
        original = resolve(name, role="llm", variant="original", store=store)
        tell = _silent if args.json else _say_on_stderr
        marker = optimize(
            original, store=store, formats=formats, options=options, force=args.force, tell=tell
        )
        markers.append(marker)
        if not args.json:
            sys.stdout.write("\n".join(marker_table(marker)) + "\n")
    if args.json:
        _print_json([marker.model_dump() for marker in markers])
    return 0


def _path(args: argparse.Namespace) -> int:
    from edge_runtime.models.store import ModelStore, resolve

    store = ModelStore()
    entry = store.catalogue.get(args.name)
    if args.file is not None:
        entry.file(args.file)
    found = resolve(args.name, role=entry.role, variant=args.variant, store=store)
    files = {key: str(path) for key, path in found.files.items() if args.file in {None, key}}
    for note in found.notes:
        sys.stderr.write(f"note: {note}\n")
    if args.json:
        _print_json({"name": entry.name, "variant": found.variant, "files": files})
    else:
        sys.stdout.write("".join(f"{path}\n" for path in files.values()))
    return 0


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _say_on_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _silent(_: str) -> None:
    return None
