"""Character lists, PaddleOCR's folders and sessions that fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from edge_runtime.errors import ModelFileError, ModelLoadError, ModelNotFound, StageError
from edge_runtime.ocr.alphabet import load_alphabet
from edge_runtime.ocr.line_strips import STRIP_HEIGHT_PX
from edge_runtime.ocr.onnx_session import OnnxModel, SessionOptions
from edge_runtime.ocr.paddle_folder import write_detection_folder, write_recognition_folder
from edge_runtime.ocr.pp_recognition import LineReader, RecognitionOptions
from tools.make_tiny_onnx import CHARACTERS, INKS, recogniser, write_models

REC = Path("rec.onnx")


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    return write_models(tmp_path_factory.mktemp("tiny"))


def strip_of(text: str) -> np.ndarray:
    strip = np.full((STRIP_HEIGHT_PX, 16 + 64 * len(text), 3), 255, np.uint8)
    for index, character in enumerate(text):
        strip[8:40, 16 + 64 * index : 56 + 64 * index] = INKS[character]
    return strip


def test_metadata_comes_before_the_keys_file(tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_text("x\ny\n", encoding="utf-8")
    assert load_alphabet(REC, {"character": "a\nb"}, keys) == ("", "a", "b", " ")
    assert load_alphabet(REC, {}, keys) == ("", "x", "y", " ")


def test_characters_that_look_like_line_ends_are_characters(tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_bytes("a\r\n\u2028\r\n\u0085\r\n".encode())
    assert load_alphabet(REC, {}, keys) == ("", "a", "\u2028", "\u0085", " ")


def test_model_without_characters_is_told(tmp_path):
    with pytest.raises(ModelFileError, match="no character list"):
        load_alphabet(REC, {}, None)
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_alphabet(REC, {}, tmp_path / "absent.txt")


def test_keys_of_another_model_are_told(tmp_path):
    path = tmp_path / "rec.onnx"
    onnx.save(recogniser(with_characters=False), path)
    keys = tmp_path / "keys.txt"
    keys.write_text("A\nB", encoding="utf-8")
    reader = LineReader(path, keys=keys, options=RecognitionOptions())
    with pytest.raises(ModelFileError, match="its character list has 4"):
        reader.read(strip_of("AB"))


def test_characters_are_where_they_were_drawn(files):
    reader = LineReader(files["rec"], keys=None, options=RecognitionOptions())
    strip = strip_of("ABCD")
    glyphs = reader.read(strip)
    assert [g.text for g in glyphs] == list("ABCD")
    for index, glyph in enumerate(glyphs):
        middle = (glyph.start + glyph.end) / 2 * strip.shape[1]
        assert middle == pytest.approx(36 + 64 * index, abs=8)


def test_strip_longer_than_the_limit_reads_like_a_short_one(files):
    # gaps lie on whole cells of the model, so cutting in them changes no cell
    text = "ABCD" * 12
    whole = LineReader(files["rec"], keys=None, options=RecognitionOptions(max_width_px=8000))
    parts = LineReader(files["rec"], keys=None, options=RecognitionOptions(max_width_px=640))
    strip = strip_of(text)
    expected, found = whole.read(strip), parts.read(strip)
    assert "".join(g.text for g in expected) == text
    letters = [g for g in found if g.text != " "]
    assert "".join(g.text for g in letters) == text
    assert [g.start for g in found] == sorted(g.start for g in found)
    for a, b in zip(expected, letters, strict=True):
        assert b.start == pytest.approx(a.start, abs=24 / strip.shape[1])


def test_absent_and_broken_files_are_told(tmp_path):
    with pytest.raises(ModelNotFound):
        OnnxModel(tmp_path / "absent.onnx", SessionOptions())
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"\x00" * 64)
    with pytest.raises(ModelFileError):
        OnnxModel(broken, SessionOptions())


def test_model_that_the_library_refuses_is_told(tmp_path):
    model = recogniser()
    model.graph.node[0].op_type = "NoSuchOperator"
    path = tmp_path / "rec.onnx"
    onnx.save(model, path)
    with pytest.raises((ModelLoadError, ModelFileError)) as caught:
        OnnxModel(path, SessionOptions())
    assert "NoSuchOperator" in caught.value.details["native_log"]


def test_wrong_input_is_a_stage_error_with_the_shape(files):
    model = OnnxModel(files["rec"], SessionOptions())
    with pytest.raises(StageError, match=r"\(1, 1, 48, 64\)"):
        model.run(np.zeros((1, 1, 48, 64), np.float32))


def test_paddle_folders_hold_model_and_settings(files, tmp_path):
    det = write_detection_folder(tmp_path / "det", files["det"], name="some_det")
    rec = write_recognition_folder(
        tmp_path / "rec", files["rec"], name="some_rec", characters=(*CHARACTERS, '"', "\\", "😀")
    )
    for folder, source in ((det, files["det"]), (rec, files["rec"])):
        assert (folder / "inference.onnx").read_bytes() == source.read_bytes()
    assert "model_name: some_det" in (det / "inference.yml").read_text(encoding="utf-8")
    settings = (rec / "inference.yml").read_text(encoding="utf-8")
    assert settings.isascii()
    listed = settings.split("character_dict:\n")[1].splitlines()
    assert listed == [
        *(f'  - "{char}"' for char in CHARACTERS),
        '  - "\\U00000022"',
        '  - "\\U0000005C"',
        '  - "\\U0001F600"',
    ]


def test_paddle_folder_is_a_copy_where_links_are_not_possible(files, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    folder = write_detection_folder(tmp_path / "det", files["det"], name="some_det")
    assert not (folder / "inference.onnx").is_symlink()
    assert (folder / "inference.onnx").read_bytes() == files["det"].read_bytes()
