"""Every engine keeps the promises of `ocr.engine`: a new engine is one more entry in ENGINES.

Each engine comes with the letters it can read. All read the same words.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from edge_runtime.errors import (
    Cancelled,
    ModelError,
    ModelFileError,
    ModelNotFound,
    StageError,
    UsageError,
)
from edge_runtime.ocr.engine import Recogniser
from edge_runtime.ocr.open_engine import open_recogniser
from edge_runtime.ocr.page_image import PageImage
from edge_runtime.trace import Recorder, recording
from edge_runtime.values import Box, Line
from tests.support.text_pages import (
    Draw,
    as_page,
    blank_page,
    draw_all,
    draw_blocks,
    draw_letters,
)
from tools.make_tiny_onnx import write_models

Files = Mapping[str, Path]


def tiny_files(folder: Path) -> Files:
    return write_models(folder)


def tiny_files_without_keys(folder: Path) -> Files:
    files = write_models(folder)
    return {"det": files["det"], "rec": files["rec"]}


def real_files(_: Path) -> Files:
    spec = importlib.util.find_spec("rapidocr")
    if spec is None or spec.origin is None:
        pytest.skip("rapidocr, whose wheel holds the PP-OCRv6 models, is not installed")
    models = Path(spec.origin).parent / "models"
    files = {role: models / f"PP-OCRv6_{role}_small.onnx" for role in ("det", "rec")}
    if not all(path.is_file() for path in files.values()):
        pytest.skip("this rapidocr has no PP-OCRv6 small models")
    return files


@dataclass(frozen=True)
class Case:
    kind: str
    files: Callable[[Path], Files]
    draw: Draw


ENGINES = {
    "tiny": Case("onnx", tiny_files, draw_blocks),
    "tiny-metadata": Case("onnx", tiny_files_without_keys, draw_blocks),
    "ppocrv6-small": Case("onnx", real_files, draw_letters),
    "paddle-tiny": Case("paddle", tiny_files, draw_blocks),
    "paddle-ppocrv6-small": Case("paddle", real_files, draw_letters),
}


@dataclass(frozen=True)
class Opened:
    recogniser: Recogniser
    draw: Draw
    case: Case
    files: Files

    def lines(self, page: PageImage, **how) -> list[Line]:
        return list(self.recogniser.read(page, **how))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[pytest.mark.paddle] if case.kind == "paddle" else [])
        for name, case in ENGINES.items()
    ],
)
def engine(request, tmp_path_factory) -> Iterator[Opened]:
    case = ENGINES[request.param]
    if case.kind == "paddle" and importlib.util.find_spec("paddleocr") is None:
        pytest.skip("the paddle extra is not installed")
    files = case.files(tmp_path_factory.mktemp("models"))
    recogniser = open_recogniser(case.kind, files, n_threads=2)
    yield Opened(recogniser, case.draw, case, files)
    recogniser.close()


def covers(outer: Box, inner: Box) -> float:
    """Share of `inner` that lies in `outer`."""
    return outer.intersection_area(inner) / (inner.width * inner.height)


def test_lines_come_with_text_order_and_place(engine):
    canvas = blank_page(700, 400)
    drawn = draw_all(canvas, engine.draw, ("DAD", 40, 40), ("BAD CAB", 60, 160), ("ABBA", 40, 300))
    lines = engine.lines(as_page(canvas, index=3))
    assert [line.text for line in lines] == [d.text for d in drawn]
    assert [line.index for line in lines] == [0, 1, 2]
    assert [line.row for line in lines] == [0, 1, 2]
    for line, made in zip(lines, drawn, strict=True):
        assert line.page == 3
        assert 0.5 <= line.confidence <= 1
        assert covers(line.quad.box, made.box) > 0.8
        assert line.quad.box.height < 3 * made.box.height


def test_first_corner_is_where_the_text_begins(engine):
    canvas = blank_page(500, 200)
    draw_all(canvas, engine.draw, ("BAD CAB", 60, 80))
    (line,) = engine.lines(as_page(canvas))
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = line.quad.points
    assert ax < bx
    assert dx < cx
    assert ay < dy
    assert by < cy


def test_cells_of_a_row_share_its_number_and_are_read_from_left_to_right(engine):
    canvas = blank_page(800, 320)
    draw_all(
        canvas,
        engine.draw,
        ("CAB", 550, 44),
        ("ABBA", 40, 40),
        ("DAD", 550, 156),
        ("BAD", 40, 160),
    )
    lines = engine.lines(as_page(canvas))
    assert [(line.text, line.row) for line in lines] == [
        ("ABBA", 0),
        ("CAB", 0),
        ("BAD", 1),
        ("DAD", 1),
    ]


def test_words_spell_the_line_and_lie_inside_it_in_order(engine):
    canvas = blank_page(900, 200)
    draw_all(canvas, engine.draw, ("BAD CAB DAD", 60, 80))
    (line,) = engine.lines(as_page(canvas))
    assert " ".join(word.text for word in line.words) == line.text == "BAD CAB DAD"
    boxes = [word.quad.box for word in line.words]
    for box in boxes:
        assert covers(line.quad.box, box) > 0.99
    assert all(a.x1 <= b.x0 + 0.5 for a, b in itertools.pairwise(boxes))
    assert all(0 <= word.confidence <= 1 for word in line.words)


def test_word_boxes_cover_their_words(engine):
    canvas = blank_page(900, 200)
    first = engine.draw(canvas, "BAD", 60, 80)
    second = engine.draw(canvas, "DAB", first[2] + 45, 80)
    lines = engine.lines(as_page(canvas))
    words = [word for line in lines for word in line.words]
    assert [word.text for word in words] == ["BAD", "DAB"]
    for word, drawn in zip(words, (first, second), strict=True):
        assert covers(word.quad.box, Box(*map(float, drawn))) > 0.6


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_quads_are_pixels_of_the_page_before_it_was_turned(engine, angle):
    upright = blank_page(500, 240)
    (made,) = draw_all(upright, engine.draw, ("BAD CAB", 60, 100))
    stored = np.ascontiguousarray(np.rot90(upright, angle // 90))
    page = as_page(stored).rotated(360 - angle)
    (line,) = engine.lines(page)
    assert line.text == "BAD CAB"
    there = page.to_original.apply_box(made.box)
    assert covers(line.quad.box, there) > 0.8
    assert covers(line.reading, made.box) > 0.8
    start = page.to_original.apply_point((made.box.x0, made.box.y0))
    end = page.to_original.apply_point((made.box.x1, made.box.y0))
    first, second = line.quad.points[:2]
    assert abs(first[0] - start[0]) + abs(first[1] - start[1]) < abs(first[0] - end[0]) + abs(
        first[1] - end[1]
    )
    assert abs(second[0] - end[0]) + abs(second[1] - end[1]) < abs(second[0] - start[0]) + abs(
        second[1] - start[1]
    )


def test_quads_of_a_scaled_and_cropped_page_point_into_the_original(engine):
    canvas = blank_page(900, 500)
    (made,) = draw_all(canvas, engine.draw, ("BAD CAB", 300, 250))
    page = as_page(canvas).crop(150, 100, 900, 500).scaled(0.8)
    (line,) = engine.lines(page)
    assert line.text == "BAD CAB"
    assert covers(line.quad.box, made.box) > 0.8
    for word in line.words:
        assert covers(line.quad.box, word.quad.box) > 0.98


def test_boxes_stay_on_the_page(engine):
    canvas = blank_page(300, 60)
    draw_all(canvas, engine.draw, ("BAD", 3, 12))
    for line in engine.lines(as_page(canvas)):
        for x, y in (p for quad in (line.quad, *(w.quad for w in line.words)) for p in quad.points):
            assert 0 <= x <= 300
            assert 0 <= y <= 60


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (600, 2), (40, 40), (640, 480)])
def test_blank_pages_of_any_size_have_no_lines(engine, size):
    assert engine.lines(as_page(blank_page(*size))) == []


def test_tall_page_is_read_in_full(engine):
    canvas = blank_page(260, 9000)
    texts = [("BAD", "CAB", "DAD", "ABBA")[i % 4] for i in range(75)]
    draw_all(canvas, engine.draw, *((text, 30, 40 + 118 * i) for i, text in enumerate(texts)))
    assert [line.text for line in engine.lines(as_page(canvas))] == texts


def test_wide_strip_is_read_in_full(engine):
    canvas = blank_page(6000, 60)
    words = [("BAD", "CAB", "DAD", "ABBA")[i % 4] for i in range(25)]
    x = 20
    for word in words:
        x = engine.draw(canvas, word, x, 14)[2] + 60
    lines = engine.lines(as_page(canvas))
    assert " ".join(line.text for line in lines) == " ".join(words)


def test_same_page_reads_the_same_every_time_and_from_two_threads(engine):
    canvas = blank_page(700, 400)
    draw_all(canvas, engine.draw, ("DAD", 40, 40), ("BAD CAB", 60, 160), ("ABBA", 40, 300))
    page = as_page(canvas)
    expected = engine.lines(page)
    found: list[list[Line]] = []
    threads = [threading.Thread(target=lambda: found.append(engine.lines(page))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected, expected]


def many_lines(engine: Opened, n_lines: int) -> PageImage:
    canvas = blank_page(240, 60 + 100 * n_lines)
    draw_all(canvas, engine.draw, *(("BAD", 40, 40 + 100 * i) for i in range(n_lines)))
    return as_page(canvas)


def test_cancel_before_the_start_yields_nothing(engine):
    with pytest.raises(Cancelled):
        next(engine.recogniser.read(many_lines(engine, 3), cancel=lambda: True))


def test_cancel_between_lines_stops_soon(engine):
    stop = threading.Event()
    lines = engine.recogniser.read(many_lines(engine, 40), cancel=stop.is_set)
    assert next(lines).index == 0
    stop.set()
    with pytest.raises(Cancelled):
        list(lines)


def test_engine_works_on_after_a_reader_that_went_away(engine):
    page = many_lines(engine, 12)
    lines = engine.recogniser.read(page)
    next(lines)
    lines.close()
    assert len(engine.lines(page)) == 12


def test_first_lines_arrive_before_the_last_are_read(engine):
    recorder = Recorder()
    with recording(recorder):
        lines = engine.recogniser.read(many_lines(engine, 60))
        next(lines)
        n_read = sum(span.name == "ocr.line" for span in recorder.spans)
        rest = list(lines)
    assert n_read < 60
    assert len(rest) == 59


def test_stages_are_traced(engine):
    recorder = Recorder()
    with recording(recorder):
        engine.lines(many_lines(engine, 4))
    stages = {stage.name: stage for stage in recorder.stages()}
    assert stages["ocr.detect"].count == 1
    assert stages["ocr.recognise"].count == 4


def test_closing_twice_is_fine_and_reading_after_it_is_not(engine):
    recogniser = open_recogniser(engine.case.kind, engine.files, n_threads=1)
    assert recogniser.name
    recogniser.close()
    recogniser.close()
    with pytest.raises(StageError, match="closed"):
        next(recogniser.read(many_lines(engine, 1)))


def test_missing_model_file_is_told(engine, tmp_path):
    with pytest.raises(ModelNotFound) as caught:
        open_recogniser(engine.case.kind, {**engine.files, "det": tmp_path / "absent.onnx"})
    assert caught.value.hint


def test_file_that_is_no_model_is_told(engine, tmp_path):
    garbage = tmp_path / "rec.onnx"
    garbage.write_bytes(b"version https://git-lfs.github.com/spec/v1\n" * 3)
    with pytest.raises(ModelFileError):
        open_recogniser(engine.case.kind, {**engine.files, "rec": garbage})


def test_swapped_models_are_told(engine):
    swapped = {**engine.files, "det": engine.files["rec"], "rec": engine.files["det"]}
    canvas = blank_page(300, 120)
    draw_all(canvas, engine.draw, ("BAD", 40, 40))
    with (
        pytest.raises((ModelError, StageError)),
        contextlib.closing(open_recogniser(engine.case.kind, swapped)) as recogniser,
    ):
        list(recogniser.read(as_page(canvas)))


def test_detector_alone_is_not_enough(engine):
    with pytest.raises(ModelNotFound, match="rec"):
        open_recogniser(engine.case.kind, {"det": engine.files["det"]})


def test_unknown_engine_is_a_usage_error():
    with pytest.raises(UsageError, match="tesseract"):
        open_recogniser("tesseract", {})
