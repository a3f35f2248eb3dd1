"""Receivers of a partition: epochs, within a process and across processes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from asterism.models.event_logs.hub import Hub
from asterism.models.event_logs.layout import RECEIVERS
from asterism.models.event_logs.receivers import CLAIM_MS, Receiver, ReceiverBook, ReceiverRefused
from asterism.partitioning.partition_key import numbered_point
from tests.support.event_logs import NAMESPACE, HubWorld, open_hubs, open_two_processes
from tests.support.virtual_time import in_virtual_time


@dataclass
class Joined:
    """A receiver of a test, and whether it was replaced."""

    result: Receiver | ReceiverRefused | None = None
    replaced: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_refused(self) -> bool:
        return isinstance(self.result, ReceiverRefused)


async def join(
    book: ReceiverBook, hub: Hub, epoch: int | None, *, group: str = "$Default", partition: int = 0
) -> Joined:
    joined = Joined()
    joined.result = await book.join(hub, partition, group, epoch, joined.replaced.set)
    return joined


def leave(book: ReceiverBook, joined: Joined) -> None:
    assert isinstance(joined.result, Receiver)
    book.leave(joined.result)


@in_virtual_time
async def test_a_receiver_with_an_epoch_replaces_those_below() -> None:
    async with open_hubs() as world:
        hub, book = await world.hub(), world.store.receivers
        plain = await join(book, hub, None)
        first = await join(book, hub, 1, group="$DEFAULT")
        assert plain.replaced.is_set()
        assert (await join(book, hub, None)).result is ReceiverRefused.EPOCH_TOO_LOW
        assert (await join(book, hub, 0)).result is ReceiverRefused.EPOCH_TOO_LOW
        assert not first.replaced.is_set()
        equal = await join(book, hub, 1)
        assert first.replaced.is_set()
        leave(book, equal)
        assert not (await join(book, hub, 0)).is_refused


@in_virtual_time
async def test_groups_and_partitions_have_receivers_of_their_own() -> None:
    async with open_hubs() as world:
        hub, book = await world.hub(), world.store.receivers
        first = await join(book, hub, 5)
        assert not (await join(book, hub, 1, group="other")).is_refused
        assert not (await join(book, hub, 1, partition=1)).is_refused
        assert not first.replaced.is_set()


@in_virtual_time
async def test_a_group_has_five_receivers_without_an_epoch() -> None:
    async with open_hubs() as world:
        hub, book = await world.hub(), world.store.receivers
        joined = [await join(book, hub, None) for _ in range(5)]
        assert (await join(book, hub, None)).result is ReceiverRefused.TOO_MANY
        leave(book, joined[0])
        assert not (await join(book, hub, None)).is_refused
        assert book.receivers_of(hub, 0, "$default") == 5


async def claims(world: HubWorld, hub: Hub) -> int:
    number = hub.keyspace.record.map.find(numbered_point(0)).partition
    return len(await world.world.everything(number, RECEIVERS))


@in_virtual_time
async def test_a_process_that_is_alone_stores_nothing_for_receivers() -> None:
    async with open_hubs() as world:
        hub = await world.hub()
        await join(world.store.receivers, hub, 5)
        assert await claims(world, hub) == 0


@in_virtual_time
async def test_epochs_exclude_across_processes() -> None:
    """E8."""
    async with open_two_processes() as (first, second):
        hub = await first.hub()
        other = await second.store.find_newest(NAMESPACE, "h")
        assert other is not None
        here, there = first.store.receivers, second.store.receivers
        plain = await join(here, hub, None)
        low = await join(there, other, 1)
        async with asyncio.timeout(2):
            await plain.replaced.wait()
        assert (await join(here, hub, None)).is_refused
        assert (await join(here, hub, 0)).is_refused
        high = await join(here, hub, 2)
        assert not high.is_refused
        async with asyncio.timeout(2):
            await low.replaced.wait()
        await asyncio.sleep(10 * CLAIM_MS / 1000)
        assert not high.replaced.is_set()
        assert (await join(there, other, 1)).is_refused
        leave(here, high)
        await asyncio.sleep(1)
        assert await claims(first, hub) == 0
        assert not (await join(there, other, 0)).is_refused


@in_virtual_time
async def test_the_claim_of_a_process_that_crashed_lapses() -> None:
    async with open_two_processes() as (first, second):
        hub = await first.hub()
        other = await second.store.find_newest(NAMESPACE, "h")
        assert other is not None
        await join(first.store.receivers, hub, 9)
        await first.store.receivers.stop()
        assert (await join(second.store.receivers, other, 1)).is_refused
        await asyncio.sleep(CLAIM_MS / 1000 + 1)
        assert not (await join(second.store.receivers, other, 1)).is_refused


@in_virtual_time
async def test_of_receivers_that_join_at_once_the_highest_epoch_stays() -> None:
    async with open_two_processes() as (first, second):
        hub = await first.hub()
        other = await second.store.find_newest(NAMESPACE, "h")
        assert other is not None
        joined = await asyncio.gather(
            *(
                join(world.store.receivers, handle, epoch)
                for epoch in range(4)
                for world, handle in ((first, hub), (second, other))
            )
        )
        await asyncio.sleep(5)
        left = [receiver for receiver in joined if not receiver.is_refused and not receiver.replaced.is_set()]
        assert len(left) == 1
        assert isinstance(left[0].result, Receiver)
        assert left[0].result.epoch == 3
