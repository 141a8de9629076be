"""The scripted engine does what its script says; the rest is in the contract tests."""

from __future__ import annotations

import pytest

from edge_runtime.errors import SessionPoisoned, StageError
from edge_runtime.llm.engine import Session
from edge_runtime.llm.prompt import PromptCompiler, Role, Segment
from edge_runtime.llm.scripted_engine import ScriptedEngine, ScriptedOptions


def answer(engine: ScriptedEngine, session: Session, n_max: int = 200) -> str:
    tokens: list[int] = []
    while len(tokens) < n_max:
        token = session.next()
        if token in engine.eos_ids:
            break
        tokens.append(token)
    return engine.detokenize(tokens).decode()


def test_a_fixed_reply_is_said_and_ended() -> None:
    with ScriptedEngine('{"total": "12,40 €"}') as engine, engine.open_session() as session:
        session.sync(engine.tokenize("any prompt"))
        assert answer(engine, session) == '{"total": "12,40 €"}'


def test_a_reply_may_depend_on_the_prompt() -> None:
    seen: list[str] = []

    def reply(prompt: str) -> str:
        seen.append(prompt)
        return "yes" if "TOTAL" in prompt else "no"

    engine = ScriptedEngine(reply)
    compiler = PromptCompiler(engine)
    with engine.open_session() as session:
        for text, expected in (("TOTAL 3", "yes"), ("nothing", "no")):
            segments = [Segment(Role.DOCUMENT, text)]
            session.sync(compiler.tokens(segments, open_answer=True))
            assert answer(engine, session) == expected
    assert all(prompt.endswith("<|im_start|>assistant\n") for prompt in seen)


def test_forced_tokens_do_not_derail_the_script() -> None:
    with ScriptedEngine('{"a": 1}') as engine, engine.open_session() as session:
        session.sync(engine.tokenize("p"))
        session.append(engine.tokenize('{"a'))
        assert answer(engine, session) == '": 1}'


def test_what_stands_in_the_prompt_scores_higher() -> None:
    with ScriptedEngine() as engine, engine.open_session() as session:
        session.sync(engine.tokenize("the total is 12.40 today; the total is "))
        there, elsewhere = session.score([engine.tokenize(t) for t in ("12.40", "98.76")])
        assert there.logprob_sum > elsewhere.logprob_sum


def test_a_scorer_decides() -> None:
    options = ScriptedOptions(scorer=lambda before, after: -len(before) if after == "b" else -1.0)
    with ScriptedEngine("", options) as engine, engine.open_session() as session:
        session.sync(engine.tokenize("abc"))
        a, b = session.score([[97], [98]])
        assert (a.logprob_sum, b.logprob_sum) == (-1.0, -3.0)


@pytest.mark.parametrize("operation", ["sync", "next", "append", "score"])
def test_a_failure_can_be_injected_anywhere(operation: str) -> None:
    failing: set[str] = set()

    def before(name: str, n_tokens: int) -> None:
        del n_tokens
        if name in failing:
            raise StageError(f"{name} broke")

    with ScriptedEngine("x", ScriptedOptions(before=before)) as engine:
        session = engine.open_session()
        session.sync([65])
        failing.add(operation)
        calls = {
            "sync": lambda: session.sync([65, 66]),
            "next": session.next,
            "append": lambda: session.append([66]),
            "score": lambda: session.score([[66, 67]]),
        }
        with pytest.raises(StageError, match=f"{operation} broke"):
            calls[operation]()
        with pytest.raises(SessionPoisoned):
            session.logits()


def test_scripted_time_passes() -> None:
    options = ScriptedOptions(prefill_ms_per_token=2.0)
    with ScriptedEngine("", options) as engine, engine.open_session() as session:
        assert session.sync([65] * 10).wall_ms >= 20
