"""Arrays of every usual layout."""

from __future__ import annotations

import numpy as np
import pytest

from edge_runtime.errors import InputTooLarge, UnreadableInput, UsageError
from edge_runtime.ocr.loading import LoadOptions, load_pages
from tests.unit.ocr_loading.drawing import page

RGB = np.asarray(page())
GRAY = np.asarray(page().convert("L"))
OPAQUE = np.full((*GRAY.shape, 1), 255, dtype=np.uint8)


def load(array: np.ndarray, **options: float) -> np.ndarray:
    (loaded,) = load_pages(array, LoadOptions(**options))  # type: ignore[arg-type]
    assert loaded.pixels.dtype == np.uint8
    assert loaded.pixels.shape[2] == 3
    return loaded.pixels


@pytest.mark.parametrize(
    "array",
    [
        GRAY,
        GRAY[..., np.newaxis],
        np.concatenate([GRAY[..., np.newaxis], OPAQUE], axis=2),
        GRAY.astype(np.uint16) * np.uint16(257),
        GRAY.astype(np.int64),
        GRAY.astype(np.float32) / 255,
        GRAY.astype(np.float64),
        GRAY.astype(np.float16) / 255,
        np.asfortranarray(GRAY),
    ],
    ids=["hw", "hw1", "gray+alpha", "u16", "i64", "unit f32", "f64", "f16", "fortran"],
)
def test_gray(array: np.ndarray) -> None:
    expected = np.repeat(GRAY[..., np.newaxis], 3, axis=2).astype(int)
    assert np.abs(load(array).astype(int) - expected).max() <= 1


@pytest.mark.parametrize(
    "array",
    [
        RGB,
        np.concatenate([RGB, OPAQUE], axis=2),
        RGB.astype(np.uint16) * np.uint16(257),
        RGB.astype(np.float32) / 255,
        np.concatenate([RGB, OPAQUE], axis=2).astype(np.float32) / 255,
        np.concatenate([RGB, OPAQUE], axis=2).astype(np.uint16) * np.uint16(257),
        RGB[:, ::-1][:, ::-1],
    ],
    ids=["rgb", "rgba", "u16", "unit f32", "rgba f32", "rgba u16", "view"],
)
def test_colour(array: np.ndarray) -> None:
    assert np.abs(load(array).astype(int) - RGB.astype(int)).max() <= 1


def test_boolean_is_black_and_white() -> None:
    assert set(np.unique(load(GRAY > 128))) == {0, 255}


def test_transparent_white_text_stays_visible() -> None:
    ink = np.dstack([np.full((*GRAY.shape, 3), 255, np.uint8), np.uint8(255) - GRAY])
    assert np.ptp(load(ink)) == 255


def test_not_a_number_is_harmless() -> None:
    values = GRAY.astype(np.float32) / 255
    values[:3] = np.nan
    assert np.ptp(load(values)) > 200
    assert load(np.full((4, 4), np.nan)).shape == (4, 4, 3)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0, 3)])
def test_empty(shape: tuple[int, ...]) -> None:
    with pytest.raises(UnreadableInput, match="empty"):
        load(np.zeros(shape))


@pytest.mark.parametrize(
    ("array", "hint"),
    [
        (np.zeros(7), "height"),
        (np.zeros((3, 20, 30)), "transpose"),
        (np.zeros((2, 20, 30, 3)), "one by one"),
        (np.zeros((4, 4), dtype=complex), "numbers"),
        (np.array([["a"]]), "numbers"),
    ],
)
def test_other_arrays_are_refused_with_advice(array: np.ndarray, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(array)
    assert hint in str(caught.value.hint)


def test_large_arrays_are_reduced_with_a_note() -> None:
    (loaded,) = load_pages(np.zeros((400, 300), np.uint8), LoadOptions(max_megapixels=0.03))
    assert loaded.pixels.shape == (200, 150, 3)
    assert loaded.info.notes == ("reduced from 300x400 to 150x200 pixels",)
    assert loaded.to_original.apply_point((150, 200)) == (300, 400)


def test_arrays_beyond_the_memory_bound_are_refused() -> None:
    with pytest.raises(InputTooLarge, match="MB"):
        load(np.zeros((400, 300, 3), np.uint8), max_decode_mb=0.1)


@pytest.mark.parametrize("source", [None, 3, [b"x"], {"a": 1}])
def test_other_things_are_not_documents(source: object) -> None:
    with pytest.raises(UsageError, match="not a document"):
        list(load_pages(source))  # type: ignore[arg-type]
