"""`edge-run ocr` with a pipeline that gives made-up results."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge_runtime.cli.main import main
from edge_runtime.cli.ocr_inputs import is_batch

Picture = Callable[[str], Path]
Pipelines = list[Any]


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_of_one_document_is_one_object(
    pipelines: Pipelines, picture: Picture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = picture("a.png")
    assert main(["ocr", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["source"] == str(path)
    assert found["data"]["total"] == 13.94
    assert pipelines[0].is_warm
    assert pipelines[0].is_closed


def test_without_a_terminal_the_default_is_plain_text(
    pipelines: Pipelines, picture: Picture, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ocr", str(picture("a.png"))]) == 0
    out, err = capsys.readouterr()
    assert "13.94" in out
    assert "\x1b" not in out
    assert err == ""


def test_flags_reach_the_pipeline(pipelines: Pipelines, picture: Picture) -> None:
    flags = (
        "--schema receipt --model m.gguf --ocr-model o --engine paddle --strategy select "
        "--threads 3 --ctx 1024 --password p --pages 1-2 --dpi 150 --text-layer never "
        "--rotate 90 --min-confidence 0.4 --locale de_DE --timeout 9.5 --no-cache"
    )
    main(["ocr", str(picture("a.png")), *flags.split()])
    options = pipelines[0].options
    wanted = {
        "schema": "receipt",
        "model": "m.gguf",
        "ocr_model": "o",
        "engine": "paddle",
        "strategy": "select",
        "n_threads": 3,
        "n_ctx": 1024,
        "password": "p",
        "pages": "1-2",
        "dpi": 150,
        "text_layer": "never",
        "rotate": 90,
        "min_confidence": 0.4,
        "locale": "de_DE",
        "prefix_cache": False,
        "deadline_s": 9.5,
    }
    assert {name: getattr(options, name) for name in wanted} == wanted


def test_without_flags_the_pipeline_has_its_defaults(
    pipelines: Pipelines, picture: Picture
) -> None:
    from edge_runtime.pipeline.options import PipelineOptions

    main(["ocr", str(picture("a.png"))])
    assert pipelines[0].options == PipelineOptions()


def test_recipe_gives_defaults_that_flags_override(pipelines: Pipelines, picture: Picture) -> None:
    main(["ocr", str(picture("a.png")), "--recipe", "receipt"])
    main(["ocr", str(picture("a.png")), "--recipe", "receipt", "--schema", "invoice"])
    assert [pipeline.options.schema for pipeline in pipelines] == ["receipt", "invoice"]


def test_ocr_only_needs_no_language_model(
    pipelines: Pipelines, picture: Picture, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["ocr", str(picture("a.png")), "--ocr-only", "--format", "text"])
    assert pipelines[0].options.schema is None
    assert pipelines[0].options.model is None
    assert capsys.readouterr().out == "Harbour | Lane\nTotal\t13,94\n1. first *item*\n"


@pytest.mark.parametrize(
    "flags",
    [
        "--ocr-only --schema receipt",
        "--ocr-only --strategy select",
        "--no-model --model x",
        "--no-model --strategy generate",
        "--json --format csv",
        "--resume",
        "--resume -o x.csv",
        "--resume --overwrite -o x.jsonl",
        "--min-confidence 2",
        "--threads 0",
        "--timeout -1",
        "--timeout inf",
        "--timeout nan",
        "--rotate 45",
        "--ocr-only --format csv-wide",
        "--schem receipt",
    ],
)
def test_wrong_usage_ends_with_2_before_anything_is_loaded(
    flags: str, pipelines: Pipelines, picture: Picture, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ocr", str(picture("a.png")), *flags.split()]) == 2
    out, err = capsys.readouterr()
    assert out == "" or json.loads(out)["error"]["category"] == "usage"
    assert err.startswith("error: ")
    assert pipelines == []


def test_broken_document_has_its_own_exit_code_and_json(
    pipelines: Pipelines, picture: Picture, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ocr", str(picture("broken.png")), "--json"]) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["status"] == "failed"
    assert found["error"]["type"] == "UnreadableInput"
    assert len(found["pages"][0]["lines"]) == 4, "lines read before the failure are kept"
    assert "is not a picture" in err
    assert "convert it" in err


def test_batch_goes_on_past_a_bad_file(
    pipelines: Pipelines, picture: Picture, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [picture(name) for name in ("a.png", "broken.png", "bug.png", "z.png")]
    assert main(["ocr", *map(str, paths), "--json"]) == 1
    out, err = capsys.readouterr()
    found = records(out)
    assert [row["source"] for row in found] == [str(path) for path in paths]
    assert [row["status"] for row in found] == ["ok", "failed", "failed", "ok"]
    assert "2 of 4 documents failed" in err
    assert "Traceback" not in err
    assert len(pipelines) == 1, "models are loaded once"


def test_progress_is_a_line_per_document_on_stderr(
    pipelines: Pipelines, picture: Picture, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(picture(name)) for name in ("a.png", "b.png")]
    main(["ocr", *paths, "--json"])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"[1/2] {paths[0]}: ok, 812 ms, 4 lines, 6 fields, 2 to review"
    assert lines[1].startswith("[2/2]")
    main(["ocr", *paths, "--json", "-q"])
    assert capsys.readouterr().err == ""


def test_fail_fast_stops_with_the_document_s_code(
    pipelines: Pipelines, picture: Picture, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(picture(name)) for name in ("broken.png", "z.png")]
    assert main(["ocr", *paths, "--json", "--fail-fast"]) == 1
    assert len(records(capsys.readouterr().out)) == 1


def test_error_of_every_document_ends_the_batch(
    pipelines: Pipelines,
    fake_pipeline: type[Any],
    picture: Picture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from edge_runtime.errors import ModelNotFound

    def missing(self: object) -> None:
        raise ModelNotFound("No such model.", hint="edge-run models pull x")

    monkeypatch.setattr(fake_pipeline, "warm_up", missing)
    paths = [str(picture(name)) for name in ("a.png", "b.png")]
    assert main(["ocr", *paths, "--json", "-o", str(picture("c.png").with_name("o.jsonl"))]) == 3
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["hint"] == "edge-run models pull x"
    assert err.count("No such model") == 1
    assert not picture("c.png").with_name("o.jsonl").exists()


def test_interrupt_ends_with_130_and_keeps_finished_results(
    pipelines: Pipelines, picture: Picture, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    paths = [str(picture(name)) for name in ("a.png", "stop.png", "z.png")]
    assert main(["ocr", *paths, "-o", str(out)]) == 130
    assert [row["source"] for row in records(out.read_text("utf-8"))] == [paths[0]]
    assert "Traceback" not in capsys.readouterr().err
    assert pipelines[0].is_closed


def test_interrupt_while_progress_is_shown_stops_the_document_first(
    pipelines: Pipelines, picture: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edge_runtime.cli.ocr_progress import Progress

    def interrupted(self: Progress, event: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "watch", interrupted)
    assert main(["ocr", str(picture("a.png"))]) == 130
    assert pipelines[0].is_closed


def test_resume_reads_only_what_has_no_result(
    pipelines: Pipelines, picture: Picture, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    names = ("a.png", "broken.png", "c.png")
    paths = [picture(name) for name in names]
    assert main(["ocr", *map(str, paths[:2]), "-o", str(out)]) == 1
    capsys.readouterr()
    torn = out.read_text("utf-8") + '{"source": "half'
    out.write_text(torn, "utf-8")
    assert main(["ocr", *map(str, paths), "-o", str(out), "--resume"]) == 1
    assert pipelines[1].sources == [paths[2]]
    assert [row["source"] for row in records(out.read_text("utf-8"))] == [str(p) for p in paths]
    assert "2 documents have a result already, 1 of them failed" in capsys.readouterr().err


def test_existing_results_are_safe_without_resume_or_overwrite(
    pipelines: Pipelines, picture: Picture, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    paths = [str(picture(name)) for name in ("a.png", "b.png")]
    assert main(["ocr", *paths, "-o", str(out)]) == 0
    before = out.read_text("utf-8")
    assert main(["ocr", *paths, "-o", str(out)]) == 2
    assert out.read_text("utf-8") == before
    assert len(pipelines) == 1, "refused before models are loaded"
    assert main(["ocr", *paths[:1], str(picture("c.png")), "-o", str(out), "--overwrite"]) == 0
    assert [Path(row["source"]).name for row in records(out.read_text("utf-8"))] == [
        "a.png",
        "c.png",
    ]
    assert "--overwrite" in capsys.readouterr().err


def test_one_file_is_replaced_whole(pipelines: Pipelines, picture: Picture, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("old")
    path = picture("a.png")
    assert main(["ocr", str(path), "-o", str(out)]) == 0
    assert json.loads(out.read_text("utf-8"))["source"] == str(path)
    assert {item.name for item in tmp_path.iterdir()} == {"a.png", "out.json"}


def test_folder_gets_a_file_per_input_and_resumes(
    pipelines: Pipelines, picture: Picture, tmp_path: Path
) -> None:
    inbox = tmp_path / "inbox"
    for name in ("inbox/a.png", "inbox/x/b.png", "inbox/y/b.png"):
        picture(name)
    out = tmp_path / "out"
    assert main(["ocr", str(inbox), "-o", str(out), "-q"]) == 0
    names = sorted(path.name for path in out.iterdir())
    assert names[0] == "a.png.json"
    assert [name[-len("x__b.png.json") :] for name in names[1:]] == [
        "x__b.png.json",
        "y__b.png.json",
    ]
    (out / "a.png.json").unlink()
    assert main(["ocr", str(inbox), "-o", str(out), "-q", "--resume"]) == 0
    assert [source.name for source in pipelines[1].sources] == ["a.png"]


def test_csv_of_a_batch_has_one_header(
    pipelines: Pipelines, picture: Picture, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(picture(name)) for name in ("a.png", "b.png")]
    main(["ocr", *paths, "--format", "csv", "-q"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 2 * 6
    assert sum(line.startswith("source,") for line in lines) == 1


def test_wide_csv_takes_its_columns_from_the_schema(
    pipelines: Pipelines, picture: Picture, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = '{"total": "amount", "company": "string"}'
    main(["ocr", str(picture("a.png")), "--format", "csv-wide", "--schema", schema])
    head, row = capsys.readouterr().out.splitlines()
    assert head.split(",")[2:4] == ["total", "company"]
    assert row.split(",")[2:4] == ["13.94", "Harbour | Lane"]


def test_standard_input_is_read_once_and_named_dash(
    pipelines: Pipelines,
    picture: Picture,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = picture("a.png").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["ocr", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "-"
    assert pipelines[0].sources == [data]


def test_trace_and_overlay_are_written(
    pipelines: Pipelines, picture: Picture, tmp_path: Path
) -> None:
    trace, overlay = tmp_path / "t" / "trace.json", tmp_path / "boxes.png"
    main(["ocr", str(picture("a.png")), "--trace", str(trace), "--overlay", str(overlay)])
    events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    assert [event["name"] for event in events] == ["ocr.detect"]
    assert overlay.read_bytes().startswith(b"\x89PNG")


def test_trace_and_overlay_of_a_batch_are_folders(
    pipelines: Pipelines, picture: Picture, tmp_path: Path
) -> None:
    paths = [str(picture(name)) for name in ("a.png", "b.png")]
    extras = tmp_path / "extras"
    main(["ocr", *paths, "-q", "--trace", str(extras), "--overlay", str(extras)])
    assert sorted(path.name for path in extras.iterdir()) == [
        "a.png.png",
        "a.png.trace.json",
        "b.png.png",
        "b.png.trace.json",
    ]


def test_missing_file_in_a_batch_fails_alone(
    pipelines: Pipelines, picture: Picture, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(picture("a.png")), str(tmp_path / "broken-and-gone.png")]
    assert main(["ocr", *paths, "--json", "-q"]) == 1
    assert [row["status"] for row in records(capsys.readouterr().out)] == ["ok", "failed"]


def test_folder_of_one_document_is_a_batch_all_the_same(
    pipelines: Pipelines, picture: Picture, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = picture("inbox/a.png").parent
    main(["ocr", str(folder), "--json", "-q"])
    assert len(records(capsys.readouterr().out)) == 1


@pytest.mark.parametrize("option", ["--overlay", "--trace"])
def test_an_extra_that_cannot_be_written_keeps_the_result_and_says_so(
    option: str,
    pipelines: Pipelines,
    picture: Picture,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").write_text("in the way")
    place = str(tmp_path / "file" / "x.png")
    assert main(["ocr", str(picture("a.png")), "--json", option, place]) == 2
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["status"] == "degraded"
    assert "cannot be written" in found["degraded"][0]
    assert found["data"]["total"] == 13.94
    assert "cannot be written" in err


@pytest.mark.parametrize("option", ["-o", "--overlay", "--trace"])
def test_the_document_itself_is_never_written_over(
    option: str, pipelines: Pipelines, picture: Picture
) -> None:
    path = picture("a.png")
    before = path.read_bytes()
    assert main(["ocr", str(path), option, str(path)]) == 2
    assert path.read_bytes() == before
    assert not pipelines


def test_two_outputs_never_share_a_file(
    pipelines: Pipelines, picture: Picture, tmp_path: Path
) -> None:
    same = tmp_path / "same.json"
    code = main(["ocr", str(picture("a.png")), "-o", str(same), "--trace", str(same)])
    assert code == 2
    assert not same.exists()


def test_an_empty_input_name_is_refused(
    pipelines: Pipelines, picture: Picture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture("a.png")
    monkeypatch.chdir(tmp_path)
    assert main(["ocr", ""]) == 2


def test_a_name_longer_than_the_system_takes_is_one_failed_document(pipelines: Pipelines) -> None:
    assert not is_batch(["/" + "a" * 5000])
    assert not is_batch(["~no-such-user-here/a.png"])
