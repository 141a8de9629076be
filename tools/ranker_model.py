"""Whether, and how much, a language model's opinion improves the choice among candidates."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from edge_runtime.extract.asker import Asker
from edge_runtime.extract.labels import FieldRole
from edge_runtime.extract.model_evidence import MAX_OPTIONS, ModelEvidence, opinions_on
from edge_runtime.extract.page_layout import lay_out
from edge_runtime.extract.ranking import Choice, Ranker
from edge_runtime.extract.schema import ExtractionSchema, FieldSpec
from edge_runtime.extract.strategy import document_segment
from edge_runtime.llm.llama_cpp_engine import LlamaCppEngine
from edge_runtime.llm.llama_cpp_options import LlamaOptions
from edge_runtime.llm.prompt import PromptCompiler, Segment
from edge_runtime.values import Document, Line

ASK_BELOW_MARGIN = 0.6
N_FOLDS = 5
PULL = 0.02
LEAST_GAIN = 0.01


@dataclass
class Question:
    """A doubtful field: its leading choices, which of them are right, and what to ask."""

    group: int
    spec: FieldSpec
    document: Document
    choices: tuple[Choice, ...]
    is_right: np.ndarray
    opinions: np.ndarray | None = None


def segments_of(document: Document) -> list[Segment]:
    """The document as the pipeline puts it into the prompt."""
    segments: list[Segment] = []
    previous: Line | None = None
    for row in lay_out(document).rows:
        for run in row:
            for line in run.lines:
                numbered = replace(line, row=run.row)
                segments.append(document_segment(numbered, previous))
                previous = numbered
    return segments


def ask(questions: Sequence[Question], model: Path, n_threads: int) -> None:
    """Put the model's log-probabilities (sum, mean per token) into `opinions`."""
    schema = ExtractionSchema("any", "any", {}, ())
    prefix = ModelEvidence(Ranker({})).prefix_segments(schema)
    options = LlamaOptions(n_ctx=4096, n_threads=n_threads, n_threads_batch=n_threads)
    with LlamaCppEngine.load(model, options) as engine, engine.open_session() as session:
        compiler = PromptCompiler(engine)
        for question in questions:
            asker = Asker(session, compiler, [*prefix, *segments_of(question.document)])
            scored = opinions_on(asker, question.spec, question.choices)
            question.opinions = np.array([[s.logprob_sum, s.mean_logprob] for s in scored])


def _features(question: Question) -> np.ndarray:
    prior = np.log([max(c.probability, 1e-6) for c in question.choices])
    assert question.opinions is not None  # noqa: S101 - ask() went before
    return np.c_[prior, question.opinions]


def _fit(questions: Sequence[Question]) -> np.ndarray:
    start = np.array([1.0, 0.0, 0.0])
    rows = [(_features(q), q.is_right) for q in questions if q.is_right.any()]

    def loss(w: np.ndarray) -> float:
        total = 0.0
        for x, right in rows:
            s = x @ w
            e = np.exp(s - s.max())
            total -= np.log(e[right].sum() / e.sum())
        return total / max(len(rows), 1) + PULL * float((w - start) @ (w - start))

    return minimize(loss, start).x


def _hits(questions: Sequence[Question], w: np.ndarray) -> int:
    return sum(bool(q.is_right[int(np.argmax(_features(q) @ w))]) for q in questions)


def weigh(
    role: FieldRole, questions: Sequence[Question], n_fields: int
) -> tuple[dict[str, float] | None, dict[str, Any]]:
    """Weights of the model's opinion where it helps in cross-validation, and what was measured."""
    groups = sorted({q.group for q in questions})
    random.Random(11).shuffle(groups)
    fold = {g: i % N_FOLDS for i, g in enumerate(groups)}
    without, with_model = _hits(questions, np.array([1.0, 0.0, 0.0])), 0
    for k in range(N_FOLDS):
        w = _fit([q for q in questions if fold[q.group] != k])
        with_model += _hits([q for q in questions if fold[q.group] == k], w)
    report = {
        "n_fields": n_fields,
        "n_asked": len(questions),
        "right_without_model": without,
        "right_with_model": with_model,
        "right_by_model_alone": _hits(questions, np.array([0.0, 1.0, 0.0])),
        "right_is_offered": sum(bool(q.is_right.any()) for q in questions),
    }
    print(role.value, "model:", report, flush=True)
    if with_model - without < LEAST_GAIN * n_fields:
        return None, report
    prior, logprob_sum, logprob_mean = (round(float(v), 4) for v in _fit(questions))
    return {
        "prior": prior,
        "logprob_sum": logprob_sum,
        "logprob_mean": logprob_mean,
        "ask_below_margin": ASK_BELOW_MARGIN,
    }, report


def leading(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Those that are asked about."""
    return tuple(choices[:MAX_OPTIONS])
