import dataclasses
import logging
import os
import resource
import time
from pathlib import Path

import pytest

from edge_runtime.errors import UsageError
from edge_runtime.kv.prefix_key import PrefixKey, block_bounds, next_digest
from edge_runtime.kv.prefix_store import PrefixStore, default_root

KEY = PrefixKey("a" * 64, "tok", "build-1", "f16", "f16", flash_attn=True)
B = 4
KB = 1024


def payloads(n: int, size: int = 100, tag: str = "") -> list[bytes]:
    return [f"{tag}{i}".encode().ljust(size, b".") for i in range(n)]


def store_at(root: Path | None, **options) -> PrefixStore:
    options = {"memory_budget_bytes": 64 * KB, "disk_budget_bytes": 64 * KB, **options}
    return PrefixStore(root, block_tokens=B, **options)


def block_files(root: Path) -> list[Path]:
    return sorted(root.rglob("*.kvb"))


def test_a_new_store_knows_nothing(tmp_path):
    hit = store_at(tmp_path).lookup(KEY, list(range(20)))
    assert (hit.n_tokens, hit.blocks, hit.source) == (0, [], "none")


def test_the_longest_stored_beginning_is_found(tmp_path):
    store = store_at(tmp_path)
    blocks = payloads(3)
    store.put(KEY, list(range(12)), blocks)
    hit = store.lookup(KEY, [*range(8), 99, 98, 97, 96])
    assert (hit.n_tokens, hit.blocks, hit.source) == (8, blocks[:2], "memory")


def test_a_restart_finds_blocks_on_disk_and_then_in_memory(tmp_path):
    blocks = payloads(3)
    store_at(tmp_path).put(KEY, list(range(12)), blocks)
    fresh = store_at(tmp_path)
    first = fresh.lookup(KEY, list(range(50)))
    assert (first.n_tokens, first.blocks, first.source) == (12, blocks, "disk")
    assert fresh.lookup(KEY, list(range(50))).source == "memory"


def test_blocks_from_both_places_are_a_mixed_hit(tmp_path):
    store_at(tmp_path).put(KEY, list(range(12)), payloads(3))
    fresh = store_at(tmp_path)
    fresh.lookup(KEY, list(range(4)))
    assert fresh.lookup(KEY, list(range(12))).source == "mixed"


def test_a_shorter_last_block_is_stored_and_found(tmp_path):
    blocks = payloads(3)
    store_at(tmp_path).put(KEY, list(range(10)), blocks)
    fresh = store_at(tmp_path)
    assert fresh.lookup(KEY, list(range(50))).n_tokens == 10
    assert fresh.lookup(KEY, list(range(9))).n_tokens == 8
    assert fresh.lookup(KEY, [*range(9), 77]).n_tokens == 8


def test_a_missing_last_block_means_full_blocks_only(tmp_path):
    store = store_at(tmp_path)
    store.put(KEY, list(range(10)), payloads(2))
    assert store.lookup(KEY, list(range(10))).n_tokens == 8


def test_blocks_that_do_not_fit_the_tokens_are_refused(tmp_path):
    with pytest.raises(UsageError, match="3 blocks, not 5"):
        store_at(tmp_path).put(KEY, list(range(10)), payloads(5))


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(PrefixKey)])
def test_every_field_of_the_key_separates(tmp_path, field):
    store = store_at(tmp_path)
    store.put(KEY, list(range(8)), payloads(2))
    old = getattr(KEY, field)
    new = {"flash_attn": False, "rotation": True, "extra": (("rope", "2"),)}.get(field, f"{old}x")
    assert store.lookup(dataclasses.replace(KEY, **{field: new}), list(range(8))).n_tokens == 0


def test_the_same_tokens_after_another_beginning_are_another_block():
    one = next_digest(next_digest(KEY.digest, [1, 2]), [3, 4])
    other = next_digest(next_digest(KEY.digest, [9, 2]), [3, 4])
    assert one != other


def test_bounds_cover_all_tokens_once():
    assert block_bounds(0, 4) == []
    assert block_bounds(8, 4) == [(0, 4), (4, 8)]
    assert block_bounds(9, 4) == [(0, 4), (4, 8), (8, 9)]


def test_blocks_of_another_size_are_never_mixed(tmp_path):
    store_at(tmp_path).put(KEY, list(range(8)), payloads(2))
    other = PrefixStore(tmp_path, block_tokens=8)
    assert other.lookup(KEY, list(range(8))).n_tokens == 0


