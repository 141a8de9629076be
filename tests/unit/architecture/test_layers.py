"""The layers of docs/design.md hold, modules stay small, names say what is inside."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "edge_runtime"

# lower number = lower layer; a module may import its own package and lower layers only
LAYERS: dict[str, int] = {
    "errors": 0,
    "values": 0,
    "events": 0,
    "config": 1,
    "resources": 1,
    "optional": 1,
    "trace": 1,
    "device": 2,
    "models": 2,
    "kv": 2,
    "llm": 3,
    "ocr": 3,
    "asr": 3,
    "extract": 4,
    "offload": 4,
    "pipeline": 5,
    "serve": 6,
    "bench": 6,
    "cli": 7,
}
HARD_LIMIT_LINES = 500
VAGUE_NAMES = ("utils", "helpers", "manager", "misc", "common", "base_")
HEAVY = {
    "numpy",
    "llama_cpp",
    "onnxruntime",
    "cv2",
    "rapidocr",
    "pypdfium2",
    "rich",
    "PIL",
    "httpx",
}
ALWAYS_LIGHT = ("errors", "values", "events", "optional", "resources", "trace")


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if "_data" not in p.parts)


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imports_of(tree: ast.AST) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def top_level_imports_of(tree: ast.Module) -> list[str]:
    body = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    return imports_of(ast.Module(body=body, type_ignores=[]))


def module_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", modules(), ids=module_id)
def test_module_imports_only_lower_layers(path: Path) -> None:
    part = part_of(path)
    if part in {"__init__", "__main__"}:
        return
    assert part in LAYERS, f"{part} has no layer: add it to the design"
    for name in imports_of(ast.parse(path.read_text(encoding="utf-8"))):
        pieces = name.split(".")
        if pieces[0] != "edge_runtime" or len(pieces) < 2 or pieces[1] not in LAYERS:
            continue
        target = pieces[1]
        allowed = (
            target == part or LAYERS[target] < LAYERS[part] or LAYERS[part] == 0 == LAYERS[target]
        )
        assert allowed, f"{module_id(path)} imports {name}, which is not in a lower layer"


@pytest.mark.parametrize("path", modules(), ids=module_id)
def test_module_is_not_too_long_and_well_named(path: Path) -> None:
    n_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert n_lines <= HARD_LIMIT_LINES, f"{module_id(path)} has {n_lines} lines"
    assert not any(vague in path.stem for vague in VAGUE_NAMES)


@pytest.mark.parametrize("path", modules(), ids=module_id)
def test_light_modules_import_nothing_heavy(path: Path) -> None:
    if part_of(path) not in ALWAYS_LIGHT and path.name != "__init__.py":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name in top_level_imports_of(tree):
        assert name.split(".")[0] not in HEAVY, f"{module_id(path)} imports {name} at the top"


def test_library_never_imports_tools_or_tests() -> None:
    for path in modules():
        for name in imports_of(ast.parse(path.read_text(encoding="utf-8"))):
            assert name.split(".")[0] not in {"tools", "tests", "pipelines"}, module_id(path)
