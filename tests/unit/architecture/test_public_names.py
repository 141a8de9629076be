"""`edge_runtime` exports exactly what it promises, cheaply."""

from __future__ import annotations

import subprocess
import sys

import pytest

import edge_runtime

HEAVY = {
    "numpy",
    "llama_cpp",
    "onnxruntime",
    "cv2",
    "rapidocr",
    "pypdfium2",
    "PIL",
    "rich",
    "pydantic",
}


def test_every_public_name_is_importable_and_sorted() -> None:
    assert sorted(edge_runtime.__all__) == edge_runtime.__all__
    for name in edge_runtime.__all__:
        assert getattr(edge_runtime, name).__name__ == name


def test_dir_lists_public_names() -> None:
    assert dir(edge_runtime) == edge_runtime.__all__


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = edge_runtime.no_such_name  # type: ignore[attr-defined]


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint('loaded', *{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_import_loads_nothing_heavy() -> None:
    assert not HEAVY & loaded_after("import edge_runtime")


def test_help_loads_nothing_heavy() -> None:
    show_help = (
        "from edge_runtime.cli.main import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit:\n"
        "    pass"
    )
    assert not HEAVY & loaded_after(show_help)
