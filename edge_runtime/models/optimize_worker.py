"""The part of `optimize` that runs native code, in a process of its own.

    python -m edge_runtime.models.optimize_worker < request.json

Reads one JSON request from stdin and writes one JSON answer to stdout; llama.cpp's log goes to
stderr. If native code dies, only this process does.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

N_SINGLE = 24  # tokens decoded one by one after each prefill
FORMATS = {"q4_0": "LLAMA_FTYPE_MOSTLY_Q4_0", "q8_0": "LLAMA_FTYPE_MOSTLY_Q8_0"}


class NativeFailureError(Exception):
    """llama.cpp reported an error; its log says which."""


def quantise(library: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Write a copy of `source` in `format` to `target`."""
    params = library.llama_model_quantize_default_params()
    params.nthread = request["n_threads"]
    params.ftype = getattr(library, FORMATS[request["format"]])
    # Most small models are only to be had quantised already; the comparison tells what that costs.
    params.allow_requantize = True
    source, target = os.fsencode(request["source"]), os.fsencode(request["target"])
    if library.llama_model_quantize(source, target, ctypes.byref(params)) != 0:
        raise NativeFailureError("llama.cpp could not requantise the model")
    return {"size_bytes": Path(request["target"]).stat().st_size}


class _Loaded:
    """A model with a context, as small as the measurement allows."""

    def __init__(self, library: Any, path: str, request: dict[str, Any]) -> None:
        self.library = library
        self.chunk = int(request["chunk_tokens"])
        model_params = library.llama_model_default_params()
        model_params.use_extra_bufts = bool(request["use_extra_bufts"])
        self.model = library.llama_model_load_from_file(os.fsencode(path), model_params)
        if not self.model:
            raise NativeFailureError(f"llama.cpp could not load {Path(path).name}")
        self.vocab = library.llama_model_get_vocab(self.model)
        self.n_vocab = int(library.llama_vocab_n_tokens(self.vocab))
        params = library.llama_context_default_params()
        params.n_ctx = int(request["n_tokens"]) + self.chunk
        params.n_batch = params.n_ubatch = self.chunk
        params.n_threads = params.n_threads_batch = int(request["n_threads"])
        self.context = library.llama_init_from_model(self.model, params)
        if not self.context:
            raise NativeFailureError(f"llama.cpp could not make a context for {Path(path).name}")
        self.batch = library.llama_batch_init(self.chunk, 0, 1)

    def close(self) -> None:
        self.library.llama_batch_free(self.batch)
        self.library.llama_free(self.context)
        self.library.llama_model_free(self.model)

    def tokenise(self, text: str, n_tokens: int) -> list[int]:
        data = text.encode()
        tokens = (ctypes.c_int32 * (len(data) + 16))()
        n = self.library.llama_tokenize(
            self.vocab, data, len(data), tokens, len(tokens), True, False
        )
        if n <= 0:
            raise NativeFailureError("llama.cpp could not tokenise the text of the comparison")
        return list(tokens[: min(n, n_tokens)])

    def clear(self) -> None:
        self.library.llama_memory_clear(self.library.llama_get_memory(self.context), True)

    def decode(self, tokens: Sequence[int], start: int, *, all_logits: bool) -> None:
        for i, token in enumerate(tokens):
            self.batch.token[i] = token
            self.batch.pos[i] = start + i
            self.batch.n_seq_id[i] = 1
            self.batch.seq_id[i][0] = 0
            self.batch.logits[i] = all_logits or i == len(tokens) - 1
        self.batch.n_tokens = len(tokens)
        if self.library.llama_decode(self.context, self.batch) != 0:
            raise NativeFailureError("llama.cpp could not decode the text of the comparison")
        self.library.llama_synchronize(self.context)

    def logits(self, n_rows: int) -> Any:
        """Logits of the last batch, float32 (n_rows, n_vocab); valid until the next decode."""
        import numpy as np

        pointer = self.library.llama_get_logits(self.context)
        return np.ctypeslib.as_array(pointer, shape=(n_rows, self.n_vocab))

    def speeds(self, tokens: Sequence[int]) -> tuple[float, float]:
        """Tokens per second: of a prefill in chunks, then of single tokens after it."""
        self.clear()
        begin = time.perf_counter()
        for start in range(0, len(tokens), self.chunk):
            self.decode(tokens[start : start + self.chunk], start, all_logits=False)
        filled = time.perf_counter()
        n_single = min(N_SINGLE, self.chunk)
        for i in range(n_single):
            self.decode([tokens[i % len(tokens)]], len(tokens) + i, all_logits=False)
        end = time.perf_counter()
        return len(tokens) / (filled - begin), n_single / (end - filled)


@contextmanager
def _loaded(library: Any, path: str, request: dict[str, Any]) -> Generator[_Loaded]:
    model = _Loaded(library, path, request)
    try:
        yield model
    finally:
        model.close()


def compare(library: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Speed of two models, measured alternately, and how far their predictions differ."""
    with (
        _loaded(library, request["original"], request) as original,
        _loaded(library, request["candidate"], request) as candidate,
    ):
        if original.n_vocab != candidate.n_vocab:
            raise NativeFailureError("the two models have different vocabularies")
        tokens = original.tokenise(request["text"], int(request["n_tokens"]))
        divergence, n_same = _differences(original, candidate, tokens)
        prefill: dict[str, list[float]] = {"original": [], "candidate": []}
        decode: dict[str, list[float]] = {"original": [], "candidate": []}
        for repetition in range(int(request["n_repetitions"])):
            pair = [("original", original), ("candidate", candidate)]
            # Taking turns to go first cancels a drift of the clock rate or of the machine's load.
            for name, model in pair if repetition % 2 == 0 else reversed(pair):
                per_second = model.speeds(tokens)
                prefill[name].append(per_second[0])
                decode[name].append(per_second[1])
    return {
        "n_tokens": len(tokens),
        "original_prefill": prefill["original"],
        "candidate_prefill": prefill["candidate"],
        "original_decode": decode["original"],
        "candidate_decode": decode["candidate"],
        "kl_mean": sum(divergence) / len(divergence),
        "same_top1": n_same / len(divergence),
    }


def _differences(
    original: _Loaded, candidate: _Loaded, tokens: Sequence[int]
) -> tuple[list[float], int]:
    """KL divergence in nats at each position, and at how many both have the same best token."""
    import numpy as np

    divergence: list[float] = []
    n_same = 0
    for start in range(0, len(tokens), original.chunk):
        part = tokens[start : start + original.chunk]
        original.decode(part, start, all_logits=True)
        candidate.decode(part, start, all_logits=True)
        for p, q in zip(original.logits(len(part)), candidate.logits(len(part)), strict=True):
            log_p, log_q = _log_softmax(p), _log_softmax(q)
            # Tokens that a model excludes have a logit of minus infinity in both.
            terms = np.where(np.isfinite(log_p), np.exp(log_p) * (log_p - log_q), 0.0)
            divergence.append(float(terms.sum()))
            n_same += int(p.argmax() == q.argmax())
    return divergence, n_same


def _log_softmax(row: Any) -> Any:
    import numpy as np

    values = row.astype(np.float64)
    values -= values.max()
    return values - np.log(np.exp(values).sum())


def main() -> int:
    """Serve one request; 0 when it was answered, 1 when llama.cpp refused."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    request: dict[str, Any] = json.load(sys.stdin)
    import llama_cpp

    library: Any = llama_cpp
    library.llama_backend_init()
    action = {"quantise": quantise, "compare": compare}[request["action"]]
    try:
        answer = action(library, request)
    except NativeFailureError as err:
        answer = {"error": str(err)}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main())
