"""Small models of other kinds than `tools/make_tiny_gguf.py` writes, for single tests."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tools.make_tiny_gguf import MERGES, vocabulary


def write_recurrent_gguf(path: Path, *, seed: int = 0) -> Path:
    """A Mamba: its state is one sum over all tokens and cannot be rolled back."""
    n_embd, n_layers, d_conv, d_state = 32, 2, 4, 8
    d_inner, dt_rank = 2 * n_embd, 4
    tokens, types = vocabulary()
    rng = np.random.default_rng(seed)

    def noise(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    writer = gguf.GGUFWriter(path, "mamba")
    writer.add_name("tiny-recurrent")
    writer.add_context_length(4096)
    writer.add_embedding_length(n_embd)
    writer.add_feed_forward_length(0)
    writer.add_block_count(n_layers)
    writer.add_ssm_conv_kernel(d_conv)
    writer.add_ssm_inner_size(d_inner)
    writer.add_ssm_state_size(d_state)
    writer.add_ssm_time_step_rank(dt_rank)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(list(MERGES))
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_tensor("token_embd.weight", noise(len(tokens), n_embd) * np.float32(5))
    writer.add_tensor("output_norm.weight", np.ones(n_embd, np.float32))
    writer.add_tensor("output.weight", noise(len(tokens), n_embd) * np.float32(4))
    for layer in range(n_layers):
        block = f"blk.{layer}"
        a = -np.tile(np.arange(1, d_state + 1, dtype=np.float32), (d_inner, 1))
        for name, values in {
            "attn_norm.weight": np.ones(n_embd, np.float32),
            "ssm_in.weight": noise(2 * d_inner, n_embd),
            "ssm_conv1d.weight": noise(d_inner, d_conv),
            "ssm_conv1d.bias": np.zeros(d_inner, np.float32),
            "ssm_x.weight": noise(dt_rank + 2 * d_state, d_inner),
            "ssm_dt.weight": noise(d_inner, dt_rank),
            "ssm_dt.bias": np.zeros(d_inner, np.float32),
            "ssm_a": a,
            "ssm_d": np.ones(d_inner, np.float32),
            "ssm_out.weight": noise(n_embd, d_inner),
        }.items():
            writer.add_tensor(f"{block}.{name}", values)
    return _write(writer, path)


def write_sentencepiece_gguf(path: Path, *, user_defined: tuple[str, ...] = ()) -> Path:
    """A vocabulary whose tokenizer usually puts a space before every text."""
    n_embd = 32
    special = ["<unk>", "<s>", "</s>"]
    pieces = ["\u2581", "h", "i", "hi", "\u2581hi", "\n"]
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = [*special, *bytes_, *pieces, *user_defined]
    types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    types += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * len(pieces)
    types += [gguf.TokenType.USER_DEFINED] * len(user_defined)
    rng = np.random.default_rng(0)

    def noise(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny-sentencepiece")
    writer.add_context_length(256)
    writer.add_embedding_length(n_embd)
    writer.add_feed_forward_length(n_embd)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_block_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    scores = [-float(i) for i in range(len(pieces))][::-1]
    writer.add_token_scores([0.0] * (3 + 256) + scores + [0.0] * len(user_defined))
    writer.add_token_types([int(t) for t in types])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_tensor("token_embd.weight", noise(len(tokens), n_embd))
    writer.add_tensor("output_norm.weight", np.ones(n_embd, np.float32))
    writer.add_tensor("output.weight", noise(len(tokens), n_embd))
    for name, shape in {
        "attn_norm": (n_embd,),
        "attn_q": (n_embd, n_embd),
        "attn_k": (n_embd, n_embd),
        "attn_v": (n_embd, n_embd),
        "attn_output": (n_embd, n_embd),
        "ffn_norm": (n_embd,),
        "ffn_gate": (n_embd, n_embd),
        "ffn_up": (n_embd, n_embd),
        "ffn_down": (n_embd, n_embd),
    }.items():
        writer.add_tensor(f"blk.0.{name}.weight", noise(*shape))
    return _write(writer, path)


def write_sliding_window_gguf(path: Path, *, n_window: int = 32) -> Path:
    """A Gemma 3: five of six layers see only the last tokens, in a cache of their own."""
    n_embd, n_layers, head_dim = 64, 6, 32
    tokens, types = vocabulary()
    rng = np.random.default_rng(0)

    def noise(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    writer = gguf.GGUFWriter(path, "gemma3")
    writer.add_name("tiny-sliding-window")
    writer.add_context_length(4096)
    writer.add_embedding_length(n_embd)
    writer.add_feed_forward_length(n_embd)
    writer.add_block_count(n_layers)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_sliding_window(n_window)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(list(MERGES))
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_tensor("token_embd.weight", noise(len(tokens), n_embd) * np.float32(2))
    writer.add_tensor("output_norm.weight", np.ones(n_embd, np.float32))
    ones = {"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"}
    for layer in range(n_layers):
        for name, shape in {
            "attn_norm": (n_embd,),
            "attn_q": (2 * head_dim, n_embd),
            "attn_k": (head_dim, n_embd),
            "attn_v": (head_dim, n_embd),
            "attn_output": (n_embd, 2 * head_dim),
            "attn_q_norm": (head_dim,),
            "attn_k_norm": (head_dim,),
            "post_attention_norm": (n_embd,),
            "ffn_norm": (n_embd,),
            "ffn_gate": (n_embd, n_embd),
            "ffn_up": (n_embd, n_embd),
            "ffn_down": (n_embd, n_embd),
            "post_ffw_norm": (n_embd,),
        }.items():
            is_norm = name in ones or name.endswith("_norm")
            values = np.ones(shape, np.float32) if is_norm else noise(*shape)
            writer.add_tensor(f"blk.{layer}.{name}.weight", values)
    return _write(writer, path)


def _write(writer: gguf.GGUFWriter, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
