"""Where things are: shipped data files, and the folders this program writes to.

Shipped data (`pipelines/`, `models/`) is looked up in this order:
`$EDGE_RUNTIME_HOME/<kind>`, the source checkout, the installed package.

Folders for downloads and caches follow the platform's rules and can all be moved at once with
`EDGE_RUNTIME_HOME`.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from edge_runtime.errors import UsageError

_PACKAGE = Path(__file__).resolve().parent
_KINDS = ("pipelines", "models")


def home() -> Path | None:
    """The folder named by `EDGE_RUNTIME_HOME`, if set."""
    value = os.environ.get("EDGE_RUNTIME_HOME")
    return _chosen("EDGE_RUNTIME_HOME", value) if value else None


def _chosen(variable: str, value: str) -> Path:
    try:
        return Path(value).expanduser()
    except RuntimeError as err:
        raise UsageError(
            f"{variable}={value} names the home folder of a user who is not known here.",
            hint=f"set {variable} to a whole path",
        ) from err


def data_roots(kind: str) -> list[Path]:
    """Existing folders of shipped data of `kind`, best first."""
    if kind not in _KINDS:
        raise UsageError(f"No such kind of data: {kind}", hint=f"one of {', '.join(_KINDS)}")
    candidates: list[Path] = []
    root = home()
    if root is not None:
        candidates.append(root / kind)
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file():
        candidates.append(checkout / kind)
    candidates.append(_PACKAGE / "_data" / kind)
    return [path for path in candidates if path.is_dir()]


def find_data(kind: str, name: str) -> Path | None:
    """The first shipped file `name` of `kind`, or None."""
    for root in data_roots(kind):
        path = root / name
        if path.is_file():
            return path
    return None


def list_data(kind: str, pattern: str) -> list[Path]:
    """All shipped files of `kind` matching a glob; a name found earlier hides a later one."""
    seen: dict[str, Path] = {}
    for root in data_roots(kind):
        for path in sorted(root.glob(pattern)):
            seen.setdefault(path.relative_to(root).as_posix(), path)
    return list(seen.values())


def models_dir() -> Path:
    """Where pulled model files live: `$EDGE_RUNTIME_MODELS`, or below the home or data folder."""
    value = os.environ.get("EDGE_RUNTIME_MODELS")
    if value:
        return _chosen("EDGE_RUNTIME_MODELS", value)
    root = home()
    if root is not None:
        return root / "store"
    return Path(platformdirs.user_data_dir("edge_runtime")) / "models"


def cache_dir() -> Path:
    """Where things live that can be computed again (prefix store, probe results)."""
    value = os.environ.get("EDGE_RUNTIME_CACHE")
    if value:
        return _chosen("EDGE_RUNTIME_CACHE", value)
    root = home()
    if root is not None:
        return root / "cache"
    return Path(platformdirs.user_cache_dir("edge_runtime"))
