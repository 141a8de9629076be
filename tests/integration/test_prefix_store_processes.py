"""The prefix store between processes: killed writers, racing evictions, a full disk."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge_runtime.kv.prefix_key import PrefixKey
from edge_runtime.kv.prefix_store import PrefixStore

REPOSITORY = Path(__file__).resolve().parents[2]
KEY = PrefixKey("f" * 64, "tok", "build", "f16", "f16", flash_attn=True)
BLOCK_TOKENS = 8
BLOCK_BYTES = 256 * 1024

SHARED = f"""
import sys
from pathlib import Path
from edge_runtime.kv.prefix_key import PrefixKey
from edge_runtime.kv.prefix_store import PrefixStore

KEY = PrefixKey("f" * 64, "tok", "build", "f16", "f16", flash_attn=True)

def tokens_of(n):
    return [n] * 8 + [n, 1] * 4 + [n, 2]

def blocks_of(n):
    return [bytes([n % 251, i]) * ({BLOCK_BYTES} // 2) for i in range(3)]

def store(**options):
    return PrefixStore(Path(sys.argv[1]), block_tokens={BLOCK_TOKENS}, **options)
"""

WRITER = (
    SHARED
    + """
print("ready", flush=True)
own = store()
n = int(sys.argv[2])
while True:
    own.put(KEY, tokens_of(n), blocks_of(n))
    n += 1
"""
)

RACER = (
    SHARED
    + """
import random
rng = random.Random(sys.argv[2])
own = store(memory_budget_bytes=0, disk_budget_bytes=12 * 256 * 1024)
n_hits = 0
for _ in range(60):
    n = rng.randrange(10)
    hit = own.lookup(KEY, tokens_of(n))
    assert hit.blocks == blocks_of(n)[: len(hit.blocks)], "wrong bytes"
    n_hits += bool(hit.blocks)
    if len(hit.blocks) < 3:
        own.put(KEY, tokens_of(n), blocks_of(n))
stats = own.stats()
assert stats.n_damaged == 0, "a torn read"
assert stats.n_failed_writes == 0, stats.disk_problem
print(n_hits, stats.n_evicted_disk)
"""
)


def tokens_of(n: int) -> list[int]:
    return [n] * 8 + [n, 1] * 4 + [n, 2]


def blocks_of(n: int) -> list[bytes]:
    return [bytes([n % 251, i]) * (BLOCK_BYTES // 2) for i in range(3)]


def start(code: str, root: Path, argument: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(root), argument],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_writer_killed_at_any_moment_leaves_a_working_store(tmp_path):
    rng = random.Random(1)
    for round_ in range(8):
        writer = start(WRITER, tmp_path, str(1000 * round_))
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.0, 0.12))
        writer.kill()
        writer.communicate()
        store = PrefixStore(tmp_path, block_tokens=BLOCK_TOKENS)
        assert store.verify().damaged == ()
        for n in range(1000 * round_, 1000 * round_ + 3):
            hit = store.lookup(KEY, tokens_of(n))
            assert hit.blocks == blocks_of(n)[: len(hit.blocks)]
            store.put(KEY, tokens_of(n), blocks_of(n))
            assert PrefixStore(tmp_path, block_tokens=BLOCK_TOKENS).lookup(
                KEY, tokens_of(n)
            ).n_tokens == len(tokens_of(n))
    leftovers = list(tmp_path.rglob("*.tmp"))
    assert PrefixStore(tmp_path, block_tokens=BLOCK_TOKENS).clear() > 0
    assert not [path for path in leftovers if path.exists()]


def test_processes_that_write_read_and_evict_at_once_see_no_torn_block(tmp_path):
    racers = [start(RACER, tmp_path, str(i)) for i in range(3)]
    outputs = [racer.communicate(timeout=120) for racer in racers]
    for racer, (_, errors) in zip(racers, outputs, strict=True):
        assert racer.returncode == 0, errors
    n_hits, n_evicted = (
        sum(col) for col in zip(*(map(int, o.split()) for o, _ in outputs), strict=True)
    )
    assert n_hits > 0
    assert n_evicted > 0
    assert PrefixStore(tmp_path, block_tokens=BLOCK_TOKENS).verify().damaged == ()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


def test_a_full_disk_degrades_to_memory_and_says_so(small_disk):
    store = PrefixStore(small_disk / "store", block_tokens=BLOCK_TOKENS)
    for n in range(3):
        store.put(KEY, tokens_of(n), blocks_of(n))
    assert store.disk_problem is not None
    assert "no room" in store.disk_problem
    for n in range(3):
        hit = store.lookup(KEY, tokens_of(n))
        assert (hit.blocks, hit.source) == (blocks_of(n), "memory")
    assert list(small_disk.rglob("*.tmp")) == []
    fresh = PrefixStore(small_disk / "store", block_tokens=BLOCK_TOKENS)
    assert fresh.verify().damaged == ()
    assert fresh.lookup(KEY, tokens_of(0)).blocks == blocks_of(0)
