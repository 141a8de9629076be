import json

import numpy as np
import pytest

from edge_runtime.errors import UsageError
from edge_runtime.llm.constraint import Unconstrained
from edge_runtime.llm.decoding import FinishReason, GenerateOptions, TokenSource, generate
from edge_runtime.llm.drafting import document_tokens
from edge_runtime.llm.engine import Sampled, SessionOptions
from edge_runtime.llm.json_constraint import JsonConstraint
from edge_runtime.llm.scripted_engine import ScriptedEngine, ScriptedOptions
from edge_runtime.trace import Recorder, recording

LINES = ("INDAH GIFT & HOME DECO", "27, JALAN DEDAP 13,", "TOTAL 60.30")
SCHEMA = {
    "type": "object",
    "properties": {
        "company": {"type": "string"},
        "address": {"type": "string"},
        "total": {"type": "number"},
    },
    "required": ["company", "address", "total"],
}
ANSWER = '{"company":"INDAH GIFT & HOME DECO","address":"27, JALAN DEDAP 13,","total":60.30}'


class Talk:
    """An engine that wants to say `reply`, and a session at the place where it answers."""

    def __init__(self, reply: str, **options):
        self.engine = ScriptedEngine(reply, ScriptedOptions(**options))
        self.session = self.engine.open_session(SessionOptions())
        prompt = "\n".join(LINES) + "<|im_end|>\n<|im_start|>assistant\n"
        self.prompt = self.engine.tokenize(prompt, special=True)
        self.session.sync(self.prompt)

    def json(self, schema=SCHEMA) -> JsonConstraint:
        return JsonConstraint.from_schema(self.engine, schema)

    @property
    def source(self) -> list[int]:
        return document_tokens(self.engine, LINES)

    def say(self, constraint=None, **options):
        options = {"max_tokens": 300, **options}
        return generate(self.session, constraint or self.json(), **options)


PLAIN = GenerateOptions(use_forced=False)


@pytest.mark.parametrize("drafted", [False, True])
@pytest.mark.parametrize("forced", [False, True])
def test_the_answer_is_the_same_however_it_is_decoded(drafted, forced):
    talk = Talk(ANSWER)
    generation = talk.say(
        draft_source=talk.source if drafted else None,
        options=GenerateOptions(use_forced=forced),
    )
    assert generation.finish() == ANSWER
    assert generation.finish_reason is FinishReason.COMPLETE
    assert generation.counts.n_tokens == len(ANSWER)
    assert (generation.counts.n_forced > 0) == forced
    assert (generation.counts.n_accepted > 0) == drafted


def test_forced_and_drafted_tokens_save_steps():
    plain, fast = Talk(ANSWER), Talk(ANSWER)
    slow = plain.say(options=PLAIN)
    slow.finish()
    quick = fast.say(draft_source=fast.source)
    quick.finish()
    assert slow.counts.n_steps == len(ANSWER) - 1
    assert quick.counts.n_steps < len(ANSWER) / 4


def test_a_wrong_draft_changes_nothing_but_counts():
    reply = ANSWER.replace("GIFT &", "GIFT AND").replace("DEDAP", "DEWAN")
    talk = Talk(reply)
    generation = talk.say(draft_source=talk.source)
    assert generation.finish() == reply
    counts = generation.counts
    assert 0 < counts.n_accepted < counts.n_drafted
    assert counts.n_sampled + counts.n_forced + counts.n_accepted == len(reply)


def test_wrong_drafts_make_drafting_cautious():
    class Liar:
        def __init__(self) -> None:
            self.asked: list[int] = []

        def push(self, tokens) -> None:
            pass

        def draft(self, n_max, *, min_match):
            self.asked.append(min_match)
            return [ord("~")] * n_max

    liar = Liar()
    assert Talk(ANSWER).say(draft_source=liar).finish() == ANSWER
    assert liar.asked[0] == 2
    assert max(liar.asked) == 6


@pytest.mark.parametrize("drafted", [False, True])
@pytest.mark.parametrize("max_tokens", [0, 1, 5, 12, 13, 20, 47, len(ANSWER) - 1])
def test_generation_stops_at_exactly_max_tokens(drafted, max_tokens):
    talk = Talk(ANSWER)
    generation = talk.say(max_tokens=max_tokens, draft_source=talk.source if drafted else None)
    assert generation.finish() == ANSWER[:max_tokens]
    assert len(generation.tokens) == max_tokens
    assert generation.finish_reason is FinishReason.LENGTH


def test_an_answer_of_exactly_max_tokens_is_complete():
    generation = Talk(ANSWER).say(max_tokens=len(ANSWER))
    assert generation.finish() == ANSWER
    assert generation.finish_reason is FinishReason.COMPLETE


