from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from edge_runtime.extract.answer_json import read_answer

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-999, 999), st.text(max_size=8), st.floats(-9, 9)
)
ANSWERS = st.dictionaries(
    st.text(min_size=1, max_size=5),
    st.one_of(
        SCALARS, st.lists(st.dictionaries(st.text(max_size=3), SCALARS, max_size=3), max_size=3)
    ),
    max_size=4,
)


def compact(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


@given(ANSWERS)
def test_every_scalar_is_read_with_its_place(data: dict[str, Any]) -> None:
    text = compact(data)
    values, is_complete = read_answer(text)
    assert is_complete
    for value in values:
        assert json.loads(text[value.start : value.end]) == value.value
    expected = sum(
        1 if not isinstance(v, list) else sum(len(row) for row in v) for v in data.values()
    )
    assert len(values) == expected


@given(ANSWERS, st.data())
def test_a_broken_answer_keeps_what_was_complete(data: dict[str, Any], draw: st.DataObject) -> None:
    text = compact(data)
    cut = draw.draw(st.integers(0, max(0, len(text) - 1)))
    whole, _ = read_answer(text)
    values, is_complete = read_answer(text[:cut])
    assert not is_complete
    assert values == whole[: len(values)]


def test_paths_name_rows_and_escape_slashes() -> None:
    values, _ = read_answer('{"a/b":1,"items":[{"n":"x"},{"n":null}]}')
    assert [value.path for value in values] == ["a~1b", "items/0/n", "items/1/n"]
