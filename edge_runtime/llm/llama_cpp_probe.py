"""Decode a few tokens of a model with every kernel on; run in a child process.

    python -m edge_runtime.llm.llama_cpp_probe model.gguf

Exit status 0: decoded. 3: the model does not load, which says nothing about the kernels. Death by
a signal is the answer that the parent is after.
"""

from __future__ import annotations

import ctypes
import resource
import sys

from edge_runtime.llm.llama_cpp_build import PROBE_EXIT_NOT_LOADED, load_library

# Enough rows for the tiled kernels that prefill uses.
_N_TOKENS = 64


def main(argv: list[str]) -> int:
    """Load `argv[0]`, decode one batch and one token; the exit status."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    library = load_library()
    model_params = library.llama_model_default_params()
    model_params.use_extra_bufts = True
    model = library.llama_model_load_from_file(argv[0].encode(), model_params)
    if not model:
        return PROBE_EXIT_NOT_LOADED
    params = library.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch = 2 * _N_TOKENS, _N_TOKENS, _N_TOKENS
    params.n_threads = params.n_threads_batch = 1
    context = library.llama_init_from_model(model, params)
    if not context:
        return PROBE_EXIT_NOT_LOADED
    for n_tokens in (_N_TOKENS, 1):
        tokens = (ctypes.c_int32 * n_tokens)(*([0] * n_tokens))
        if library.llama_decode(context, library.llama_batch_get_one(tokens, n_tokens)) != 0:
            return PROBE_EXIT_NOT_LOADED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
