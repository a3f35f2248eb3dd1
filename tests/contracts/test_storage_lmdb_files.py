"""Files of a store that were damaged while closed: refused with a message, or opened if all data is present."""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from pathlib import Path

import pytest

from asterism.storage.contract import Batch, EngineFailed, Fence, Span
from asterism.storage.lmdb import LmdbEngine
from asterism.storage.lmdb.file_check import check_data_file
from asterism.values.identifiers import Epoch, PartitionNumber

ONE, EPOCH = PartitionNumber(1), Epoch(1)
# Offsets in LMDB's header of the page size and the number of the last page.
PAGE_BYTES_AT, LAST_PAGE_AT, META_AT = 40, 136, 4096
PAGE_BYTES = 4096


async def filled_store(directory: Path, *, entries: int = 200, shared: bool = False) -> Path:
    """Make a store with some data; return its data file. A `shared` one has a transaction for each entry."""
    engine = LmdbEngine.open(directory, durable=False, shared=shared)
    await engine.create_partition(ONE, Fence(EPOCH))
    for number in range(entries):
        await engine.apply(ONE, EPOCH, Batch(puts=[(b"%06d" % number, bytes(3000))]))
    await engine.close()
    return directory / "data.mdb"


async def test_a_data_file_shorter_than_its_tree_is_refused_with_both_sizes(tmp_path: Path) -> None:
    data_file = await filled_store(tmp_path)
    whole_bytes = data_file.stat().st_size
    os.truncate(data_file, whole_bytes // 2)
    with pytest.raises(EngineFailed, match="was cut short") as refused:
        LmdbEngine.open(tmp_path)
    assert str(whole_bytes // 2) in str(refused.value)
    assert "restore it from a copy" in str(refused.value)
    assert data_file.stat().st_size == whole_bytes // 2


@pytest.mark.parametrize("kept_bytes", [1, 100, PAGE_BYTES, PAGE_BYTES + 10, 2 * PAGE_BYTES, 3 * PAGE_BYTES])
async def test_a_data_file_cut_within_its_first_pages_is_refused(tmp_path: Path, kept_bytes: int) -> None:
    data_file = await filled_store(tmp_path)
    os.truncate(data_file, kept_bytes)
    with pytest.raises(EngineFailed, match=r"was cut short|is damaged"):
        LmdbEngine.open(tmp_path)


async def test_an_empty_data_file_of_a_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    data_file = await filled_store(tmp_path)
    os.truncate(data_file, 0)
    with pytest.raises(EngineFailed, match="is empty, although it has held a store"):
        LmdbEngine.open(tmp_path)
    assert data_file.stat().st_size == 0


async def test_a_missing_data_file_of_a_store_is_refused(tmp_path: Path) -> None:
    (await filled_store(tmp_path)).unlink()
    with pytest.raises(EngineFailed, match="is missing"):
        LmdbEngine.open(tmp_path)
    assert not (tmp_path / "data.mdb").exists()


async def test_an_empty_data_file_of_a_store_that_was_never_complete_becomes_a_store(tmp_path: Path) -> None:
    """A power failure during the first start leaves such files."""
    (tmp_path / "data.mdb").touch()
    (tmp_path / "lock.mdb").touch()
    await (LmdbEngine.open(tmp_path)).close()
    assert (tmp_path / "data.mdb").stat().st_size > 0


async def test_a_copy_of_the_data_file_alone_is_a_store(tmp_path: Path) -> None:
    data_file = await filled_store(tmp_path / "source")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "data.mdb").write_bytes(data_file.read_bytes())
    engine = LmdbEngine.open(tmp_path / "copy")
    assert len((await engine.scan(ONE, EPOCH, Span())).entries) == 200
    await engine.close()


async def test_a_file_that_lacks_free_pages_only_is_opened(tmp_path: Path) -> None:
    """LMDB counts pages that a transaction allocated and freed again, and never writes them."""
    data_file = await filled_store(tmp_path, shared=True)
    engine = LmdbEngine.open(tmp_path, durable=False, shared=True)
    await engine.apply(ONE, EPOCH, Batch(puts=[(b"huge", bytes(1_000_000))]))
    await engine.apply(ONE, EPOCH, Batch(deletes=[b"huge"]))
    await engine.close()
    whole = data_file.read_bytes()
    pages = len(whole) // PAGE_BYTES
    # Copies of the file cut at each page, shortest first: from some page on, all missing pages are free.
    shortest = bisect_left(range(pages + 1), True, key=lambda kept: opens(data_file, whole[: kept * PAGE_BYTES]))
    assert pages - 250 <= shortest < pages - 100
    assert opens(data_file, whole[: shortest * PAGE_BYTES])
    engine = LmdbEngine.open(tmp_path)
    assert len((await engine.scan(ONE, EPOCH, Span())).entries) == 200
    await engine.close()


def opens(data_file: Path, contents: bytes) -> bool:
    data_file.write_bytes(contents)
    try:
        check_data_file(data_file.parent)
    except EngineFailed:
        return False
    return True


async def test_every_store_that_was_closed_or_killed_passes_the_check(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path, durable=False)
    await engine.create_partition(ONE, Fence(EPOCH))
    for round_number in range(60):
        puts = [(b"%03d" % n, bytes(100 * (n * 37 % 50))) for n in range(round_number % 7, 200, 3)]
        await engine.apply(ONE, EPOCH, Batch(puts=puts))
        check_data_file(tmp_path)
        span = Span(b"%03d" % (round_number * 3 % 200), b"%03d" % (round_number * 5 % 200 + 40))
        await engine.apply(ONE, EPOCH, Batch(range_deletes=[span]))
        check_data_file(tmp_path)
    await engine.close()


@pytest.mark.parametrize("page_bytes", [0, 3, 1000, 1 << 31])
async def test_an_impossible_page_size_in_the_header_is_refused(tmp_path: Path, page_bytes: int) -> None:
    data_file = await filled_store(tmp_path)
    with data_file.open("r+b") as file:
        file.seek(PAGE_BYTES_AT)
        file.write(struct.pack("=I", page_bytes))
    with pytest.raises(EngineFailed, match="is damaged"):
        LmdbEngine.open(tmp_path)


def test_a_directory_in_the_place_of_the_data_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").mkdir()
    with pytest.raises(EngineFailed, match="cannot be read"):
        LmdbEngine.open(tmp_path)


@pytest.mark.parametrize("lock_bytes", [0, 1, 100, 4096, 100_000])
async def test_a_lock_file_of_any_length_is_repaired(tmp_path: Path, lock_bytes: int) -> None:
    await filled_store(tmp_path)
    os.truncate(tmp_path / "lock.mdb", lock_bytes)
    engine = LmdbEngine.open(tmp_path)
    assert len((await engine.scan(ONE, EPOCH, Span())).entries) == 200
    snapshots = [await engine.snapshot(ONE, EPOCH) for _ in range(200)]
    for snapshot in snapshots:
        await snapshot.close()
    await engine.close()


async def test_the_lock_file_has_no_holes_that_a_full_disk_could_not_fill(tmp_path: Path) -> None:
    await filled_store(tmp_path)
    found = (tmp_path / "lock.mdb").stat()
    assert found.st_blocks * 512 >= found.st_size