@pytest.mark.parametrize("at", [0, 9, 20, 60, 100, 127, 128, 200])
def test_a_damaged_block_is_a_reported_miss_and_is_dropped(tmp_path, caplog, at):
    blocks = payloads(3)
    store_at(tmp_path).put(KEY, list(range(12)), blocks)
    digest = next_digest(next_digest(KEY.digest, [0, 1, 2, 3]), [4, 5, 6, 7])
    (victim,) = [path for path in block_files(tmp_path) if path.stem == digest.hex()]
    raw = bytearray(victim.read_bytes())
    raw[at] ^= 0x55
    victim.write_bytes(raw)
    fresh = store_at(tmp_path)
    with caplog.at_level(logging.WARNING, "edge_runtime.kv"):
        hit = fresh.lookup(KEY, list(range(12)))
    assert (hit.n_tokens, hit.blocks) == (4, blocks[:1])
    assert fresh.stats().n_damaged == 1
    assert "Damaged block" in caplog.text
    assert not victim.exists()


def test_a_block_under_a_foreign_name_is_a_miss(tmp_path):
    store_at(tmp_path).put(KEY, list(range(8)), payloads(2))
    first, second = block_files(tmp_path)
    second.write_bytes(first.read_bytes())
    fresh = store_at(tmp_path)
    hit = fresh.lookup(KEY, list(range(8)))
    assert fresh.stats().n_damaged == 1
    assert hit.n_tokens in {0, 4}
    assert all(block in payloads(2) for block in hit.blocks)


def test_memory_holds_no_more_than_its_budget(tmp_path):
    store = store_at(None, memory_budget_bytes=1000)
    store.put(KEY, list(range(80)), payloads(20))
    stats = store.stats()
    assert stats.memory_bytes <= 1000
    assert stats.n_evicted_memory == 10
    assert store.lookup(KEY, list(range(80))).n_tokens == 40


def test_what_was_used_last_stays_in_memory():
    store = store_at(None, memory_budget_bytes=400)
    store.put(KEY, [1, 1, 1, 1, 1, 1, 1, 1], payloads(2))
    store.put(KEY, [2, 2, 2, 2], payloads(1))
    store.lookup(KEY, [1] * 8)
    store.put(KEY, [3] * 8, payloads(2))
    assert store.lookup(KEY, [1] * 8).n_tokens == 8
    assert store.lookup(KEY, [2] * 4).n_tokens == 0


def test_a_block_larger_than_the_memory_budget_goes_to_disk_only(tmp_path):
    store = store_at(tmp_path, memory_budget_bytes=50)
    store.put(KEY, list(range(4)), payloads(1))
    assert store.stats().n_memory_blocks == 0
    assert store.lookup(KEY, list(range(4))).source == "disk"


def test_disk_holds_no_more_than_its_budget_and_keeps_the_newest(tmp_path):
    store = store_at(tmp_path, memory_budget_bytes=0, disk_budget_bytes=3000)
    for i in range(20):
        store.put(KEY, [i] * 8, payloads(2, tag=str(i)))
    assert sum(path.stat().st_size for path in block_files(tmp_path)) <= 3000
    assert store.stats().n_evicted_disk > 0
    assert store.lookup(KEY, [19] * 8).n_tokens == 8
    assert store.lookup(KEY, [0] * 8).n_tokens == 0


def test_eviction_takes_the_end_of_a_chain_before_its_beginning(tmp_path):
    store = store_at(tmp_path, memory_budget_bytes=0, disk_budget_bytes=1200)
    store.put(KEY, list(range(40)), payloads(10))
    hit = store.lookup(KEY, list(range(40)))
    assert 0 < hit.n_tokens < 40
    assert hit.n_tokens == 4 * len(block_files(tmp_path))


def test_a_used_prefix_outlives_an_unused_one_on_disk(tmp_path):
    store = store_at(tmp_path, memory_budget_bytes=0, disk_budget_bytes=1100)
    store.put(KEY, [1] * 8, payloads(2))
    store.put(KEY, [2] * 8, payloads(2))
    for path in block_files(tmp_path):
        os.utime(path, (time.time() - 1000, time.time() - 1000))
    store_at(tmp_path, memory_budget_bytes=0).lookup(KEY, [1] * 8)
    store.put(KEY, [3] * 8, payloads(2))
    assert store.lookup(KEY, [1] * 8).n_tokens == 8
    assert store.lookup(KEY, [2] * 8).n_tokens < 8


def test_storing_again_writes_nothing_new(tmp_path):
    store = store_at(tmp_path)
    store.put(KEY, list(range(8)), payloads(2))
    before = [path.stat().st_ino for path in block_files(tmp_path)]
    store.put(KEY, list(range(8)), payloads(2))
    assert [path.stat().st_ino for path in block_files(tmp_path)] == before


def test_leftovers_of_dead_writers_are_cleaned_up(tmp_path):
    store = store_at(tmp_path)
    store.put(KEY, list(range(4)), payloads(1))
    folder = block_files(tmp_path)[0].parent
    old, new = folder / ".old.tmp", folder / ".new.tmp"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (time.time() - 3600, time.time() - 3600))
    report = store.verify()
    assert report.n_abandoned == 1
    assert not old.exists()
    assert new.exists()


