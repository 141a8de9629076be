"""`edge-run` in child processes, as a shell would start it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Start = Callable[..., "subprocess.Popen[bytes]"]
ROOT = Path(__file__).resolve().parents[2]

# `edge-run ocr` with a pipeline that needs no models and takes 0.1 s a document
SLOW_PIPELINE = """
    import contextlib, signal, sys, time
    # a test run in the background may have been started with interrupts ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from edge_runtime.cli import main, ocr_command
    from edge_runtime.events import Result
    from edge_runtime.trace import Recorder
    from edge_runtime.values import Document, Page, PageInfo, ResultStatus, RunResult, Timing

    class Slow:
        recorder = Recorder()

        def warm_up(self):
            pass

        def events(self, source):
            time.sleep(0.1)
            page = Page(PageInfo(0, 10, 10))
            yield Result(RunResult(
                source="", status=ResultStatus.OK, document=Document("", (page,) * 50),
                data={}, fields=(), timing=Timing(total_ms=1.0), schema_name="auto",
            ))

    ocr_command.open_pipeline = lambda options: contextlib.nullcontext(Slow())
    sys.exit(main.main(sys.argv[1:]))
"""


def edge_run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edge_runtime", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, **options)  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def start_slow() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts `edge-run` with the slow pipeline; whatever still runs at the end is ended."""
    with contextlib.ExitStack() as cleanup:

        def start(*words: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(SLOW_PIPELINE), *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=ROOT,
            )
            cleanup.enter_context(process)
            cleanup.callback(process.kill)
            return process

        yield start


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """A folder of forty files that look like pictures by their names."""
    folder = tmp_path / "inbox"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number:02}.png").write_bytes(b"not read by the slow pipeline")
    return folder


def wait_for_lines(path: Path, n_lines: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= n_lines:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} did not get {n_lines} lines")


def sources(path: Path) -> list[str]:
    return [json.loads(line)["source"] for line in path.read_text("utf-8").splitlines()]


def test_version_and_help() -> None:
    assert edge_run("--version").stdout.startswith("edge-run ")
    done = edge_run("--help")
    assert done.returncode == 0
    assert "exit codes" in done.stdout
    assert done.stderr == ""


def test_installed_script_is_the_same_program() -> None:
    script = Path(sys.executable).with_name("edge-run")
    if not script.exists():
        pytest.skip("edge-run is not installed in this environment")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == edge_run("--version").stdout


def test_wrong_usage_leaves_stdout_empty() -> None:
    done = edge_run("ocr", "x.png", "--no-such-flag")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--no-such-flag" in done.stderr


def test_killed_batch_keeps_finished_results_and_resumes(
    start_slow: Start, inbox: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    words = ("ocr", str(inbox), "-o", str(out), "-q")
    running = start_slow(*words)
    wait_for_lines(out, 3)
    running.kill()
    running.communicate()
    finished = out.read_text("utf-8").splitlines(keepends=True)
    n_whole = sum(line.endswith("\n") for line in finished)
    assert 3 <= n_whole < 40
    second = start_slow(*words, "--resume")
    second.communicate(timeout=60)
    assert second.returncode == 0
    assert sources(out) == [str(path) for path in sorted(inbox.iterdir())]
    assert out.read_text("utf-8").splitlines(keepends=True)[:n_whole] == finished[:n_whole]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_interrupted_batch_ends_in_order(
    start_slow: Start, number: signal.Signals, code: int, inbox: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    running = start_slow("ocr", str(inbox), "-o", str(out), "-q")
    wait_for_lines(out, 2)
    running.send_signal(number)
    _, err = running.communicate(timeout=20)
    assert running.returncode == code
    assert b"Traceback" not in err
    assert 2 <= len(sources(out)) < 40
    assert sorted(item.name for item in tmp_path.iterdir()) == ["inbox", "out.jsonl"]


def test_reader_that_leaves_ends_the_batch_quietly(start_slow: Start, inbox: Path) -> None:
    running = start_slow("ocr", str(inbox), "--json", "-q")
    assert running.stdout is not None
    first = running.stdout.readline()
    running.stdout.close()
    assert json.loads(first)["status"] == "ok"
    assert running.wait(timeout=60) == 141
    assert running.stderr is not None
    assert running.stderr.read() == b""


def test_output_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    template = tmp_path / "template.json"
    template.write_text('{"größe": "string"}', encoding="utf-8")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "edge_runtime", "schema", "show", str(template)],
        capture_output=True,
        cwd=ROOT,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "größe" in done.stdout.decode("utf-8")


def test_full_disk_is_a_clear_error() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "edge_runtime", "schema", "result"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            check=False,
        )
    assert done.returncode == 4
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("redirect", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_error(redirect: str) -> None:
    command = f"exec {sys.executable} -m edge_runtime schema list {redirect}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False, cwd=ROOT)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
