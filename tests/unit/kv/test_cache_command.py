import argparse
import json
import os

import pytest

from edge_runtime.cli import cache_command
from edge_runtime.kv.prefix_key import PrefixKey
from edge_runtime.kv.prefix_store import PrefixStore, default_root

KEY = PrefixKey("c0ffee" * 10, "tok", "build", "f16", "q8_0", flash_attn=True)


def run(capsys, *words: str):
    parser = argparse.ArgumentParser()
    cache_command.add_parser(parser.add_subparsers())
    code = cache_command.run(parser.parse_args(["cache", *words]))
    return code, capsys.readouterr().out


@pytest.fixture
def filled() -> PrefixStore:
    store = PrefixStore(default_root(), block_tokens=4)
    store.put(KEY, list(range(8)), [b"x" * 1000, b"y" * 1000])
    return store


def test_an_empty_cache_is_no_error(capsys):
    assert run(capsys, "ls") == (0, "nothing stored\n")
    assert run(capsys, "verify")[0] == 0
    assert run(capsys, "clear") == (0, "0.0 MiB freed\n")


@pytest.mark.usefixtures("filled")
def test_the_list_says_what_blocks_belong_to(capsys):
    code, out = run(capsys, "ls")
    assert code == 0
    assert "model c0ffeec0ffee" in out
    assert "KV f16/q8_0 flash" in out
    assert "2 blocks" in out
    (group,) = json.loads(run(capsys, "ls", "--json")[1])
    assert group["key"]["type_v"] == "q8_0"
    assert group["n_blocks"] == 2


@pytest.mark.usefixtures("filled")
def test_the_size_and_place_are_told(capsys):
    stat = json.loads(run(capsys, "stat", "--json")[1])
    assert stat["n_blocks"] == 2
    assert stat["bytes"] == 2 * (1000 + 128)
    assert stat["root"] == str(default_root())
    assert "2 blocks" in run(capsys, "stat")[1]


@pytest.mark.usefixtures("filled")
def test_damage_is_reported_once_with_exit_code_one(capsys):
    victim = min(default_root().rglob("*.kvb"))
    os.truncate(victim, 500)
    code, out = run(capsys, "verify", "--json")
    assert code == 1
    report = json.loads(out)
    assert report["n_blocks"] == 1
    assert report["damaged"][0]["block"].endswith(victim.name)
    assert run(capsys, "verify")[0] == 0


@pytest.mark.usefixtures("filled")
def test_clearing_frees_everything(capsys):
    assert json.loads(run(capsys, "clear", "--json")[1]) == {"freed_bytes": 2 * (1000 + 128)}
    assert run(capsys, "ls")[1] == "nothing stored\n"
