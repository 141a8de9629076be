import dataclasses
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_runtime.kv.block_file import (
    HEADER_BYTES,
    BlockFileError,
    BlockHeader,
    checksum,
    read_block,
    read_header,
    remove_if_abandoned,
    write_block,
)

PAYLOAD = bytes(range(256)) * 41 + b"tail"


def header_for(payload: bytes) -> BlockHeader:
    return BlockHeader(
        block_tokens=64,
        n_tokens=64,
        payload_bytes=len(payload),
        key_digest=b"k" * 32,
        digest=b"d" * 32,
        checksum=checksum(payload),
    )


def test_a_written_block_reads_back(tmp_path):
    path = tmp_path / "block"
    header = header_for(PAYLOAD)
    write_block(path, header, PAYLOAD)
    assert read_block(path) == (header, PAYLOAD)
    assert read_header(path) == header
    assert path.stat().st_size == HEADER_BYTES + len(PAYLOAD)
    assert [entry.name for entry in tmp_path.iterdir()] == ["block"]


def test_a_block_is_private_to_its_user(tmp_path):
    write_block(tmp_path / "block", header_for(PAYLOAD), PAYLOAD)
    assert (tmp_path / "block").stat().st_mode & 0o077 == 0


@given(at=st.integers(0, HEADER_BYTES + len(PAYLOAD) - 1), bit=st.integers(0, 7))
def test_every_flipped_bit_is_noticed(tmp_path_factory, at, bit):
    path = tmp_path_factory.getbasetemp() / "flipped"
    write_block(path, header_for(PAYLOAD), PAYLOAD)
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1 << bit
    path.write_bytes(raw)
    with pytest.raises(BlockFileError):
        read_block(path)


@pytest.mark.parametrize("size", [0, 10, HEADER_BYTES, HEADER_BYTES + 100])
def test_a_truncated_file_is_noticed(tmp_path, size):
    path = tmp_path / "block"
    write_block(path, header_for(PAYLOAD), PAYLOAD)
    os.truncate(path, size)
    with pytest.raises(BlockFileError):
        read_block(path)


def test_an_appended_byte_is_noticed(tmp_path):
    path = tmp_path / "block"
    write_block(path, header_for(PAYLOAD), PAYLOAD)
    with path.open("ab") as file:
        file.write(b"x")
    with pytest.raises(BlockFileError, match="size"):
        read_block(path)


def test_a_zeroed_page_and_swapped_pages_change_the_checksum():
    payload = os.urandom(64 * 1024)
    zeroed = payload[:8192] + bytes(4096) + payload[12288:]
    swapped = payload[4096:8192] + payload[:4096] + payload[8192:]
    assert len({checksum(payload), checksum(zeroed), checksum(swapped)}) == 3


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        write_block(tmp_path / "block", header_for(PAYLOAD), PAYLOAD)
    assert list(tmp_path.iterdir()) == []


def test_an_abandoned_file_is_removed_and_a_locked_one_is_not(tmp_path):
    import fcntl

    dead = tmp_path / ".a.tmp"
    dead.write_bytes(b"half")
    alive = tmp_path / ".b.tmp"
    with alive.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert remove_if_abandoned(dead)
        assert not remove_if_abandoned(alive)
    assert not dead.exists()
    assert alive.exists()
    assert not remove_if_abandoned(tmp_path / "missing")


def test_a_claimed_length_is_checked_before_it_is_allocated(tmp_path):
    path = tmp_path / "block"
    claim = dataclasses.replace(header_for(PAYLOAD), payload_bytes=1 << 60)
    path.write_bytes(claim.pack() + PAYLOAD)
    with pytest.raises(BlockFileError, match="size"):
        read_block(path)