def test_free_text_ends_where_the_model_ends_it():
    talk = Talk("Hello there")
    generation = talk.say(Unconstrained(talk.engine))
    assert generation.finish() == "Hello there"
    assert generation.finish_reason is FinishReason.EOS
    assert not set(generation.tokens) & talk.engine.eos_ids


def test_an_open_ended_grammar_ends_where_the_model_ends_it():
    talk = Talk("42")
    generation = talk.say(talk.json({"type": "integer"}))
    assert generation.finish() == "42"
    assert generation.finish_reason is FinishReason.EOS


def test_a_model_that_says_something_else_still_answers_in_json():
    talk = Talk("I am sorry, I cannot do that.")
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "company": {"enum": ["A", "B"]}}}
    text = talk.say(talk.json({**schema, "required": ["company"]}), max_tokens=2000).finish()
    assert json.loads(text)["company"] in {"A", "B"}


def test_cancelling_stops_between_steps():
    talk = Talk(ANSWER)
    generation = talk.say(cancel=lambda: len(generation.tokens) >= 20, options=PLAIN)
    assert generation.finish() == ANSWER[:20]
    assert generation.finish_reason is FinishReason.CANCELLED


def test_steps_say_how_each_token_came_about():
    talk = Talk(ANSWER)
    steps = list(talk.say(draft_source=talk.source))
    assert [step.token for step in steps] == talk.engine.tokenize(ANSWER)
    assert "".join(step.text for step in steps) == ANSWER
    assert {step.source for step in steps} == set(TokenSource)
    assert steps[0].source is TokenSource.FORCED


def test_streamed_text_is_whole_characters():
    talk = Talk('"日本é"')
    steps = list(talk.say(talk.json({"type": "string"})))
    texts = [step.text for step in steps if step.text]
    assert texts == ['"', "日", "本", "é", '"']
    assert len(steps) == len('"日本é"'.encode())


def test_text_cut_inside_a_character_shows_only_whole_ones():
    talk = Talk('"日本"')
    generation = talk.say(talk.json({"type": "string"}), max_tokens=5)
    assert generation.finish() == '"日'
    assert len(generation.tokens) == 5


def test_a_full_context_is_reported():
    room = 40
    small = Talk(ANSWER, n_ctx=len(Talk(ANSWER).prompt) + room)
    generation = small.say(draft_source=small.source)
    text = generation.finish()
    assert generation.finish_reason is FinishReason.CONTEXT
    assert ANSWER.startswith(text)
    assert len(text) >= room


def test_the_session_holds_a_beginning_of_prompt_and_answer():
    talk = Talk(ANSWER)
    generation = talk.say(draft_source=talk.source)
    generation.finish()
    held = list(talk.session.tokens)
    whole = talk.prompt + generation.tokens
    assert held == whole[: len(held)]
    assert len(held) >= len(whole) - 16
    talk.session.sync(whole)
    assert list(talk.session.tokens) == whole


def test_an_engine_that_cannot_roll_back_never_drafts():
    talk = Talk(ANSWER, can_rollback=False)
    generation = talk.say(draft_source=talk.source)
    assert generation.finish() == ANSWER
    assert generation.counts.n_drafted == 0


def test_sampling_is_repeatable_with_the_same_generator():
    def once() -> str:
        talk = Talk("")
        sampling = Sampled(np.random.default_rng(3), temperature=1.5, top_k=0, top_p=1.0)
        options = GenerateOptions(sampling=sampling)
        return talk.say(max_tokens=40, options=options, draft_source=talk.source).finish()

    assert once() == once()


def test_drafting_does_not_bend_the_distribution():
    """Two equally likely letters, one of them always drafted, must stay equally likely."""

    class Coin(ScriptedEngine):
        def row(self, tokens):
            row = np.full(self.n_vocab, -50.0, np.float32)
            row[[ord("a"), ord("b")]] = 10.0
            return row

    class AlwaysA:
        def push(self, tokens) -> None:
            pass

        def draft(self, n_max, *, min_match):
            return [ord("a")] * n_max

    engine = Coin()
    session = engine.open_session()
    session.sync([1])
    sampling = Sampled(np.random.default_rng(0), temperature=1.0, top_k=0, top_p=1.0)
    text = generate(
        session,
        Unconstrained(engine),
        max_tokens=4000,
        draft_source=AlwaysA(),
        options=GenerateOptions(sampling=sampling),
    ).finish()
    assert 1850 < text.count("a") < 2150


def test_negative_max_tokens_is_refused():
    with pytest.raises(UsageError):
        Talk(ANSWER).say(max_tokens=-1)


def test_each_decoding_call_is_traced():
    talk = Talk(ANSWER)
    with recording(Recorder()) as recorder:
        generation = talk.say(draft_source=talk.source)
        generation.finish()
    spans = [span for span in recorder.spans if span.name == "llm.decode"]
    assert len(spans) == generation.counts.n_steps
    assert sum(span.notes["n_drafted"] for span in spans) == generation.counts.n_drafted
