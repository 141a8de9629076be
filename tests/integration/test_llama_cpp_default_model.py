"""The default model through the real engine: what random weights cannot show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edge_runtime.kv.prefix_store import PrefixStore
from edge_runtime.llm.llama_cpp_engine import LlamaCppEngine
from edge_runtime.llm.llama_cpp_options import LlamaOptions
from edge_runtime.llm.prompt import PromptCompiler, Role, Segment

pytestmark = pytest.mark.models

INSTRUCTION = Segment(Role.SYSTEM, "Answer with the total of the receipt only.", pinned=True)
RECEIPT = ["CORNER SHOP\n", "Milk 1.20\n", "Bread 2.35\n", "TOTAL 3.55\n", "Thank you<|im_end|>\n"]


@pytest.fixture
def engine(real_models: Path) -> Iterator[LlamaCppEngine]:
    from edge_runtime.models.store import resolve

    resolved = resolve("smollm2-135m-instruct", role="llm", variant="original")
    options = LlamaOptions(n_ctx=512, chunk_tokens=64)
    with LlamaCppEngine.load(
        resolved.path, options, sha256=resolved.sha256, prefix_store=PrefixStore(None)
    ) as engine:
        yield engine


def test_a_receipt_is_fed_line_by_line_and_its_total_is_preferred(engine: LlamaCppEngine) -> None:
    compiler = PromptCompiler(engine)
    assert compiler.template.family == "chatml"
    assert compiler.template.default_system
    segments = [INSTRUCTION]
    with engine.open_session() as session:
        for line in RECEIPT:
            n_before = len(session.tokens)
            segments.append(Segment(Role.DOCUMENT, line))
            report = session.sync(compiler.open_tokens(segments), keep_logits=False)
            assert report.n_reused == n_before
        segments.append(Segment(Role.QUESTION, "What is the total?"))
        session.sync(compiler.tokens(segments, open_answer=True, answer_prefix="TOTAL "))
        assert sum(token in engine.eos_ids for token in session.tokens) == 2
        options = [engine.tokenize(text) for text in ("3.55", "1.20", "9.99")]
        scored = session.score(options)
        assert scored[0].mean_logprob == max(s.mean_logprob for s in scored)


def test_scores_in_one_batch_agree_with_decoding_one_by_one(engine: LlamaCppEngine) -> None:
    with engine.open_session() as session:
        head = engine.tokenize("The invoice of 3 May 2024 has a total of ")
        session.sync(head)
        continuations = [engine.tokenize(text) for text in ("12.40 euro", "12.45 euro", "May")]
        scored = session.score(continuations)
        for continuation, batch in zip(continuations, scored, strict=True):
            values: list[float] = []
            session.sync(head)
            for token in continuation:
                row = session.logits().astype(np.float64)
                row -= row.max()
                values.append(float(row[token] - np.log(np.exp(row).sum())))
                session.append([token])
            np.testing.assert_allclose(batch.token_logprobs, values, atol=0.15)
            session.sync(head)


def test_a_stored_prefix_leads_to_the_same_answer(engine: LlamaCppEngine) -> None:
    compiler = PromptCompiler(engine)
    segments = [INSTRUCTION, *(Segment(Role.DOCUMENT, line) for line in RECEIPT)]
    tokens = compiler.tokens(segments, open_answer=True)
    with engine.open_session() as session:
        session.sync(tokens[: compiler.n_pinned(segments)])
        session.store_prefix(compiler.n_pinned(segments))
        session.sync(tokens)
        first = [session.next() for _ in range(12)]
    with engine.open_session() as session:
        report = session.sync(tokens)
        assert report.n_restored == compiler.n_pinned(segments)
        assert [session.next() for _ in range(12)] == first
