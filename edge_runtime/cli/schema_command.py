"""`edge-run schema`: extraction schemas, and the schema of the results."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "schema",
        help="list and show extraction schemas; the schema of --json",
        description="Extraction schemas, and the published schema of results.",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the presets that come with edge-run")
    listing.add_argument("--json", action="store_true", help="as a JSON array")
    show = actions.add_parser("show", help="the JSON Schema behind a preset, file or template")
    show.add_argument("ref", metavar="SCHEMA")
    check = actions.add_parser("check", help="what edge-run will look for with a schema")
    check.add_argument("ref", metavar="SCHEMA")
    check.add_argument("--json", action="store_true", help="as a JSON object")
    actions.add_parser("result", help="the JSON Schema of what `edge-run ocr --json` prints")


def run(args: argparse.Namespace) -> int:
    """Print what was asked for."""
    action = {"list": _list, "show": _show, "check": _check, "result": _result}[args.action]
    return action(args)


def _list(args: argparse.Namespace) -> int:
    from edge_runtime.extract.schema_loading import load_schema, preset_names

    schemas = [load_schema(name) for name in preset_names()]
    rows = [(schema.name, schema.title, schema.description) for schema in schemas]
    if args.json:
        keys = ("name", "title", "description")
        _print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return 0
    from edge_runtime.cli.output.plain_text import aligned

    lines = aligned(
        [(name, description or title) for name, title, description in rows], max_cell=200
    )
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _show(args: argparse.Namespace) -> int:
    from edge_runtime.extract.schema_loading import load_schema

    _print_json(load_schema(args.ref).root)
    return 0


def _check(args: argparse.Namespace) -> int:
    from edge_runtime.cli.output.plain_text import aligned
    from edge_runtime.extract.schema_loading import load_schema

    schema = load_schema(args.ref)
    specs = [(spec.path, spec) for spec in schema.fields]
    specs += [
        ("/".join(part for part in (array.path, "*", spec.path) if part), spec)
        for array in schema.arrays
        for spec in array.item_fields
    ]
    if args.json:
        fields = [
            {
                "path": path,
                "kind": spec.kind.value,
                "required": spec.required,
                "nullable": spec.nullable,
                "labels": list(spec.labels),
            }
            for path, spec in specs
        ]
        _print_json({"name": schema.name, "is_open": schema.is_open, "fields": fields})
        return 0
    head = ("path", "kind", "required", "looked for beside")
    cells = [
        (path, spec.kind.value, "yes" if spec.required else "", ", ".join(spec.labels))
        for path, spec in specs
    ]
    lines = [f"{schema.name}: {schema.title}", "", *aligned([head, *cells])]
    if schema.is_open:
        lines.append("and whatever other keys the document has")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _result(args: argparse.Namespace) -> int:
    from edge_runtime import resources
    from edge_runtime.errors import MissingError

    del args
    path = resources.find_data("pipelines", "result.schema.json")
    if path is None:
        raise MissingError(
            "The schema of results is not installed.",
            hint="pip install --force-reinstall edge-runtime",
        )
    sys.stdout.write(path.read_text(encoding="utf-8"))
    return 0


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
