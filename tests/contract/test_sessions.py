"""Every engine keeps the promises of `llm.engine`: a new engine is one more entry in ENGINES."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from edge_runtime.errors import (
    Cancelled,
    CapabilityError,
    ContextOverflow,
    SessionPoisoned,
    StageError,
    UsageError,
)
from edge_runtime.llm.chat_template import FAMILIES
from edge_runtime.llm.engine import Engine, Sampled, Session, SessionOptions
from edge_runtime.llm.llama_cpp_engine import LlamaCppEngine
from edge_runtime.llm.llama_cpp_options import LlamaOptions
from edge_runtime.llm.prompt import PromptCompiler, Role, Segment
from edge_runtime.llm.scripted_engine import ScriptedEngine, ScriptedOptions
from tests.support.llama_models import write_recurrent_gguf, write_sliding_window_gguf
from tools.make_tiny_gguf import write_tiny_gguf

N_CTX = 512
PROMPT = "the total is 12.40, the date is 2024-05-06, the end. "


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gguf")
    write_recurrent_gguf(folder / "recurrent.gguf")
    write_sliding_window_gguf(folder / "sliding.gguf")
    return write_tiny_gguf(folder / "tiny.gguf")


def scripted(_: Path) -> Engine:
    return ScriptedEngine("12.40", ScriptedOptions(n_ctx=N_CTX, chunk_tokens=64))


def scripted_without_rollback(_: Path) -> Engine:
    options = ScriptedOptions(n_ctx=N_CTX, chunk_tokens=64, can_rollback=False)
    return ScriptedEngine("12.40", options)


def llama(path: Path, **options: object) -> Engine:
    return LlamaCppEngine.load(
        path, LlamaOptions(n_ctx=N_CTX, n_threads=1, chunk_tokens=64, **options)
    )


def llama_flash(path: Path) -> Engine:
    return llama(path, flash_attn=True)


def llama_quantised(path: Path) -> Engine:
    return llama(path, type_k="q8_0", type_v="q8_0")


def llama_recurrent(path: Path) -> Engine:
    return llama(path.with_name("recurrent.gguf"))


def llama_sliding_window(path: Path) -> Engine:
    return llama(path.with_name("sliding.gguf"))


# engine -> tolerance of logits and log-probabilities computed in another batch shape
ENGINES: dict[str, tuple[Callable[[Path], Engine], float]] = {
    "scripted": (scripted, 1e-5),
    "scripted-without-rollback": (scripted_without_rollback, 1e-5),
    "llama": (llama, 0.02),
    "llama-flash-attention": (llama_flash, 0.05),
    "llama-quantised-kv": (llama_quantised, 0.05),
    "llama-recurrent": (llama_recurrent, 0.02),
    "llama-sliding-window": (llama_sliding_window, 0.02),
}


@pytest.fixture(scope="module", params=list(ENGINES))
def made(request: pytest.FixtureRequest, tiny_gguf: Path) -> Iterator[tuple[Engine, float]]:
    make, tolerance = ENGINES[request.param]
    with make(tiny_gguf) as engine:
        yield engine, tolerance


@pytest.fixture
def engine(made: tuple[Engine, float]) -> Engine:
    return made[0]


@pytest.fixture
def tolerance(made: tuple[Engine, float]) -> float:
    return made[1]


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    with engine.open_session() as session:
        yield session


def row_after(engine: Engine, tokens: list[int]) -> np.ndarray:
    with engine.open_session() as fresh:
        fresh.sync(tokens)
        return fresh.logits().copy()


def log_softmax(row: np.ndarray) -> np.ndarray:
    wide = row.astype(np.float64)
    wide -= wide.max()
    return wide - np.log(np.exp(wide).sum())


# --- tokenizer ---


@pytest.mark.parametrize(
    "text", ["", "plain text", "Größe ✓ 12,50 €", "a\x00b", "tabs\tand\n\nlines"]
)
def test_tokens_give_back_the_bytes_of_the_text(engine: Engine, text: str) -> None:
    assert engine.detokenize(engine.tokenize(text)) == text.encode()


def test_markers_in_a_text_are_special_only_on_request(engine: Engine) -> None:
    marker = "<|im_end|>"
    plain = engine.tokenize(marker)
    assert len(plain) > 1
    assert not set(plain) & engine.eos_ids
    (special,) = engine.tokenize(marker, special=True)
    assert special in engine.eos_ids
    assert engine.token_bytes(special) == marker.encode()


def test_a_token_outside_the_vocabulary_is_refused(engine: Engine) -> None:
    with pytest.raises(UsageError):
        engine.token_bytes(engine.capabilities.n_vocab)
    with pytest.raises(UsageError):
        engine.token_bytes(-1)


def test_a_lone_surrogate_does_not_break_the_tokenizer(engine: Engine) -> None:
    assert engine.detokenize(engine.tokenize("a\udc80b")) == b"a?b"


# --- sync ---


def test_sync_reports_what_it_computed(engine: Engine, session: Session) -> None:
    tokens = engine.tokenize(PROMPT)
    report = session.sync(tokens)
    assert (report.n_reused, report.n_restored, report.n_prefilled) == (0, 0, len(tokens))
    assert list(session.tokens) == tokens


def test_an_extension_computes_only_the_new_tokens(engine: Engine, session: Session) -> None:
    head, tail = engine.tokenize(PROMPT), engine.tokenize("more lines")
    session.sync(head, keep_logits=False)
    report = session.sync(head + tail)
    assert (report.n_reused, report.n_prefilled) == (len(head), len(tail))


def test_a_second_sync_of_the_same_tokens_computes_nothing(
    engine: Engine, session: Session
) -> None:
    tokens = engine.tokenize(PROMPT)
    session.sync(tokens)
    assert session.sync(tokens).n_prefilled == 0


def test_counts_of_a_report_add_up_to_the_tokens(engine: Engine, session: Session) -> None:
    for text in (PROMPT, PROMPT[:20] + "changed", PROMPT[:20], PROMPT * 2, ""):
        tokens = engine.tokenize(text)
        report = session.sync(tokens)
        assert report.n_reused + report.n_restored + report.n_prefilled == len(tokens)
        assert list(session.tokens) == tokens


def test_a_changed_tail_gives_the_logits_of_a_fresh_session(
    engine: Engine, session: Session, tolerance: float
) -> None:
    session.sync(engine.tokenize(PROMPT + "it rains today"))
    changed = engine.tokenize(PROMPT + "it shines")
    report = session.sync(changed)
    if engine.capabilities.can_rollback:
        assert report.n_reused >= len(engine.tokenize(PROMPT)) - 1
        assert report.recomputed is None
    else:
        assert report.n_reused == 0
        assert report.recomputed
    np.testing.assert_allclose(session.logits(), row_after(engine, changed), atol=tolerance)


def test_a_shorter_prompt_gives_the_logits_of_a_fresh_session(
    engine: Engine, session: Session, tolerance: float
) -> None:
    session.sync(engine.tokenize(PROMPT + "and more"))
    shorter = engine.tokenize(PROMPT)
    session.sync(shorter)
    np.testing.assert_allclose(session.logits(), row_after(engine, shorter), atol=tolerance)


def test_lines_arriving_one_by_one_give_the_logits_of_one_sync(
    engine: Engine, session: Session, tolerance: float
) -> None:
    tokens = engine.tokenize(PROMPT * 3)
    for end in range(0, len(tokens), 23):
        session.sync(tokens[:end], keep_logits=False)
    session.sync(tokens)
    np.testing.assert_allclose(session.logits(), row_after(engine, tokens), atol=tolerance)


def test_logits_are_there_even_when_sync_did_not_keep_them(
    engine: Engine, session: Session, tolerance: float
) -> None:
    tokens = engine.tokenize(PROMPT)
    session.sync(tokens, keep_logits=False)
    np.testing.assert_allclose(session.logits(), row_after(engine, tokens), atol=tolerance)
    assert list(session.tokens) == tokens


def test_logits_cannot_be_written_to(engine: Engine, session: Session) -> None:
    session.sync(engine.tokenize(PROMPT))
    with pytest.raises(ValueError, match="read-only"):
        session.logits()[0] = 1.0


def test_an_empty_session_has_no_logits(session: Session) -> None:
    with pytest.raises(UsageError):
        session.logits()


def test_too_many_tokens_are_refused_and_change_nothing(engine: Engine, session: Session) -> None:
    tokens = engine.tokenize(PROMPT)
    session.sync(tokens)
    with pytest.raises(ContextOverflow) as caught:
        session.sync([1] * (session.n_ctx + 1))
    assert caught.value.details["n_ctx"] == session.n_ctx
    assert list(session.tokens) == tokens
    assert session.sync(tokens).n_prefilled == 0


def test_a_full_context_works_and_the_next_token_is_refused(
    engine: Engine, session: Session
) -> None:
    session.sync([1] * session.n_ctx)
    assert session.logits().shape == (engine.capabilities.n_vocab,)
    with pytest.raises(ContextOverflow):
        session.next()
    with pytest.raises(ContextOverflow):
        session.append([1])
    session.truncate(session.n_ctx - 1)
    session.next()


def test_tokens_outside_the_vocabulary_are_refused(engine: Engine, session: Session) -> None:
    for bad in ([-1], [engine.capabilities.n_vocab]):
        with pytest.raises(UsageError):
            session.sync(bad)
        with pytest.raises(UsageError):
            session.append(bad)
    assert session.sync([1, 2]).n_prefilled == 2


# --- cancelling ---


def test_cancelling_between_chunks_leaves_a_valid_prefix(
    engine: Engine, session: Session, tolerance: float
) -> None:
    tokens = engine.tokenize(PROMPT * 8)[: session.n_ctx - 1]
    calls = iter(range(1000))
    with pytest.raises(Cancelled):
        session.sync(tokens, cancel=lambda: next(calls) >= 2)
    held = list(session.tokens)
    assert len(held) < len(tokens)
    assert held == tokens[: len(held)]
    assert session.sync(tokens).n_reused == len(held)
    np.testing.assert_allclose(session.logits(), row_after(engine, tokens), atol=tolerance)


def test_a_cancel_check_that_says_no_changes_nothing(engine: Engine, session: Session) -> None:
    tokens = engine.tokenize(PROMPT * 4)
    assert session.sync(tokens, cancel=lambda: False).n_prefilled == len(tokens)


# --- decoding ---


def test_next_takes_the_best_token_and_appends_it(engine: Engine, session: Session) -> None:
    session.sync(engine.tokenize(PROMPT))
    best = int(session.logits().argmax())
    assert session.next() == best
    assert session.tokens[-1] == best


def test_greedy_decoding_repeats(engine: Engine, session: Session) -> None:
    tokens = engine.tokenize(PROMPT)
    session.sync(tokens)
    first = [session.next() for _ in range(8)]
    session.reset()
    session.sync(tokens)
    assert [session.next() for _ in range(8)] == first


def test_decoding_equals_appending_the_same_tokens(
    engine: Engine, session: Session, tolerance: float
) -> None:
    session.sync(engine.tokenize(PROMPT))
    for _ in range(5):
        session.next()
    np.testing.assert_allclose(
        session.logits(), row_after(engine, list(session.tokens)), atol=tolerance
    )


class Allowing:
    def __init__(self, mask: np.ndarray) -> None:
        self._mask = mask

    def mask(self) -> np.ndarray:
        return self._mask


@pytest.mark.parametrize("form", ["bool", "words", "words-row"])
def test_next_respects_a_mask(engine: Engine, session: Session, form: str) -> None:
    n_vocab = engine.capabilities.n_vocab
    allowed = [70, 90, n_vocab - 1]
    mask = np.zeros(n_vocab, np.bool_)
    mask[allowed] = True
    if form != "bool":
        padded = np.zeros(-(-n_vocab // 32) * 32, np.bool_)
        padded[:n_vocab] = mask
        mask = np.packbits(padded, bitorder="little").view(np.int32)
        mask = mask[None, :] if form == "words-row" else mask
    session.sync(engine.tokenize(PROMPT))
    row = session.logits().copy()
    assert session.next(Allowing(mask)) == max(allowed, key=lambda token: row[token])


def test_a_mask_that_allows_nothing_is_an_error_and_changes_nothing(
    engine: Engine, session: Session
) -> None:
    tokens = engine.tokenize(PROMPT)
    session.sync(tokens)
    with pytest.raises(StageError):
        session.next(Allowing(np.zeros(engine.capabilities.n_vocab, np.bool_)))
    assert list(session.tokens) == tokens
    session.next()


def test_sampling_repeats_with_the_same_seed(engine: Engine, session: Session) -> None:
    drawn: list[list[int]] = []
    for _ in range(2):
        session.sync(engine.tokenize(PROMPT))
        sampling = Sampled(np.random.default_rng(7), temperature=5.0, top_k=0, top_p=1.0)
        drawn.append([session.next(sampling=sampling) for _ in range(6)])
    assert drawn[0] == drawn[1]


# --- append and truncate ---


def test_append_gives_logits_after_each_token(
    engine: Engine, session: Session, tolerance: float
) -> None:
    head, added = engine.tokenize(PROMPT), engine.tokenize("total: 12.40")
    session.sync(head)
    rows = session.append(added, want_all_logits=True)
    assert rows is not None
    assert rows.shape == (len(added), engine.capabilities.n_vocab)
    assert list(session.tokens) == head + added
    for i in (0, 3, len(added) - 1):
        expected = row_after(engine, head + added[: i + 1])
        np.testing.assert_allclose(rows[i], expected, atol=tolerance)
    np.testing.assert_allclose(session.logits(), rows[-1], atol=tolerance)


def test_rows_of_append_survive_later_calls(engine: Engine, session: Session) -> None:
    session.sync(engine.tokenize(PROMPT))
    rows = session.append([65, 66], want_all_logits=True)
    assert rows is not None
    before = rows.copy()
    session.next()
    np.testing.assert_array_equal(rows, before)


def test_append_of_nothing_is_nothing(engine: Engine, session: Session) -> None:
    session.sync(engine.tokenize(PROMPT))
    before = session.logits().copy()
    assert session.append([]) is None
    rows = session.append([], want_all_logits=True)
    assert rows is not None
    assert rows.shape == (0, engine.capabilities.n_vocab)
    np.testing.assert_array_equal(session.logits(), before)


def test_truncating_a_rejected_draft_gives_the_logits_from_before(
    engine: Engine, session: Session, tolerance: float
) -> None:
    head = engine.tokenize(PROMPT)
    session.sync(head)
    session.append([65, 66, 67], want_all_logits=True)
    for n_kept in (2, 1, 0):
        session.truncate(len(head) + n_kept)
        expected = row_after(engine, [*head, *[65, 66, 67][:n_kept]])
        np.testing.assert_allclose(session.logits(), expected, atol=tolerance)


def test_truncate_refuses_more_than_there_is(engine: Engine, session: Session) -> None:
    session.sync(engine.tokenize(PROMPT))
    n_tokens = len(session.tokens)
    with pytest.raises(UsageError):
        session.truncate(n_tokens + 1)
    with pytest.raises(UsageError):
        session.truncate(-1)
    session.truncate(n_tokens)
    assert len(session.tokens) == n_tokens
    session.truncate(0)
    assert list(session.tokens) == []


# --- scoring ---


def one_by_one(engine: Engine, head: list[int], continuation: list[int]) -> list[float]:
    values: list[float] = []
    with engine.open_session() as fresh:
        fresh.sync(head)
        for token in continuation:
            values.append(float(log_softmax(fresh.logits())[token]))
            fresh.append([token])
    return values


def test_scores_equal_those_of_one_by_one_decoding(
    engine: Engine, session: Session, tolerance: float
) -> None:
    head = engine.tokenize(PROMPT)
    texts = ["12.40", "12.45", "12", "2024-05-06", "1", "the end", "12.40", "the total", "z" * 40]
    continuations = [engine.tokenize(text) for text in texts]
    session.sync(head)
    for continuation, scored in zip(continuations, session.score(continuations), strict=True):
        expected = one_by_one(engine, head, continuation)
        assert scored.n_tokens == len(continuation)
        np.testing.assert_allclose(scored.token_logprobs, expected, atol=tolerance)
        assert scored.logprob_sum == pytest.approx(sum(scored.token_logprobs))
        assert scored.mean_logprob == pytest.approx(scored.logprob_sum / scored.n_tokens)


def test_scoring_leaves_the_session_as_it_was(engine: Engine, session: Session) -> None:
    head = engine.tokenize(PROMPT)
    session.sync(head)
    before = session.logits().copy()
    continued = [engine.tokenize(text) for text in ("12.40", "12.45", "7")]
    session.score(continued)
    assert list(session.tokens) == head
    np.testing.assert_array_equal(session.logits(), before)
    assert session.sync(head).n_prefilled == 0
    after = [session.next() for _ in range(4)]
    session.reset()
    session.sync(head)
    assert [session.next() for _ in range(4)] == after


def test_more_candidates_than_sequences_are_scored_alike(engine: Engine, tolerance: float) -> None:
    head = engine.tokenize(PROMPT)
    continuations = [engine.tokenize(f"{i:03d} euro") for i in range(30)]
    with engine.open_session(SessionOptions(n_seq_max=3)) as narrow, engine.open_session() as wide:
        narrow.sync(head)
        wide.sync(head)
        sums = [[s.logprob_sum for s in x.score(continuations)] for x in (narrow, wide)]
    np.testing.assert_allclose(sums[0], sums[1], atol=7 * tolerance)


def test_candidates_are_scored_when_cells_are_short(engine: Engine, tolerance: float) -> None:
    with engine.open_session(SessionOptions(n_ctx=256)) as session:
        head = (engine.tokenize(PROMPT) * 20)[: session.n_ctx - 12]
        continuations = [engine.tokenize(f"{i:02d}/2024") for i in range(20)]
        session.sync(head)
        scored = session.score(continuations)
        expected = sum(one_by_one(engine, head, continuations[19]))
        assert scored[19].logprob_sum == pytest.approx(expected, abs=7 * tolerance)
        assert list(session.tokens) == head


def test_a_continuation_that_does_not_fit_is_refused(engine: Engine, session: Session) -> None:
    head = [1] * (session.n_ctx - 4)
    session.sync(head)
    assert session.score([[1] * 5])[0].n_tokens == 5
    with pytest.raises(ContextOverflow):
        session.score([[1], [1] * 6])
    assert list(session.tokens) == head


def test_empty_continuations_score_zero(engine: Engine, session: Session) -> None:
    session.sync(engine.tokenize(PROMPT))
    empty, one = session.score([[], [65]])
    assert (empty.logprob_sum, empty.n_tokens, empty.mean_logprob) == (0.0, 0, 0.0)
    assert one.n_tokens == 1
    assert session.score([]) == []


# --- snapshots, reset, errors ---


def test_a_snapshot_brings_back_history_and_logits(engine: Engine, session: Session) -> None:
    head = engine.tokenize(PROMPT)
    session.sync(head)
    before = session.logits().copy()
    snapshot = session.snapshot()
    session.sync(engine.tokenize("something else entirely"))
    session.restore(snapshot)
    assert list(session.tokens) == head
    np.testing.assert_array_equal(session.logits(), before)
    first = [session.next() for _ in range(4)]
    session.restore(snapshot)
    assert [session.next() for _ in range(4)] == first


def test_a_snapshot_can_be_restored_in_another_session(engine: Engine, session: Session) -> None:
    head = engine.tokenize(PROMPT)
    session.sync(head)
    snapshot = session.snapshot()
    with engine.open_session() as other:
        other.restore(snapshot)
        assert other.sync([*head, 65]).n_reused == len(head)


def test_an_empty_snapshot_empties(engine: Engine, session: Session) -> None:
    empty = session.snapshot()
    session.sync(engine.tokenize(PROMPT))
    session.restore(empty)
    assert list(session.tokens) == []


def test_a_snapshot_of_another_engine_is_refused(engine: Engine, session: Session) -> None:
    session.sync(engine.tokenize(PROMPT))
    with ScriptedEngine(name="stranger") as stranger, stranger.open_session() as foreign:
        foreign.sync([65])
        with pytest.raises(CapabilityError):
            session.restore(foreign.snapshot())
    assert list(session.tokens) == engine.tokenize(PROMPT)


def test_a_failing_cancel_check_breaks_nothing_for_good(engine: Engine, session: Session) -> None:
    def broken() -> bool:
        raise ZeroDivisionError

    tokens = engine.tokenize(PROMPT)
    with pytest.raises(ZeroDivisionError):
        session.sync(tokens, cancel=broken)
    session.reset()
    assert session.sync(tokens).n_prefilled == len(tokens)


def test_a_closed_session_says_so(engine: Engine) -> None:
    session = engine.open_session()
    session.close()
    session.close()
    with pytest.raises(UsageError):
        session.sync([1])
    with pytest.raises(UsageError):
        session.reset()


def test_store_prefix_without_a_store_stores_nothing(engine: Engine, session: Session) -> None:
    session.sync(engine.tokenize(PROMPT))
    assert session.store_prefix(10) == 0
    with pytest.raises(UsageError):
        session.store_prefix(len(session.tokens) + 1)


# --- threads ---


def test_a_session_can_be_fed_from_a_worker_thread(engine: Engine, session: Session) -> None:
    tokens = engine.tokenize(PROMPT)
    worker = threading.Thread(target=lambda: session.sync(tokens))
    worker.start()
    worker.join()
    assert session.sync(tokens).n_prefilled == 0


def test_calls_from_several_threads_queue(engine: Engine, session: Session) -> None:
    prompts = [engine.tokenize(f"{PROMPT}{i} {'x' * i}") for i in range(6)]
    sums: list[tuple[int, int]] = []

    def feed(tokens: list[int]) -> None:
        for _ in range(5):
            report = session.sync(tokens)
            n = report.n_reused + report.n_restored + report.n_prefilled
            sums.append((n, len(tokens)))

    workers = [threading.Thread(target=feed, args=(tokens,)) for tokens in prompts]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(sums) == 5 * len(prompts)
    assert all(n == wanted for n, wanted in sums)
    assert list(session.tokens) in prompts


def test_two_sessions_of_one_engine_do_not_mix(
    engine: Engine, session: Session, tolerance: float
) -> None:
    mine, theirs = engine.tokenize(PROMPT), engine.tokenize("entirely different words")
    session.sync(mine)
    with engine.open_session() as other:
        other.sync(theirs)
        other.next()
        np.testing.assert_allclose(session.logits(), row_after(engine, mine), atol=tolerance)


def test_closing_while_another_thread_computes_waits(engine: Engine) -> None:
    session = engine.open_session()
    tokens = (engine.tokenize(PROMPT) * 20)[: session.n_ctx]
    ended: list[BaseException | None] = []

    def work() -> None:
        try:
            while True:
                session.sync(tokens)
                session.sync(tokens[:1])
        except UsageError as err:
            ended.append(err)

    worker = threading.Thread(target=work)
    worker.start()
    while not session.tokens:
        time.sleep(0.001)
    session.close()
    worker.join()
    assert len(ended) == 1


# --- engine ---


def test_a_closed_engine_opens_no_sessions(tiny_gguf: Path, engine: Engine) -> None:
    del engine
    for make, _ in ENGINES.values():
        short_lived = make(tiny_gguf)
        session = short_lived.open_session()
        short_lived.close()
        short_lived.close()
        with pytest.raises(UsageError):
            short_lived.open_session()
        with pytest.raises(UsageError):
            session.sync([1])


def test_identity_and_capabilities_are_filled(engine: Engine) -> None:
    identity = engine.identity
    assert len(identity.sha256) == 64
    assert identity.build
    assert identity.tokenizer
    assert engine.capabilities.n_ctx == N_CTX
    assert engine.eos_ids
    assert all(0 <= token < engine.capabilities.n_vocab for token in engine.eos_ids)


def test_a_compiled_prompt_grows_only_at_its_end(engine: Engine, session: Session) -> None:
    compiler = PromptCompiler(engine, FAMILIES["chatml"])
    segments = [Segment(Role.SYSTEM, "Find the total.", pinned=True)]
    session.sync(compiler.open_tokens(segments), keep_logits=False)
    for line in ("SHOP\n", "TOTAL 12.40\n", "<|im_end|>\n"):
        before = len(session.tokens)
        segments.append(Segment(Role.DOCUMENT, line))
        report = session.sync(compiler.open_tokens(segments), keep_logits=False)
        assert report.n_reused == before
    report = session.sync(compiler.tokens(segments, open_answer=True))
    assert report.recomputed is None
    assert sum(token in engine.eos_ids for token in session.tokens) == 2


def test_an_error_inside_poisons_until_reset() -> None:
    fail = threading.Event()

    def before(operation: str, n_tokens: int) -> None:
        if fail.is_set():
            raise StageError(f"{operation} of {n_tokens} tokens failed")

    with ScriptedEngine("x", ScriptedOptions(before=before)) as engine:
        session = engine.open_session()
        session.sync([65, 66])
        fail.set()
        with pytest.raises(StageError, match="next of 1"):
            session.next()
        fail.clear()
        with pytest.raises(SessionPoisoned, match="failed"):
            session.next()
        session.reset()
        assert session.sync([65, 66]).n_prefilled == 2
