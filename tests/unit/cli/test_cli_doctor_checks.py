from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from edge_runtime.cli import doctor_checks, doctor_command
from edge_runtime.cli.doctor_checks import Check, State
from edge_runtime.cli.main import main


def test_child_that_crashes_is_named() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    assert doctor_checks.ask_child(code) == "crashed with SIGSEGV"


def test_child_that_fails_is_quoted() -> None:
    said = doctor_checks.ask_child("import no_such_module")
    assert said == "ModuleNotFoundError: No module named 'no_such_module'"


def test_child_that_answers() -> None:
    assert doctor_checks.ask_child("print('noise'); print('{\"a\": 1}')") == {"a": 1}


def test_folder_that_cannot_be_written_to_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    check = doctor_checks.check_folder("cache folder", tmp_path / "file" / "sub", "VARIABLE")
    assert check.state is State.WARN
    assert "VARIABLE" in (check.fix or "")


def test_folder_check_leaves_nothing_behind(tmp_path: Path) -> None:
    assert doctor_checks.check_folder("x", tmp_path / "new", "V").state is not State.FAIL
    assert list((tmp_path / "new").iterdir()) == []


def test_missing_models_fail_with_the_command_that_pulls_them() -> None:
    checks = list(doctor_checks.check_models())
    failed = [check for check in checks if check.state is State.FAIL]
    assert any(check.fix == "edge-run models pull smollm2-135m-instruct" for check in failed)


def test_low_disk_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_checks, "_LOW_DISK_BYTES", 1 << 60)
    assert doctor_checks.check_folder("x", tmp_path, "V").state is State.WARN


def test_low_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor_checks.check_memory().facts["available_bytes"] > 0
    monkeypatch.setattr(doctor_checks, "_LOW_MEMORY_BYTES", 1 << 60)
    assert doctor_checks.check_memory().state is State.WARN


def test_extras_are_never_a_failure() -> None:
    assert {check.state for check in doctor_checks.check_extras()} <= {State.OK, State.NOTE}


def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, code: int = 0) -> Check:
    def run(*args: object, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], code, answer, "error: the last word\n")

    monkeypatch.setattr(subprocess, "run", run)
    return doctor_checks.check_default_job(doctor_command.draw_test_page, tmp_path)


def answer(text: str) -> str:
    return json.dumps(
        {"error": None, "pages": [{"lines": [{"text": text}]}], "timing": {"total_ms": 5.0}}
    )


def test_default_job_that_reads_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert job(monkeypatch, tmp_path, answer("TOTAL 27.80")).state is State.OK


@pytest.mark.parametrize(
    ("said", "code", "detail"),
    [
        (answer("TQTAL 2Z.8O"), 0, "was read as"),
        ("", 0, "the last word"),
        ('{"error": {"message": "Broken.", "hint": "mend it"}}', 1, "Broken."),
        ("", -11, "crashed with SIGSEGV"),
    ],
)
def test_default_job_that_does_not(
    said: str, code: int, detail: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    check = job(monkeypatch, tmp_path, said, code)
    assert check.state is State.FAIL
    assert detail in check.detail


@pytest.mark.parametrize(("state", "code"), [(State.WARN, 0), (State.FAIL, 3)])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_exit_code_says_whether_the_default_job_works(
    state: State,
    code: int,
    form: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = [Check("one", State.OK, "fine"), Check("two", state, "odd", "mend --it")]
    monkeypatch.setattr(doctor_command, "examine", lambda *, try_job: iter(found))
    assert main(["doctor", *form]) == code
    out = capsys.readouterr().out
    if form:
        said = json.loads(out)
        assert said["works"] is (code == 0)
        assert said["checks"][1]["fix"] == "mend --it"
    else:
        assert "mend --it" in out


def test_python_check_names_this_interpreter() -> None:
    assert doctor_checks.check_python().facts["executable"] == sys.executable
