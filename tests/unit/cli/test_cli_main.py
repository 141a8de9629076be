from __future__ import annotations

import json
from pathlib import Path

import pytest

from edge_runtime import __version__, resources
from edge_runtime.cli import error_report, main, schema_command
from edge_runtime.errors import ContextOverflow


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> object:
    """Makes `edge-run schema list` raise what it is told to."""

    def set_error(err: BaseException) -> None:
        def fail(_: object) -> int:
            raise err

        monkeypatch.setattr(schema_command, "run", fail)

    return set_error


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"edge-run {__version__}\n"


def test_without_a_command_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "edge-run" in err


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in main.COMMANDS:
        with pytest.raises(SystemExit) as caught:
            main.main([name, "--help"])
        assert caught.value.code == 0
        assert f"edge-run {name}" in capsys.readouterr().out


def test_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["orc", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["category"] == "usage"
    assert "orc" in err


def test_expected_error_has_message_hint_and_code(
    command: object, capsys: pytest.CaptureFixture[str]
) -> None:
    command(ContextOverflow("Too long.", hint="--ctx 4096"))  # type: ignore[operator]
    assert main.main(["schema", "list", "--json"]) == 4
    out, err = capsys.readouterr()
    assert err == "error: Too long.\n  hint: --ctx 4096\n"
    assert json.loads(out)["error"] == ContextOverflow("Too long.", hint="--ctx 4096").to_dict()


def test_unexpected_error_keeps_its_traceback_in_a_file(
    command: object, capsys: pytest.CaptureFixture[str]
) -> None:
    command(RuntimeError("odd"))  # type: ignore[operator]
    assert main.main(["schema", "list", "--json"]) == 1
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    error = json.loads(out)["error"]
    assert error["details"]["error_id"] in err
    assert "--debug" in err
    kept = Path(error["details"]["traceback"])
    assert kept.parent == resources.cache_dir() / "errors"
    assert "RuntimeError: odd" in kept.read_text("utf-8")


def test_debug_shows_the_traceback_wherever_it_stands(
    command: object, capsys: pytest.CaptureFixture[str]
) -> None:
    command(RuntimeError("odd"))  # type: ignore[operator]
    for words in (["--debug", "schema", "list"], ["schema", "list", "--debug"]):
        assert main.main(words) == 1
        assert "Traceback" in capsys.readouterr().err


def test_only_the_last_tracebacks_are_kept(command: object) -> None:
    command(RuntimeError("odd"))  # type: ignore[operator]
    for _ in range(25):
        main.main(["schema", "list"])
    assert len(list((resources.cache_dir() / "errors").iterdir())) == 20


def test_unwritable_cache_does_not_hide_the_error(
    command: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_RUNTIME_CACHE", "/dev/null/cache")
    command(RuntimeError("odd"))  # type: ignore[operator]
    assert main.main(["schema", "list"]) == 1
    assert "RuntimeError: odd" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("err", "code", "category"),
    [
        (MemoryError(), 4, "resource"),
        (KeyboardInterrupt(), 130, "cancelled"),
        (ValueError("x"), 1, "stage"),
    ],
)
def test_every_exception_has_a_code_and_category(
    err: BaseException, code: int, category: str
) -> None:
    facts, found = error_report.describe(err)
    assert (found, facts["category"]) == (code, category)
    assert set(facts) == {"type", "category", "message", "hint", "stage", "details"}


def test_signal_handlers_are_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    import signal

    before = signal.getsignal(signal.SIGTERM)
    main.main(["schema", "result"])
    assert signal.getsignal(signal.SIGTERM) is before


def test_schema_result_prints_the_published_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["schema", "result"]) == 0
    assert json.loads(capsys.readouterr().out)["$id"] == "urn:edge-runtime:result:1.0"


def test_schema_list_names_the_presets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["schema", "list", "--json"]) == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)]
    assert {"auto", "form", "id-card", "invoice", "receipt"} <= set(names)
    assert main.main(["schema", "list"]) == 0
    assert all(name in capsys.readouterr().out for name in ("receipt",))


def test_schema_show_prints_json_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["schema", "show", '{"when": "date"}']) == 0
    assert "when" in json.loads(capsys.readouterr().out)["properties"]


def test_schema_check_says_what_is_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    template = '{"when": "date", "rows": [{"price": "amount"}]}'
    assert main.main(["schema", "check", template, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)["fields"]
    assert [(row["path"], row["kind"]) for row in fields] == [
        ("when", "date"),
        ("rows/*/price", "amount"),
    ]
    assert main.main(["schema", "check", template]) == 0
    assert "rows/*/price" in capsys.readouterr().out


def test_bad_schema_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["schema", "check", "no-such-preset"]) == 2
    assert "receipt" in capsys.readouterr().err


@pytest.mark.parametrize("variable", ["EDGE_RUNTIME_HOME", "EDGE_RUNTIME_MODELS"])
def test_a_home_of_nobody_is_wrong_usage(
    variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, "~no-such-user-here/models")
    assert main.main(["models", "list"]) == 2
    assert variable in capsys.readouterr().err


def test_an_unexpected_error_is_told_where_no_traceback_can_be_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EDGE_RUNTIME_CACHE", "~no-such-user-here/cache")
    facts, code = error_report.describe(KeyError("a bug"))
    assert code == 1
    assert facts["details"]["traceback"] is None


def test_errors_are_told_with_closed_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    assert error_report.report(ContextOverflow("too long"), as_json=True, debug=False) == 4
