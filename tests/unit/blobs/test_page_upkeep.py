"""Upkeep of page blobs, of copies, and of tiers: what it removes, and what it leaves."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.models.blobs import copied_data, copies
from asterism.models.blobs.calls import CURRENT, ListQuery, NewBlob, Snapshot, Which
from asterism.models.blobs.changes import SetTier
from asterism.models.blobs.conditions import NO_CONDITIONS
from asterism.models.blobs.container import Container
from asterism.models.blobs.copy_job import CopySource
from asterism.models.blobs.layout import DATA, GARBAGE, GARBAGE_SECONDS, PAGE_MAPS, PAGES, UPLOAD_SECONDS_MAX, UPLOADS
from asterism.models.blobs.page_maps import CHUNK_BYTES, PAGE_BYTES
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.rules import NO_RULES
from asterism.models.blobs.tiers import REHYDRATION_SECONDS
from asterism.models.blobs.upkeep import BlobUpkeep
from tests.support.blobs import BlobWorld, get, put, run_blobs

WEAK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CHUNKS = 3


async def sweep_later(world: BlobWorld, seconds: float = GARBAGE_SECONDS + 1) -> None:
    world.skew.seconds += seconds
    await BlobUpkeep(world.blobs).sweep()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, CHUNKS * 64 - 1)),
        st.tuples(st.just("clear"), st.integers(0, CHUNKS * 64 - 1)),
        st.tuples(st.just("snapshot"), st.just(0)),
        st.tuples(st.just("drop"), st.integers(0, 3)),
        st.tuples(st.just("replace"), st.just(0)),
        st.tuples(st.just("sweep"), st.just(0)),
    ),
    max_size=16,
)


@WEAK
@given(STEPS)
def test_upkeep_changes_no_snapshot_and_leaves_nothing_else(steps: list[tuple[str, int]]) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        size = CHUNKS * CHUNK_BYTES
        new = NewBlob(BlobKind.PAGE, size)
        await container.put_blob("p", None, new)
        kept: dict[Which, bytes] = {}
        for number, (action, place) in enumerate(steps):
            if action == "write":
                await container.pages.put_pages("p", place * PAGE_BYTES, bytes([number + 1]) * PAGE_BYTES)
            elif action == "clear":
                await container.pages.clear_pages("p", place * PAGE_BYTES, size)
            elif action == "snapshot":
                kept[Snapshot((await container.snapshot("p")).snapshot)] = await get(container, "p")
            elif action == "drop" and kept:
                which = list(kept)[place % len(kept)]
                await container.delete("p", which)
                del kept[which]
            elif action == "replace":
                await container.put_blob("p", None, new)
            elif action == "sweep":
                await sweep_later(world)
        kept[CURRENT] = await get(container, "p")
        await sweep_later(world)
        for which, content in kept.items():
            assert await get(container, "p", which) == content
        assert await world.entries(container, GARBAGE) == []
        await world.check_statistics(container)
        for which in [which for which in kept if which != CURRENT]:
            await container.delete("p", which)
        await container.delete("p")
        await sweep_later(world)
        assert await world.entries(container, PAGES) == []
        assert await world.entries(container, PAGE_MAPS) == []
        await world.check_statistics(container)

    run_blobs(test)


@pytest.mark.parametrize("kind", [BlobKind.BLOCK, BlobKind.PAGE])
def test_the_data_of_an_aborted_copy_are_removed(monkeypatch: pytest.MonkeyPatch, kind: BlobKind) -> None:
    monkeypatch.setattr(copies, "COPY_INLINE_BYTES", 1000)
    monkeypatch.setattr(copied_data, "BATCH_BYTES", 64 * 1024)

    async def test(world: BlobWorld) -> None:
        container, other = await world.container("c"), await world.container("d")
        data = bytes(range(256)) * 4096
        if kind is BlobKind.PAGE:
            await container.put_blob("source", None, NewBlob(kind, len(data)))
            await container.pages.put_pages("source", 0, data)
        else:
            await put(container, "source", data * 4)
        source = CopySource(container, CURRENT, await container.find("source"), "http://source")
        pending = await start(world, other, source)
        while not await world.entries(other, PAGES if kind is BlobKind.PAGE else UPLOADS):
            await asyncio.sleep(0)
        assert pending.copy_state is not None
        await world.blobs.copies.abort(other, "copy", pending.copy_state.copy_id)
        await sweep_later(world, UPLOAD_SECONDS_MAX + 1)
        for family in (DATA, UPLOADS, PAGES, PAGE_MAPS, GARBAGE):
            assert await world.entries(other, family) == []
        await world.check_statistics(other)

    run_blobs(test)


async def start(world: BlobWorld, target: Container, source: CopySource) -> BlobRecord:
    return await world.blobs.copies.copy(target, "copy", source, NewBlob(), NO_CONDITIONS, NO_RULES)


def test_a_block_blob_that_was_copied_onto_itself_keeps_its_data() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        data = bytes(range(256)) * 4096
        await put(container, "copy", data)
        source = CopySource(container, CURRENT, await container.find("copy"), "http://source")
        await start(world, container, source)
        await sweep_later(world)
        assert await get(container, "copy") == data
        assert await world.entries(container, GARBAGE) == []
        await container.delete("copy")
        await sweep_later(world)
        assert await world.entries(container, DATA) == []
        await world.check_statistics(container)

    run_blobs(test)


def test_a_blob_is_out_of_the_archive_for_reads_and_listings_at_once() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "b", b"data")
        await container.change("b", SetTier("Archive"))
        pending = await container.change("b", SetTier("Hot"))
        assert (pending.tier, pending.archive_status) == ("Archive", "rehydrate-pending-to-hot")
        assert (await container.find("b")).tier == "Archive"
        world.skew.seconds += REHYDRATION_SECONDS + 1
        listed = (await container.list(ListQuery())).entries[0]
        assert isinstance(listed, BlobRecord)
        for record in (await container.find("b"), listed):
            assert (record.tier, record.archive_status) == ("Hot", None)

    run_blobs(test)
