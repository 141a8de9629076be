"""The tiny model of the tests is a real one: llama.cpp loads it and repeats itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.make_tiny_gguf import byte_symbols, main, vocabulary, write_tiny_gguf


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    first = write_tiny_gguf(tmp_path / "a.gguf", seed=3).read_bytes()
    assert write_tiny_gguf(tmp_path / "b.gguf", seed=3).read_bytes() == first
    assert write_tiny_gguf(tmp_path / "c.gguf", seed=4).read_bytes() != first


def test_vocabulary_has_each_byte_once_and_special_tokens_last() -> None:
    assert len(set(byte_symbols())) == 256
    tokens, types = vocabulary()
    assert len(set(tokens)) == len(tokens) == len(types) == 267
    assert tokens[-3:] == ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


@pytest.mark.parametrize("shape", [{"head_dim": 7}, {"head_dim": 0}, {"n_heads_kv": 3}])
def test_impossible_shapes_are_refused(tmp_path: Path, shape: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="head"):
        write_tiny_gguf(tmp_path / "m.gguf", **shape)


@pytest.mark.parametrize("head_dim", [32, 64, 80, 96, 128])
def test_llama_cpp_loads_it_and_decodes_alike_twice(tmp_path: Path, head_dim: int) -> None:
    import llama_cpp

    path = write_tiny_gguf(tmp_path / "m.gguf", head_dim=head_dim)
    outputs: list[list[int]] = []
    for _ in range(2):
        model = llama_cpp.Llama(str(path), n_ctx=256, n_threads=1, n_threads_batch=1, verbose=False)
        text = "the inner total: 12.00 \N{EURO SIGN}".encode()
        tokens = model.tokenize(text, add_bos=False)
        assert model.detokenize(tokens) == text
        assert len(tokens) < len(text)
        prompt = model.tokenize(b"<|im_start|>user\nhi<|im_end|>\n", add_bos=False, special=True)
        produced: list[int] = []
        for token in model.generate(prompt, temp=0.0):
            produced.append(token)
            if len(produced) == 16:
                break
        outputs.append(produced)
        model.close()
    assert outputs[0] == outputs[1]
    assert len(set(outputs[0])) > 3


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.gguf"
    assert main([str(path), "--head-dim", "32", "--base"]) == 0
    assert str(path.stat().st_size) in capsys.readouterr().out
