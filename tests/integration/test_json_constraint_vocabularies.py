"""Constraints over real vocabularies: byte pairs, and pieces that like a space before them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge_runtime.llm.document_spans import DocumentSpans
from edge_runtime.llm.grammar_vocabulary import special_tokens
from edge_runtime.llm.json_constraint import JsonConstraint
from edge_runtime.llm.llama_cpp_engine import LlamaCppEngine
from edge_runtime.llm.llama_cpp_options import LlamaOptions
from edge_runtime.llm.sampling import allowed_tokens
from tests.support.llama_models import write_sentencepiece_gguf
from tools.make_tiny_gguf import write_tiny_gguf

LINES = ("TAN WOON YANN", "27, JALAN DEDAP 13,", "TOTAL 60.30")
SCHEMA = {
    "type": "object",
    "properties": {
        "the": {"type": "string"},
        "total": {"type": ["number", "null"]},
        "list": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
    },
    "required": ["the", "total", "list"],
}


@pytest.fixture(scope="module", params=["byte pairs", "sentence pieces"])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LlamaCppEngine]:
    path: Path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    write = write_tiny_gguf if request.param == "byte pairs" else write_sentencepiece_gguf
    with LlamaCppEngine.load(write(path), LlamaOptions(n_ctx=256, n_threads=1)) as engine:
        yield engine


def walk(constraint: JsonConstraint, rng: random.Random) -> str:
    engine = constraint.engine
    tokens: list[int] = []
    while not constraint.is_done:
        forced = constraint.forced()
        choices = allowed_tokens(constraint.mask(), engine.capabilities.n_vocab).tolist()
        if forced:
            assert choices == forced[:1]
            constraint.advance_many(forced)
            tokens += forced
            continue
        token = rng.choice([choice for choice in choices if choice not in engine.eos_ids])
        constraint.advance(token)
        tokens.append(token)
        assert len(tokens) < 3000
    assert not set(tokens) & special_tokens(engine)
    return engine.detokenize(tokens).decode()


@pytest.mark.parametrize("seed", range(8))
def test_any_allowed_way_leads_to_json_of_the_document(engine, seed):
    spans = DocumentSpans(LINES)
    constraint = JsonConstraint.from_schema(engine, SCHEMA, spans=spans)
    text = walk(constraint, random.Random(seed))
    value = json.loads(text)
    assert not re.search(r"\s", re.sub(r'"(?:[^"\\]|\\.)*"', "", text))
    assert spans.allows(value["the"])
    assert all(spans.allows(item) for item in value["list"])


def test_marks_are_found_and_ordinary_tokens_are_not(engine):
    marks = special_tokens(engine)
    assert engine.eos_ids <= marks
    assert not marks & set(engine.tokenize('{"the":"<a> [b]"}'))


def test_forced_beginnings_spell_the_grammar_exactly(engine):
    constraint = JsonConstraint.from_schema(engine, SCHEMA)
    assert engine.detokenize(constraint.forced()) == b'{"the":"'
