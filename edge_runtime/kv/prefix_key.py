"""What a stored prefix belongs to, and the hash chain that names its blocks."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise

DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class PrefixKey:
    """Everything that decides whether the bytes of a cache can be reused.

    Two sessions may share stored blocks only when all fields are equal. `tokenizer` is a digest
    or name of the vocabulary, `build` names the native library's build, `rotation` says whether
    the cache rows are rotated before quantisation, `extra` holds whatever else matters (rope
    scaling, adapters), as sorted pairs.
    """

    model_sha256: str
    tokenizer: str
    build: str
    type_k: str
    type_v: str
    flash_attn: bool
    rotation: bool = False
    extra: tuple[tuple[str, str], ...] = field(default=())

    def to_json(self) -> str:
        """One canonical line of JSON."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    @property
    def digest(self) -> bytes:
        """32 bytes that stand for all fields."""
        return _hash(b"key", self.to_json().encode())


def block_bounds(n_tokens: int, block_tokens: int) -> list[tuple[int, int]]:
    """Half-open token ranges of the blocks; the last one may be shorter."""
    edges = [*range(0, n_tokens, block_tokens), n_tokens]
    return list(pairwise(edges)) if n_tokens else []


def next_digest(previous: bytes, tokens: Sequence[int]) -> bytes:
    """The name of a block that follows the block called `previous` (or the key's digest)."""
    return _hash(b"block", previous, array("i", tokens).tobytes())


def _hash(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()
