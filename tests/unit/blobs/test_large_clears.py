"""Clears and smaller sizes of page blobs that are too large for one batch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import chain, repeat

import pytest

from asterism.models.blobs import pages, pages_planning
from asterism.models.blobs.calls import NewBlob, Snapshot
from asterism.models.blobs.changes import ChangeOfLease, SetMetadata
from asterism.models.blobs.conditions import Conditions
from asterism.models.blobs.container import Container
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.layout import PAGE_MAPS, PAGES
from asterism.models.blobs.leases import AcquireLease
from asterism.models.blobs.page_maps import CHUNK_BYTES, PAGE_BYTES
from asterism.models.blobs.pages import SequenceCondition
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.space import BlobSpace
from tests.support.blobs import BlobWorld, get, run_blobs

CHUNKS = 8
SIZE = CHUNKS * CHUNK_BYTES
Act = Callable[[], Awaitable[object]]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_planning, "CLEARED_MAX", 2)


async def nothing() -> None:
    pass


def before_second_batch(monkeypatch: pytest.MonkeyPatch, act: Act) -> list[int]:
    """Do something before the second batch is planned; return a list that gets the number of maps of each batch."""
    acts = chain([nothing, act], repeat(nothing))
    maps: list[int] = []

    async def plan_clear(space: BlobSpace, change: BlobChange, record: BlobRecord, start: int, end: int) -> int:
        await next(acts)()
        reached = await pages_planning.plan_clear(space, change, record, start, end)
        maps.append(len({key for key in change.batch.deletes if key.startswith(PAGES)}))
        return reached

    monkeypatch.setattr(pages, "plan_clear", plan_clear)
    return maps


async def full_blob(container: Container) -> BlobRecord:
    await container.put_blob("p", None, NewBlob(BlobKind.PAGE, SIZE, sequence_number=5))
    return await container.pages.put_pages("p", 0, b"1" * SIZE)


async def refusal(call: Awaitable[object]) -> BlobFailure:
    with pytest.raises(BlobRefused) as caught:
        await call
    return caught.value.failure


def test_a_large_clear_is_several_batches_under_the_conditions_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        etag = (await full_blob(container)).etag
        maps = before_second_batch(monkeypatch, nothing)
        conditions, sequence = Conditions(if_match=(etag,)), SequenceCondition(equal=5)
        record = await container.pages.clear_pages("p", PAGE_BYTES, SIZE - PAGE_BYTES, conditions, sequence=sequence)
        assert max(maps) == 2
        assert len(maps) == CHUNKS // 2
        assert record.etag == (await container.find("p")).etag
        page = b"1" * PAGE_BYTES
        assert await get(container, "p") == page + bytes(SIZE - 2 * PAGE_BYTES) + page
        assert len(await world.entries(container, PAGES)) == 2
        await world.check_statistics(container)

    run_blobs(test)


def test_a_page_that_is_written_behind_a_clear_on_its_way_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await full_blob(container)
        before_second_batch(monkeypatch, lambda: container.pages.put_pages("p", 0, b"2" * PAGE_BYTES))
        await container.pages.clear_pages("p", 0, SIZE)
        assert await get(container, "p") == b"2" * PAGE_BYTES + bytes(SIZE - PAGE_BYTES)

    run_blobs(test)


def test_a_clear_does_not_go_on_in_a_new_blob(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await full_blob(container)
        before_second_batch(monkeypatch, lambda: full_blob(container))
        assert await refusal(container.pages.clear_pages("p", 0, SIZE)) is BlobFailure.BLOB_OVERWRITTEN
        assert await get(container, "p") == b"1" * SIZE

    run_blobs(test)


def test_a_clear_stops_at_a_lease_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await full_blob(container)
        lease = ChangeOfLease(AcquireLease("00000000-0000-0000-0000-000000000001", -1))
        before_second_batch(monkeypatch, lambda: container.change("p", lease))
        assert await refusal(container.pages.clear_pages("p", 0, SIZE)) is BlobFailure.LEASE_ID_MISSING

    run_blobs(test)


@pytest.mark.parametrize("size", [0, PAGE_BYTES, CHUNK_BYTES, 3 * CHUNK_BYTES + PAGE_BYTES])
def test_a_smaller_size_is_one_change_and_its_pages_go_in_batches(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await full_blob(container)
        maps = before_second_batch(monkeypatch, nothing)
        record = await container.pages.resize("p", size)
        assert max(maps) == 2
        assert record.etag == (await container.find("p")).etag
        kept = -(-size // CHUNK_BYTES)
        assert len(await world.entries(container, PAGES)) == kept
        assert len(await world.entries(container, PAGE_MAPS)) == kept
        await container.pages.resize("p", SIZE)
        assert await get(container, "p") == b"1" * size + bytes(SIZE - size)
        await world.check_statistics(container)

    run_blobs(test)


def test_pages_that_a_cut_off_call_left_do_not_come_back_with_a_larger_size(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await full_blob(container)

        async def lose_power() -> None:
            raise SystemError

        before_second_batch(monkeypatch, lose_power)
        with pytest.raises(SystemError):
            await container.pages.resize("p", PAGE_BYTES)
        assert await get(container, "p") == b"1" * PAGE_BYTES
        assert len(await world.entries(container, PAGES)) == CHUNKS
        taken = Snapshot((await container.snapshot("p")).snapshot)
        record = await container.pages.resize("p", SIZE - PAGE_BYTES)
        assert record.size == SIZE - PAGE_BYTES
        await container.pages.resize("p", SIZE)
        assert await get(container, "p") == b"1" * PAGE_BYTES + bytes(SIZE - PAGE_BYTES)
        assert await get(container, "p", taken) == b"1" * PAGE_BYTES
        _, page = await container.pages.ranges("p")
        assert [tuple(span) for span in page.spans] == [(0, PAGE_BYTES, False)]
        await world.check_statistics(container)

    run_blobs(test)


def test_the_removal_of_hidden_pages_leaves_a_new_blob_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await full_blob(container)

        async def replace_and_shrink() -> None:
            monkeypatch.setattr(pages, "plan_clear", pages_planning.plan_clear)
            await full_blob(container)

        before_second_batch(monkeypatch, replace_and_shrink)
        await container.pages.resize("p", 0)
        assert await get(container, "p") == b"1" * SIZE
        await world.check_statistics(container)

    run_blobs(test)


def test_a_change_beside_the_removal_of_hidden_pages_keeps_both(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await full_blob(container)
        before_second_batch(monkeypatch, lambda: container.change("p", SetMetadata({"a": "1"})))
        await container.pages.resize("p", 0)
        assert (await container.find("p")).metadata == {"a": "1"}
        assert await world.entries(container, PAGES) == []
        await world.check_statistics(container)

    run_blobs(test)