def test_verify_reads_everything_and_drops_what_is_damaged(tmp_path):
    store_at(tmp_path).put(KEY, list(range(12)), payloads(3))
    victim = block_files(tmp_path)[1]
    os.truncate(victim, 150)
    report = store_at(tmp_path).verify()
    assert report.n_blocks == 2
    assert [name for name, _ in report.damaged] == [f"{victim.parent.name}/{victim.name}"]
    assert not victim.exists()
    assert store_at(tmp_path).verify().damaged == ()


def test_verify_notices_a_block_under_another_name(tmp_path):
    store_at(tmp_path).put(KEY, list(range(4)), payloads(1))
    (path,) = block_files(tmp_path)
    path.rename(path.with_name("0" * 64 + ".kvb"))
    ((_, problem),) = store_at(tmp_path).verify().damaged
    assert problem == "stored under another name"


def test_clear_removes_blocks_but_nothing_foreign(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    store = store_at(tmp_path)
    store.put(KEY, list(range(8)), payloads(2))
    n_bytes = sum(path.stat().st_size for path in block_files(tmp_path))
    assert store.clear() == n_bytes
    assert block_files(tmp_path) == []
    assert store.lookup(KEY, list(range(8))).n_tokens == 0
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_groups_say_what_the_blocks_belong_to(tmp_path):
    store = store_at(tmp_path)
    store.put(KEY, list(range(8)), payloads(2))
    other = dataclasses.replace(KEY, type_k="q8_0")
    store.put(other, list(range(4)), payloads(1))
    groups = {group.key["type_k"]: group for group in store.groups()}
    assert groups["f16"].n_blocks == 2
    assert groups["q8_0"].n_blocks == 1
    assert groups["f16"].n_bytes == 2 * (100 + 128)


def test_an_unreadable_description_does_not_hurt(tmp_path):
    store = store_at(tmp_path)
    store.put(KEY, list(range(4)), payloads(1))
    (description,) = tmp_path.rglob("key.json")
    description.write_text("{")
    assert store.groups()[0].key == {}
    assert store_at(tmp_path).lookup(KEY, list(range(4))).n_tokens == 4


def test_a_root_that_is_a_file_degrades_to_memory(tmp_path, caplog):
    root = tmp_path / "file"
    root.write_text("not a folder")
    store = store_at(root)
    with caplog.at_level(logging.WARNING, "edge_runtime.kv"):
        store.put(KEY, list(range(4)), payloads(1))
    assert store.lookup(KEY, list(range(4))).source == "memory"
    assert store.disk_problem is not None
    assert store.stats().n_failed_writes == 1
    assert "keeps to memory" in caplog.text


def test_a_file_size_limit_degrades_to_memory_and_leaves_no_half_file(tmp_path):
    store = store_at(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        store.put(KEY, list(range(4)), payloads(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert store.lookup(KEY, list(range(4))).source == "memory"
    assert store.disk_problem is not None
    assert "no room" in store.disk_problem
    assert not [p for p in tmp_path.rglob("*") if p.suffix in {".kvb", ".tmp"}]


def test_the_disk_is_tried_again_after_a_while(tmp_path, monkeypatch):
    root = tmp_path / "later"
    root.write_text("in the way")
    store = store_at(root)
    store.put(KEY, list(range(4)), payloads(1))
    root.unlink()
    store.put(KEY, list(range(4)), payloads(1))
    assert block_files(tmp_path) == []
    later = time.monotonic() + 3600
    monkeypatch.setattr(time, "monotonic", lambda: later)
    store.put(KEY, list(range(4)), payloads(1))
    assert len(block_files(root)) == 1
    assert store.disk_problem is None


def test_a_store_without_root_works_in_memory_alone():
    store = store_at(None)
    store.put(KEY, list(range(4)), payloads(1))
    assert store.lookup(KEY, list(range(4))).source == "memory"
    assert store.verify().n_blocks == 0
    assert store.groups() == []
    assert store.clear() == 0


def test_nonsense_options_are_refused(tmp_path):
    with pytest.raises(UsageError):
        PrefixStore(tmp_path, block_tokens=0)
    with pytest.raises(UsageError):
        PrefixStore(tmp_path, memory_budget_bytes=-1)


def test_payloads_are_kept_without_a_copy():
    store = store_at(None)
    blocks = payloads(1)
    store.put(KEY, list(range(4)), blocks)
    assert store.lookup(KEY, list(range(4))).blocks[0] is blocks[0]


def test_the_default_folder_follows_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("EDGE_RUNTIME_CACHE", str(tmp_path))
    assert default_root() == tmp_path / "prefixes"
