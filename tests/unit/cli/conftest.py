"""Made-up results and a pipeline that gives them, so that the command line is tested alone."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from edge_runtime.errors import UnreadableInput
from edge_runtime.events import Event, FieldDecided, LineRead, PageFound, Result
from edge_runtime.trace import Recorder
from edge_runtime.values import (
    Box,
    Document,
    Evidence,
    FieldStatus,
    FieldValue,
    Line,
    ModelUse,
    Page,
    PageInfo,
    Quad,
    ResultStatus,
    RunResult,
    StageTiming,
    Timing,
    Word,
)


def make_line(index: int, text: str, *, row: int | None = None, x0: float = 10.0) -> Line:
    box = Box(x0, 20.0 * index + 5, x0 + 9.0 * len(text), 20.0 * index + 20)
    quad = Quad.from_box(box)
    return Line(
        page=0,
        index=index,
        text=text,
        confidence=0.98765,
        quad=quad,
        reading=box,
        row=index if row is None else row,
        words=(Word(text.split(maxsplit=1)[0], quad, 0.97),),
    )


LINES = (
    make_line(0, "Harbour | Lane"),
    make_line(1, "Total"),
    make_line(2, "13,94", row=1, x0=150.0),
    make_line(3, "1. first *item*"),
)


def make_result(source: str = "page.png", **changes: Any) -> RunResult:
    evidence = Evidence(0, 2, LINES[2].quad, "13,94")
    fields = (
        FieldValue("company", "Harbour | Lane", "Harbour | Lane", 0.5, FieldStatus.REVIEW, (),
                   ("low_confidence",)),
        FieldValue("total", 13.94, "13,94", 0.93, FieldStatus.OK, (evidence,)),
        FieldValue("date", None, None, 0.0, FieldStatus.MISSING),
        FieldValue("items/0/name", "Oat bread", "Oat bread", 0.8, FieldStatus.OK, (evidence,)),
        FieldValue("items/0/price", 2.95, "2.95", 0.8, FieldStatus.OK, (evidence,)),
        FieldValue("items/1/name", "Soap", "Soap", 0.8, FieldStatus.REVIEW, (evidence,)),
    )  # fmt: skip
    result = RunResult(
        source=source,
        status=ResultStatus.OK,
        document=Document(source, (Page(PageInfo(0, 300, 120), LINES),)),
        data={
            "company": "Harbour | Lane",
            "total": 13.94,
            "date": None,
            "items": [{"name": "Oat bread", "price": 2.95}, {"name": "Soap", "price": None}],
        },
        fields=fields,
        timing=Timing(
            total_ms=812.345,
            ttft_ms=700.1,
            ttft_after_input_ms=61.2,
            stages=(
                StageTiming("ocr.detect", 1, 310.0, 590.0),
                StageTiming("llm.prefill", 7, 280.5, 500.0, 405),
            ),
            peak_rss_mb=612.5,
        ),
        models=(ModelUse("llm", "tiny", "ab" * 32, "Apache-2.0"),),
        schema_name="receipt",
    )
    return replace(result, **changes)


class FakePipeline:
    """Gives `make_result` for every document; `broken.*` cannot be read, `bug.*` is a bug."""

    def __init__(self, options: Any = None) -> None:
        self.options = options
        self.recorder = Recorder()
        self.sources: list[Any] = []
        self.is_warm = False
        self.is_closed = False
        self.is_reading = False

    def warm_up(self) -> None:
        self.is_warm = True

    def events(self, source: Any) -> Generator[Event]:
        self.sources.append(source)
        self.is_reading = True
        try:
            yield from self._read(source)
        finally:
            self.is_reading = False

    def _read(self, source: Any) -> Generator[Event]:
        self.recorder = Recorder()
        name = source.name if isinstance(source, Path) else "bytes"
        result = make_result(str(source))
        with self.recorder.span("ocr.detect"):
            for page in result.document.pages:
                yield PageFound(page.info)
                yield from (LineRead(line) for line in page.lines)
        if name.startswith("broken"):
            raise UnreadableInput(f"{name} is not a picture.", hint="convert it", stage="ocr.load")
        if name.startswith("bug"):
            raise KeyError("a bug")
        if name.startswith("stop"):
            raise KeyboardInterrupt
        if self.options is not None and self.options.schema is None:
            result = replace(result, data=None, fields=(), schema_name=None)
        decided = result.fields[::-1]
        yield from (FieldDecided(field) for field in decided)
        yield Result(replace(result, fields=decided))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert not self.is_reading, "closed in the middle of a document"
        self.is_closed = True


@pytest.fixture
def fake_pipeline() -> type[FakePipeline]:
    return FakePipeline


@pytest.fixture
def result() -> RunResult:
    return make_result()


@pytest.fixture
def result_with() -> Callable[..., RunResult]:
    return make_result


@pytest.fixture
def pipelines(monkeypatch: pytest.MonkeyPatch) -> list[FakePipeline]:
    """The pipelines that `edge-run ocr` opened, all of them fakes."""
    from edge_runtime.cli import ocr_command

    opened: list[FakePipeline] = []

    def open_fake(options: Any) -> FakePipeline:
        opened.append(FakePipeline(options))
        return opened[-1]

    monkeypatch.setattr(ocr_command, "open_pipeline", open_fake)
    return opened


@pytest.fixture
def picture(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a small white PNG file of a given name."""

    def make(name: str) -> Path:
        from PIL import Image

        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (300, 120), "white").save(path, "PNG")
        return path

    return make
