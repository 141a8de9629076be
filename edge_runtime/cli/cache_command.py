"""`edge-run cache`: the store of computed prompt beginnings on disk."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edge_runtime.kv.prefix_store import PrefixStore

_MIB = 1 << 20


def add_parser(subparsers: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "cache",
        help="list, check and clear stored prompt beginnings",
        description="Computed prompt beginnings that the next run takes from disk. They can always "
        "be computed again.",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, description in (
        ("ls", "what is stored, by model, build and cache format"),
        ("stat", "how much is stored, and the limits"),
        ("verify", "read everything, delete what is damaged; exit code 1 if anything was"),
        ("clear", "delete everything"),
    ):
        action = actions.add_parser(name, help=description, description=description)
        action.add_argument("--json", action="store_true", help="as JSON on standard output")


def run(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    from edge_runtime.kv.prefix_store import PrefixStore, default_root

    store = PrefixStore(default_root())
    action = {"ls": _list, "stat": _stat, "verify": _verify, "clear": _clear}[args.action]
    return action(store, as_json=args.json)


def _list(store: PrefixStore, *, as_json: bool) -> int:
    groups = store.groups()
    if as_json:
        _print_json(
            [
                {
                    "name": group.name,
                    "key": group.key,
                    "n_blocks": group.n_blocks,
                    "bytes": group.n_bytes,
                    "last_used_unix_s": group.last_used_unix_s,
                }
                for group in groups
            ]
        )
        return 0
    if not groups:
        _print("nothing stored")
    for group in groups:
        kv = f"{group.key.get('type_k', '?')}/{group.key.get('type_v', '?')}"
        flash = "flash" if group.key.get("flash_attn") else "plain"
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(group.last_used_unix_s))
        _print(
            f"{group.name[:12]}  model {str(group.key.get('model_sha256', '?'))[:12]}  "
            f"KV {kv} {flash}  {group.n_blocks} blocks  {group.n_bytes / _MIB:.1f} MiB  "
            f"last used {used}"
        )
    return 0


def _stat(store: PrefixStore, *, as_json: bool) -> int:
    from edge_runtime.kv.prefix_store import default_root

    stats = store.stats()
    if as_json:
        _print_json(
            {
                "root": str(default_root()),
                "n_blocks": stats.n_disk_blocks,
                "bytes": stats.disk_bytes,
                "budget_bytes": stats.disk_budget_bytes,
                "block_tokens": store.block_tokens,
            }
        )
        return 0
    _print(f"{stats.n_disk_blocks} blocks of up to {store.block_tokens} tokens")
    _print(f"{stats.disk_bytes / _MIB:.1f} of {stats.disk_budget_bytes / _MIB:.0f} MiB")
    _print(f"in {default_root()}")
    return 0


def _verify(store: PrefixStore, *, as_json: bool) -> int:
    report = store.verify()
    if as_json:
        _print_json(
            {
                "n_blocks": report.n_blocks,
                "bytes": report.n_bytes,
                "damaged": [{"block": name, "reason": reason} for name, reason in report.damaged],
                "n_abandoned": report.n_abandoned,
            }
        )
    else:
        _print(f"{report.n_blocks} blocks are intact ({report.n_bytes / _MIB:.1f} MiB)")
        for name, reason in report.damaged:
            _print(f"deleted {name}: {reason}")
        if report.n_abandoned:
            _print(f"{report.n_abandoned} unfinished files of broken-off runs deleted")
    return 1 if report.damaged else 0


def _clear(store: PrefixStore, *, as_json: bool) -> int:
    freed = store.clear()
    if as_json:
        _print_json({"freed_bytes": freed})
    else:
        _print(f"{freed / _MIB:.1f} MiB freed")
    return 0


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
