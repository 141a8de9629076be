from __future__ import annotations

import inspect

import pytest

from edge_runtime import errors
from edge_runtime.errors import EdgeRuntimeError

ALL = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, EdgeRuntimeError)
]


@pytest.mark.parametrize("cls", ALL)
def test_every_error_carries_what_users_need(cls: type[EdgeRuntimeError]) -> None:
    err = cls("it broke", hint="do this", stage="ocr", details={"n": 1})
    assert str(err) == "it broke"
    got = err.to_dict()
    assert got["hint"] == "do this"
    assert got["stage"] == "ocr"
    assert got["details"] == {"n": 1}
    assert got["category"] == cls.category.value
    assert cls.exit_code in {1, 2, 3, 4, 5, 130}
    assert (cls.__doc__ or "").strip()


@pytest.mark.parametrize("cls", ALL)
def test_tree_in_the_module_docstring_names_every_error(cls: type[EdgeRuntimeError]) -> None:
    assert cls.__name__ in (errors.__doc__ or "")
