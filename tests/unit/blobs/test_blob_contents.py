"""Contents of block and append blobs: written in pieces, read in ranges, kept by snapshots, and removed in the end."""

from __future__ import annotations

import asyncio
import os
import random

import pytest

from asterism.errors import AsterismError
from asterism.keyspaces.routing.families import ITEMS
from asterism.limits import KIB, MIB
from asterism.models.blobs.calls import BlockEntry, BlockSource, ListQuery, NewBlob, Snapshot, SnapshotDeletion
from asterism.models.blobs.conditions import Conditions
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.layout import (
    BLOCKS,
    DATA,
    GARBAGE,
    INLINE_BYTES_MAX,
    MANIFESTS,
    UNCOMMITTED,
    UNCOMMITTED_BLOCKS_MAX,
    UPLOADS,
    VERSIONS,
    block_count_key,
    point_of,
)
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.upkeep import BlobUpkeep
from asterism.storage.contract import Add, Batch
from tests.support.blobs import (
    BlobWorld,
    append,
    content_of,
    create_append,
    get,
    listed,
    put,
    put_block,
    run_blobs,
)

DATA_BYTES = random.Random(17).randbytes(3 * MIB + 17)
SIZES = (0, 1, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 256 * KIB, 256 * KIB + 1, MIB, MIB + 1, len(DATA_BYTES))


def latest(*block_ids: bytes) -> list[BlockEntry]:
    return [BlockEntry(BlockSource.LATEST, block_id) for block_id in block_ids]


async def pass_time(world: BlobWorld, seconds: float) -> None:
    """Let time pass, and upkeep do its round."""
    world.skew.seconds += seconds
    await BlobUpkeep(world.blobs).sweep()


def refused(failure: BlobFailure) -> pytest.RaisesExc[BlobRefused]:
    return pytest.RaisesExc(BlobRefused, check=lambda error: error.failure is failure)


