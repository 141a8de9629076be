"""Write a tiny random llama-architecture GGUF, so that tests run the real llama.cpp.

The vocabulary has one token per byte, a few merged pairs and the ChatML special tokens; weights
are seeded noise. The file is about 1 MB, loads in milliseconds, answers nonsense, and always the
same nonsense: greedy output repeats bit for bit on one machine.

    python tools/make_tiny_gguf.py tiny.gguf
    python tools/make_tiny_gguf.py tiny-96.gguf --head-dim 96 --seed 3

Needs the packages `gguf` and `numpy`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import gguf
import numpy as np

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# Pairs of byte symbols that the tokenizer joins: enough that one text has several tokenisations.
# U+0120 is how a byte-level vocabulary spells a space.
MERGES = ("t h", "th e", "i n", "e r", "Ġ t", "Ġ a", "0 0", '" :')


def byte_symbols() -> list[str]:
    """The printable stand-in of each byte 0..255 in a GPT-2 style byte-level vocabulary."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    symbols: list[str] = []
    n_moved = 0
    for byte in range(256):
        if byte in printable:
            symbols.append(chr(byte))
        else:
            symbols.append(chr(256 + n_moved))
            n_moved += 1
    return symbols


def vocabulary() -> tuple[list[str], list[int]]:
    """Token texts and token types: bytes first, then merged pairs, then special tokens."""
    ordinary = byte_symbols() + [merge.replace(" ", "") for merge in MERGES]
    types = [gguf.TokenType.NORMAL] * len(ordinary) + [gguf.TokenType.CONTROL] * len(SPECIAL_TOKENS)
    return ordinary + list(SPECIAL_TOKENS), [int(t) for t in types]


def write_tiny_gguf(
    path: str | Path,
    *,
    seed: int = 0,
    head_dim: int = 64,
    n_heads: int = 2,
    n_heads_kv: int = 1,
    n_layers: int = 2,
    n_ctx_train: int = 4096,
    chat_template: str | None = CHATML,
) -> Path:
    """Write the model and return its path.

    Args:
        path: Where to write; an existing file is replaced.
        seed: Of the weights; another seed is another model with the same shape.
        head_dim: Size of one attention head (an even number).
        n_heads: Query heads; the embedding has `n_heads * head_dim` values.
        n_heads_kv: Key/value heads; divides `n_heads`.
        n_layers: Transformer blocks.
        n_ctx_train: Context length promised in the metadata.
        chat_template: Jinja text, or None for a base model.
    """
    if head_dim < 2 or head_dim % 2:
        raise ValueError(f"head_dim must be even and positive, not {head_dim}")
    if n_heads_kv < 1 or n_heads % n_heads_kv:
        raise ValueError(f"n_heads_kv ({n_heads_kv}) must divide n_heads ({n_heads})")
    path = Path(path)
    n_embd = n_heads * head_dim
    n_ff = 2 * n_embd
    tokens, types = vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(f"tiny-{seed}-{head_dim}")
    writer.add_block_count(n_layers)
    writer.add_context_length(n_ctx_train)
    writer.add_embedding_length(n_embd)
    writer.add_feed_forward_length(n_ff)
    writer.add_head_count(n_heads)
    writer.add_head_count_kv(n_heads_kv)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(list(MERGES))
    writer.add_bos_token_id(tokens.index("<|im_start|>"))
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_pad_token_id(tokens.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    if chat_template is not None:
        writer.add_chat_template(chat_template)
    for name, values in tensors(
        seed=seed,
        n_vocab=len(tokens),
        n_embd=n_embd,
        n_kv=n_heads_kv * head_dim,
        n_ff=n_ff,
        n_layers=n_layers,
    ):
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tensors(
    *, seed: int, n_vocab: int, n_embd: int, n_kv: int, n_ff: int, n_layers: int
) -> list[tuple[str, np.ndarray]]:
    """Named float32 weights. Shapes are (out, in), as llama.cpp's converters write them."""
    rng = np.random.default_rng(seed)

    def noise(n_out: int, n_in: int) -> np.ndarray:
        # Scaled so that activations keep their size from layer to layer.
        return (rng.standard_normal((n_out, n_in)) / np.sqrt(n_in)).astype(np.float32)

    ones = np.ones(n_embd, dtype=np.float32)
    named: list[tuple[str, np.ndarray]] = [
        ("token_embd.weight", noise(n_vocab, n_embd) * np.float32(np.sqrt(n_embd))),
        ("output_norm.weight", ones),
        # Sharper than the rest, so that the best token leads by more than rounding.
        ("output.weight", noise(n_vocab, n_embd) * np.float32(4.0)),
    ]
    for layer in range(n_layers):
        block = f"blk.{layer}"
        named += [
            (f"{block}.attn_norm.weight", ones),
            (f"{block}.attn_q.weight", noise(n_embd, n_embd)),
            (f"{block}.attn_k.weight", noise(n_kv, n_embd)),
            (f"{block}.attn_v.weight", noise(n_kv, n_embd)),
            (f"{block}.attn_output.weight", noise(n_embd, n_embd)),
            (f"{block}.ffn_norm.weight", ones),
            (f"{block}.ffn_gate.weight", noise(n_ff, n_embd)),
            (f"{block}.ffn_up.weight", noise(n_ff, n_embd)),
            (f"{block}.ffn_down.weight", noise(n_embd, n_ff)),
        ]
    return named


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--base", action="store_true", help="without a chat template")
    args = parser.parse_args(argv)
    path = write_tiny_gguf(
        args.path,
        seed=args.seed,
        head_dim=args.head_dim,
        n_heads=args.heads,
        n_layers=args.layers,
        chat_template=None if args.base else CHATML,
    )
    print(f"{path}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