# --- writing and reading ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_a_blob_of_any_size_is_read_as_it_was_put(size: int) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        record = await put(container, "blob", DATA_BYTES[:size])
        assert record.size == size
        assert await get(container, "blob") == DATA_BYTES[:size]
        for start, end in ((0, 1), (size // 2, size), (size // 3, size // 3 + 300_000), (size, size + 1)):
            assert await get(container, "blob", start=start, end=end) == DATA_BYTES[:size][start:end]
        await world.check_statistics(container)

    run_blobs(test)


def test_pieces_of_any_size_make_the_same_blob() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        for piece_bytes in (1_000, 100_000, MIB + 1, 2 * MIB):
            async with container.begin_upload("blob") as upload:
                for start in range(0, len(DATA_BYTES), piece_bytes):
                    await upload.write(DATA_BYTES[start : start + piece_bytes])
                await container.put_blob("blob", upload, NewBlob())
            assert await get(container, "blob") == DATA_BYTES
        assert await world.entries(container, UPLOADS) == []

    run_blobs(test)


def test_an_upload_that_is_left_leaves_nothing() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        async with container.begin_upload("blob") as upload:
            await upload.write(DATA_BYTES)
            assert upload.has_parts
        assert await world.entries(container, DATA) == await world.entries(container, UPLOADS) == []
        await world.check_statistics(container)

    run_blobs(test)


def test_an_upload_that_was_cut_off_is_removed_after_an_hour_and_cannot_be_ended_then() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        upload = container.begin_upload("blob")
        await upload.write(DATA_BYTES)
        await pass_time(world, 3000)
        assert len(await world.entries(container, UPLOADS)) == 1
        await pass_time(world, 700)
        assert await world.entries(container, DATA) == await world.entries(container, UPLOADS) == []
        with refused(BlobFailure.UPLOAD_EXPIRED):
            await container.put_blob("blob", upload, NewBlob())
        await world.check_statistics(container)

    run_blobs(test)


def test_a_reader_gets_the_content_that_it_found_although_the_blob_is_replaced() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        record = await put(container, "blob", DATA_BYTES)
        await put(container, "blob", b"other")
        await pass_time(world, 299)
        assert await content_of(container, record) == DATA_BYTES
        pieces = container.read(record)
        first = await anext(pieces)
        await pass_time(world, 1000)
        assert first + b"".join([piece async for piece in pieces]) == DATA_BYTES
        await pass_time(world, 1)
        assert await world.entries(container, DATA) == await world.entries(container, GARBAGE) == []
        await world.check_statistics(container)

    run_blobs(test)


def test_a_blob_that_is_always_read_does_not_keep_what_it_released_before() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "blob", DATA_BYTES)
        await put(container, "blob", DATA_BYTES[::-1])
        world.skew.seconds += 400
        pieces = container.read(await container.find("blob"))
        first = await anext(pieces)
        await pass_time(world, 1)
        assert len(await world.entries(container, GARBAGE)) == 0
        assert first + b"".join([piece async for piece in pieces]) == DATA_BYTES[::-1]

    run_blobs(test)


# --- blocks -----------------------------------------------------------------------------------------------------------


def test_blocks_are_committed_in_the_order_of_the_list() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put_block(container, "blob", b"a", b"A" * 10)
        await put_block(container, "blob", b"b", DATA_BYTES)
        lists = await container.block_list("blob")
        assert lists.record is None
        assert [tuple(block) for block in lists.uncommitted] == [(b"a", 10), (b"b", len(DATA_BYTES))]
        with refused(BlobFailure.NOT_FOUND):
            await container.find("blob")
        await container.commit_blocks("blob", latest(b"b", b"a", b"b"), NewBlob())
        assert await get(container, "blob") == DATA_BYTES + b"A" * 10 + DATA_BYTES
        assert [block.block_id for block in (await container.block_list("blob")).committed] == [b"b", b"a", b"b"]
        assert await world.entries(container, BLOCKS) == await world.entries(container, UNCOMMITTED) == []
        await world.check_statistics(container)

    run_blobs(test)


def test_a_list_takes_committed_blocks_over_and_the_others_are_removed() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        for block_id in (b"a", b"b", b"c"):
            await put_block(container, "blob", block_id, block_id * 10_000)
        await container.commit_blocks("blob", latest(b"a", b"b"), NewBlob())
        await put_block(container, "blob", b"a", b"new")
        await container.commit_blocks(
            "blob", [BlockEntry(BlockSource.COMMITTED, b"a"), BlockEntry(BlockSource.UNCOMMITTED, b"a")], NewBlob()
        )
        assert await get(container, "blob") == b"a" * 10_000 + b"new"
        await pass_time(world, 400)
        assert sorted(value for _, value in await world.entries(container, DATA)) == [b"a" * 10_000, b"new"]
        await world.check_statistics(container)

    run_blobs(test)


@pytest.mark.parametrize("source", BlockSource)
def test_a_list_that_names_an_unknown_block_changes_nothing(source: BlockSource) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put_block(container, "blob", b"a", b"data")
        with refused(BlobFailure.INVALID_BLOCK_LIST):
            await container.commit_blocks("blob", [*latest(b"a"), BlockEntry(source, b"x")], NewBlob())
        assert len((await container.block_list("blob")).uncommitted) == 1

    run_blobs(test)


def test_ids_of_another_length_are_refused() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put_block(container, "blob", b"a", b"data")
        with refused(BlobFailure.INVALID_BLOB_OR_BLOCK):
            await put_block(container, "blob", b"ab", b"data")

    run_blobs(test)


def test_blocks_put_at_once_are_all_there_and_a_commit_between_them_loses_none() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        ids = [b"%04d" % number for number in range(60)]

        async def commit_all() -> set[bytes]:
            committed = {block.block_id for block in (await container.block_list("blob")).committed}
            uncommitted = {block.block_id for block in (await container.block_list("blob")).uncommitted}
            await container.commit_blocks("blob", latest(*sorted(committed | uncommitted)), NewBlob())
            return committed | uncommitted

        await put_block(container, "blob", ids[0], ids[0])
        puts = [put_block(container, "blob", block_id, block_id) for block_id in ids[1:]]
        await asyncio.gather(*puts[:30], commit_all(), *puts[30:])
        await commit_all()
        # A block that was put between the list's making and its commit is discarded, as the service does.
        stored = await get(container, "blob")
        assert len(stored) % 4 == 0
        assert stored == b"".join(sorted({stored[at : at + 4] for at in range(0, len(stored), 4)}))
        await pass_time(world, 400)
        assert len(await world.entries(container, DATA)) == len(stored) // 4
        await world.check_statistics(container)

    run_blobs(test)


def test_a_long_list_lies_in_manifests_and_a_range_of_it_is_read() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        ids = [b"%05d" % number for number in range(2_500)]
        for block_id in ids:
            await put_block(container, "blob", block_id, block_id)
        whole = b"".join(ids)
        record = await container.commit_blocks("blob", latest(*ids), NewBlob())
        assert record.size == len(whole)
        assert len(await world.entries(container, MANIFESTS)) == 3
        assert await get(container, "blob") == whole
        assert await get(container, "blob", start=4_998, end=5_004) == whole[4_998:5_004]
        await container.delete("blob")
        await pass_time(world, 400)
        for family in (DATA, MANIFESTS, GARBAGE, ITEMS):
            assert await world.entries(container, family) == []
        await world.check_statistics(container)

    run_blobs(test)


def test_a_blob_has_so_many_uncommitted_blocks_and_no_more() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        point = point_of("blob")
        batch = Batch(adds=[Add(block_count_key(point), (UNCOMMITTED_BLOCKS_MAX - 1,))])
        await container.space.store_part(point, batch, 0)
        await put_block(container, "blob", b"a", b"data")
        await put_block(container, "blob", b"a", b"again")
        with refused(BlobFailure.TOO_MANY_UNCOMMITTED_BLOCKS):
            await put_block(container, "blob", b"b", b"data")
        await container.commit_blocks("blob", latest(b"a"), NewBlob())
        await put_block(container, "blob", b"b", b"data")

    run_blobs(test)


def test_blocks_that_are_never_committed_are_removed_after_a_week() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put_block(container, "blob", b"a", DATA_BYTES)
        await pass_time(world, 6 * 24 * 3600)
        assert len((await container.list(ListQuery(uncommitted=True))).entries) == 1
        await pass_time(world, 2 * 24 * 3600)
        assert (await container.list(ListQuery(uncommitted=True))).entries == []
        await pass_time(world, 400)
        for family in (DATA, BLOCKS, UNCOMMITTED, GARBAGE, ITEMS):
            assert await world.entries(container, family) == []
        await world.check_statistics(container)

    run_blobs(test)


# --- append blobs, snapshots ------------------------------------------------------------------------------------------


def test_an_append_blob_grows_and_its_snapshots_stay_as_they_were() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_append(container, "log")
        draw, whole, snapshots = random.Random(5), b"", {}
        for number in range(150):
            piece = DATA_BYTES[: draw.choice((1, 100, 5_000, 2 * MIB if number % 40 == 0 else 300))]
            whole += piece
            await append(container, "log", piece)
            if number % 30 == 29:
                snapshots[(await container.snapshot("log")).snapshot] = whole
        assert await get(container, "log") == whole
        for moment, content in snapshots.items():
            assert await get(container, "log", Snapshot(moment)) == content
            start = len(content) * 2 // 3
            assert await get(container, "log", Snapshot(moment), start, start + 70_000) == content[start:][:70_000]
        await put(container, "log", b"over")
        await pass_time(world, 400)
        for moment, content in snapshots.items():
            assert await get(container, "log", Snapshot(moment)) == content
        await world.check_statistics(container)
        await container.delete("log", snapshots=SnapshotDeletion.INCLUDE)
        await pass_time(world, 400)
        for family in (DATA, MANIFESTS, GARBAGE, VERSIONS, ITEMS):
            assert await world.entries(container, family) == []
        await world.check_statistics(container)

    run_blobs(test)


def test_appends_at_once_are_all_there_once() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_append(container, "log")
        pieces = [bytes([number]) * 3_000 for number in range(40)]
        await asyncio.gather(*(append(container, "log", piece) for piece in pieces))
        whole = await get(container, "log")
        assert sorted(whole[at : at + 3_000] for at in range(0, len(whole), 3_000)) == pieces

    run_blobs(test)


def test_many_large_appends_move_to_manifests() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_append(container, "log")
        piece = DATA_BYTES[: MIB + 5]
        for _ in range(70):
            await append(container, "log", piece)
        snapshot = await container.snapshot("log")
        for _ in range(70):
            await append(container, "log", piece)
        assert len(await world.entries(container, MANIFESTS)) == 1
        size = 140 * len(piece)
        for start in (0, 65 * len(piece) - 3, 130 * len(piece) - 3, size - 3):
            expected = (piece * 2)[start % len(piece) :][:6]
            assert await get(container, "log", start=start, end=start + 6) == expected[: size - start]
        assert len(await get(container, "log", Snapshot(snapshot.snapshot))) == 70 * len(piece)

    run_blobs(test)


# --- two writers ------------------------------------------------------------------------------------------------------


def test_of_two_conditional_writers_one_wins() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        record = await put(container, "blob", b"first")
        conditions = Conditions(if_match=(record.etag,))
        outcomes = await asyncio.gather(
            *(put(container, "blob", os.urandom(9_000), conditions=conditions) for _ in range(8)),
            return_exceptions=True,
        )
        failures = [outcome.failure for outcome in outcomes if isinstance(outcome, BlobRefused)]
        assert failures == [BlobFailure.CONDITION_NOT_MET] * 7

    run_blobs(test)


def test_creations_at_once_that_want_no_blob_make_one() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        conditions = Conditions(if_none_match=("*",))
        outcomes = await asyncio.gather(
            *(put(container, "blob", b"x", conditions=conditions) for _ in range(8)), return_exceptions=True
        )
        assert sum(isinstance(outcome, AsterismError) for outcome in outcomes) == 7

    run_blobs(test)


# --- splits -----------------------------------------------------------------------------------------------------------


def test_splits_between_and_during_calls_lose_nothing() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        names = [f"{number:03}" for number in range(24)]
        uploads = {}
        for name in names:
            await put(container, name, name.encode() * 20_000)
            await put_block(container, name, b"b", name.encode() * 9_000)
            uploads[name] = container.begin_upload(name + "+")
            await uploads[name].write(DATA_BYTES)
        record = await container.find(names[20])
        pieces = container.read(record)
        read = await anext(pieces)
        reshaper, keyspace = world.world.reshaper, container.keyspace
        for _ in range(2):
            for partition in keyspace.record.map.ranges:
                await reshaper.finished(await reshaper.split(keyspace, partition.id))
        assert len(keyspace.record.map.ranges) == 4
        async for piece in pieces:
            read += piece
        assert read == names[20].encode() * 20_000
        for name in names:
            await container.put_blob(name + "+", uploads[name], NewBlob())
            await container.commit_blocks(name, latest(b"b"), NewBlob())
        for name in names:
            assert await get(container, name) == name.encode() * 9_000
            assert await get(container, name + "+") == DATA_BYTES
        await world.check_statistics(container)
        await pass_time(world, 400)
        await world.check_statistics(container)
        assert [record.name for record in await listed(container, ListQuery())] == sorted(
            [*names, *(name + "+" for name in names)]
        )

    run_blobs(test)


# --- retention --------------------------------------------------------------------------------------------------------


def test_a_deleted_blob_is_restored_within_its_retention_and_removed_after_it() -> None:
    async def test(world: BlobWorld) -> None:
        container, rules = await world.container(), AccountRules(blob_retention_days=2)
        await put(container, "blob", DATA_BYTES, rules=rules)
        assert await container.delete("blob", rules=rules)
        with refused(BlobFailure.NOT_FOUND):
            await container.find("blob")
        (deleted,) = await listed(container, ListQuery(deleted=True))
        assert deleted.is_deleted
        await pass_time(world, 24 * 3600)
        await container.undelete("blob")
        assert await get(container, "blob") == DATA_BYTES
        await put(container, "blob", b"over", rules=rules)
        await container.delete("blob", rules=rules)
        await pass_time(world, 49 * 3600)
        await pass_time(world, 400)
        with refused(BlobFailure.NOT_FOUND):
            await container.undelete("blob")
        for family in (DATA, GARBAGE, VERSIONS, ITEMS):
            assert await world.entries(container, family) == []
        await world.check_statistics(container)

    run_blobs(test)
