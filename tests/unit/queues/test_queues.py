"""Queues: their names and records, consumers that overtake each other, splits and restarts."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asterism.errors import ResourceNotFound
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.queues.head import QueueHeads
from asterism.models.queues.layout import point_of, visibility_key
from asterism.models.queues.messages import Created, Message, MessageFailure, MessageRefused
from asterism.models.queues.planner import QueueChange
from asterism.models.queues.queue import Queue
from asterism.models.queues.receipts import read_message_id, read_receipt
from asterism.models.queues.store import name_of
from tests.support.queues import (
    ACCOUNT,
    MINUTE,
    SECOND,
    START_TICKS,
    Moment,
    QueueWorld,
    failure_of,
    fill,
    open_queues,
    receipt_of,
    run_queues,
    slow_scans,
)


async def no_news() -> bool:
    return False


def as_another_process(world: QueueWorld, queue: Queue) -> Queue:
    """The queue as a process sees it that knows of no other's claims, and that there are others."""
    services = world.queues.services
    router = PartitionRouter(world.world.engine, no_news)
    return Queue(
        queue.account, queue.name, queue.keyspace, queue.record, replace(services, router=router, heads=QueueHeads())
    )


# --- names and records ------------------------------------------------------------------------------------------------


def test_a_queue_is_created_once_and_found_until_it_is_deleted() -> None:
    async def test(world: QueueWorld) -> None:
        queues = world.queues
        assert await queues.find_queue(ACCOUNT, "jobs") is None
        assert await queues.create_queue(ACCOUNT, "jobs", {"a": "1"}) is Created.NEW
        assert await queues.create_queue(ACCOUNT, "jobs", {"a": "1"}) is Created.SAME
        assert await queues.create_queue(ACCOUNT, "jobs", {"a": "2"}) is Created.DIFFERENT
        assert await queues.find_queue("another", "jobs") is None
        assert (await world.queue()).record.metadata == {"a": "1"}
        jobs = await world.queue()
        await jobs.remove()
        assert await queues.find_queue(ACCOUNT, "jobs") is None
        with pytest.raises(ResourceNotFound):
            await jobs.remove()
        assert await queues.create_queue(ACCOUNT, "jobs", {}) is Created.NEW

    run_queues(test)


def test_two_first_requests_of_an_account_create_one_queue() -> None:
    async def test(world: QueueWorld) -> None:
        outcomes = await asyncio.gather(*[world.queues.create_queue(ACCOUNT, "jobs", {}) for _ in range(5)])
        assert Counter(outcomes) == {Created.NEW: 1, Created.SAME: 4}
        await world.check_entries()

    run_queues(test)


def test_queues_are_listed_in_order_by_prefix_and_page_over_all_ranges() -> None:
    async def test(world: QueueWorld) -> None:
        names = sorted([f"q{number:03}" for number in range(60)] + ["a-1", "a-10", "a1", "zz"])
        for name in reversed(names):
            await world.queues.create_queue(ACCOUNT, name, {})
        (_, keyspace), *_ = world.queues.keyspaces()
        await world.world.reshaper.finished(await world.world.reshaper.split(keyspace, 0))
        assert len(keyspace.record.map.ranges) == 2
        listed = await world.queues.list_queues(ACCOUNT, prefix="", start="", limit=1000)
        assert [queue.name for queue in listed] == names
        listed = await world.queues.list_queues(ACCOUNT, prefix="a-", start="", limit=1000)
        assert [queue.name for queue in listed] == ["a-1", "a-10"]
        listed = await world.queues.list_queues(ACCOUNT, prefix="q", start="q017", limit=3)
        assert [queue.name for queue in listed] == ["q017", "q018", "q019"]
        assert await world.queues.list_queues("another", prefix="", start="", limit=10) == []

    run_queues(test)


def test_the_name_of_a_queue_is_read_from_its_point() -> None:
    assert [name_of(point_of(name)) for name in ("abc", "a-1", "z" * 63)] == ["abc", "a-1", "z" * 63]


def test_small_documents_of_an_account_are_kept() -> None:
    async def test(world: QueueWorld) -> None:
        assert await world.queues.get_account_document(ACCOUNT, "properties") is None
        replace_document = world.queues.replace_account_document
        assert await replace_document(ACCOUNT, "properties", b"1", before=None)
        assert not await replace_document(ACCOUNT, "properties", b"2", before=None)
        assert await world.queues.get_account_document(ACCOUNT, "properties") == b"1"
        assert await world.queues.get_account_document("another", "properties") is None

    run_queues(test)


def test_metadata_and_policies_are_changed_without_a_loss_of_messages() -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await fill(queue, 3)
        await asyncio.gather(
            queue.change_record(lambda record: replace(record, metadata={"a": "b"})),
            (await world.queue()).change_record(lambda record: replace(record, policies="policies")),
        )
        record = (await world.queue()).record
        assert (record.metadata, record.policies) == ({"a": "b"}, "policies")
        assert len(await queue.get(32, invisible_ticks=MINUTE)) == 3
        await world.check_entries()

    run_queues(test)


# --- calls on queues that change meanwhile ----------------------------------------------------------------------------


def test_a_call_on_a_queue_that_was_deleted_meanwhile_is_refused() -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await fill(queue, 2)
        (message,) = await queue.get(1, invisible_ticks=MINUTE)
        held = await world.queue()
        await (await world.queue()).remove()
        with pytest.raises(ResourceNotFound):
            await held.put(b"late", delay_ticks=0, live_ticks=None)
        with pytest.raises(ResourceNotFound):
            await held.get(1, invisible_ticks=MINUTE)
        with pytest.raises(ResourceNotFound):
            await held.delete(message.message_id, receipt_of(message.receipt))
        with pytest.raises(ResourceNotFound):
            await held.change_record(lambda record: record)
        await world.tidy()
        await world.check_entries()

    run_queues(test)


def test_a_queue_that_was_deleted_and_created_again_is_empty_at_once() -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await fill(queue, 250, live_ticks=MINUTE)
        (message,) = await queue.get(1, invisible_ticks=MINUTE)
        await (await world.queue()).remove()
        again = await world.new_queue()
        assert await again.count() == 0
        assert await again.get(32, invisible_ticks=MINUTE) == []
        found = await failure_of(again.delete(message.message_id, receipt_of(message.receipt)))
        assert found is MessageFailure.NOT_FOUND
        # One that found the queue before works on the new one.
        await queue.put(b"new", delay_ticks=0, live_ticks=None)
        await world.tidy()
        assert await again.count() == 1
        await world.check_entries()

    run_queues(test)


def test_a_queue_is_cleared_while_messages_are_put_and_taken() -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()

        async def keep_busy(number: int) -> None:
            own = await world.queue()
            for _ in range(20):
                await own.put(b"%d" % number, delay_ticks=0, live_ticks=MINUTE)
                await own.get(2, invisible_ticks=MINUTE)

        async def keep_clearing() -> None:
            for _ in range(10):
                await queue.clear()
                await asyncio.sleep(0)

        await asyncio.gather(*map(keep_busy, range(4)), keep_clearing())
        await queue.clear()
        assert await queue.count() == 0
        await world.tidy()
        await world.check_entries()

    run_queues(test)


# --- many consumers ---------------------------------------------------------------------------------------------------


async def consume(queue: Queue, taken: list[Message], count: int) -> None:
    while messages := await queue.get(count, invisible_ticks=MINUTE):
        taken += messages
        for message in messages:
            await queue.delete(message.message_id, receipt_of(message.receipt))


@pytest.mark.parametrize("processes", [1, 3])
def test_consumers_at_once_get_every_message_exactly_once(processes: int) -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await fill(queue, 300, world=world)
        views = [queue, *[as_another_process(world, queue) for _ in range(processes - 1)]]
        taken: list[Message] = []
        consumers = [consume(views[number % processes], taken, 1 + number % 4) for number in range(12)]
        await asyncio.gather(*consumers)
        await consume(queue, taken, 32)
        assert Counter(message.text for message in taken) == {b"%d" % number: 1 for number in range(300)}
        assert {message.state.dequeue_count for message in taken} == {1}
        assert await queue.count() == 0
        await world.check_entries()

    run_queues(test)


def test_consumers_of_one_process_are_not_overtaken(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await fill(queue, 100, world=world)
        overtaken: list[object] = []

        async def note(_: Queue, failed: object) -> None:
            overtaken.append(failed)

        monkeypatch.setattr(Queue, "_overtaken", note)
        taken: list[Message] = []
        await asyncio.gather(*[consume(await world.queue(), taken, 1) for _ in range(16)])
        assert len(taken) == 100
        assert not overtaken

    run_queues(test)


@pytest.mark.parametrize("earlier", [1, SECOND])
def test_a_message_that_another_process_placed_before_a_get_is_found_by_the_next(earlier: int) -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        consumer, producer = as_another_process(world, queue), as_another_process(world, queue)
        assert await consumer.get(1, invisible_ticks=MINUTE) == []
        # Its write was planned before the get, and applied afterwards.
        world.moment.ticks -= earlier
        put = await producer.put(b"late", delay_ticks=0, live_ticks=None)
        world.moment.ticks += earlier
        assert [message.message_id for message in await consumer.get(1, invisible_ticks=MINUTE)] == [put.message_id]

    run_queues(test)


def test_a_write_that_took_long_is_acknowledged_when_every_process_finds_its_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        consumer, producer = as_another_process(world, queue), as_another_process(world, queue)
        commit = Queue.commit

        async def commit_late(writer: Queue, change: QueueChange) -> None:
            world.moment.ticks += MINUTE
            assert await consumer.get(1, invisible_ticks=MINUTE) == []
            await commit(writer, change)

        async def sleep(seconds: float) -> None:
            world.moment.ticks += int(seconds * SECOND)

        with monkeypatch.context() as patch:
            patch.setattr(Queue, "commit", commit_late)
            patch.setattr("asterism.models.queues.queue.asyncio.sleep", sleep)
            put = await producer.put(b"late", delay_ticks=0, live_ticks=None)
        assert [message.message_id for message in await consumer.get(1, invisible_ticks=MINUTE)] == [put.message_id]

    run_queues(test)


@pytest.mark.parametrize("count", [1, 8])
def test_gets_that_search_at_once_take_different_messages(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await fill(queue, 200, world=world)
        slow_scans(world, monkeypatch)
        gets = [(await world.queue()).get(count, invisible_ticks=MINUTE) for _ in range(16)]
        taken = await asyncio.gather(*gets)
        assert [len(messages) for messages in taken] == [count] * 16
        assert len({message.message_id for messages in taken for message in messages}) == 16 * count

    run_queues(test)


def test_peeks_show_what_is_visible_while_messages_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await fill(queue, 4)
        first, second, *_ = await queue.get(4, invisible_ticks=0)
        texts = Queue._texts

        async def read_late(reader: Queue, found: Any) -> Any:
            await queue.delete(first.message_id, receipt_of(first.receipt))
            monkeypatch.setattr(Queue, "_texts", texts)
            return await texts(reader, found)

        world.moment.ticks += 10
        monkeypatch.setattr(Queue, "_texts", read_late)
        assert [message.message_id for message in await queue.peek(1)] == [second.message_id]

    run_queues(test)


def test_a_head_that_is_forgotten_during_a_put_hides_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await world.queues.create_queue(ACCOUNT, "other", {})
        monkeypatch.setattr(QueueHeads, "_HEADS_MAX", 1)
        commit = Queue.commit

        async def commit_late(writer: Queue, change: QueueChange) -> None:
            world.moment.ticks += 1
            # The head of another queue takes the place, and this queue's new one learns that nothing is visible.
            await (await world.queue("other")).peek(1)
            assert await (await world.queue()).peek(1) == []
            await commit(writer, change)

        with monkeypatch.context() as patch:
            patch.setattr(Queue, "commit", commit_late)
            put = await queue.put(b"text", delay_ticks=0, live_ticks=None)
        assert [message.message_id for message in await (await world.queue()).peek(1)] == [put.message_id]

    run_queues(test)


def test_a_get_whose_caller_gave_up_releases_its_messages() -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await fill(queue, 5)
        calls = [asyncio.ensure_future(queue.get(1, invisible_ticks=SECOND)) for _ in range(5)]
        await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        world.moment.ticks += 2 * SECOND
        assert len(await queue.get(32, invisible_ticks=SECOND)) == 5

    run_queues(test)


def test_of_two_updates_with_one_receipt_the_second_is_refused() -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        message = await queue.put(b"text", delay_ticks=0, live_ticks=None)
        receipt = receipt_of(message.receipt)
        updates = [queue.update(message.message_id, receipt, invisible_ticks=SECOND, text=None) for _ in range(4)]
        outcomes = await asyncio.gather(*updates, return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, MessageRefused)]
        assert [refusal.failure for refusal in refused] == [MessageFailure.RECEIPT_OUTDATED] * 3

    run_queues(test)


# --- splits and restarts ----------------------------------------------------------------------------------------------


def test_receipts_messages_and_counts_survive_splits_under_load() -> None:
    async def test(world: QueueWorld) -> None:
        queues = [await world.new_queue(f"q{number}") for number in range(8)]
        for queue in queues:
            await fill(queue, 10, live_ticks=100 * MINUTE, world=world)
        held = {queue.name: await queue.get(3, invisible_ticks=MINUTE) for queue in queues}
        done = asyncio.Event()
        put: Counter[str] = Counter()

        async def keep_putting(queue: Queue) -> None:
            while not done.is_set():
                await queue.put(b"more", delay_ticks=0, live_ticks=None)
                put[queue.name] += 1
                await asyncio.sleep(0)

        writers = [asyncio.create_task(keep_putting(queue)) for queue in queues]
        keyspace, reshaper = queues[0].keyspace, world.world.reshaper
        for _ in range(2):
            for partition in keyspace.record.map.ranges:
                await reshaper.finished(await reshaper.split(keyspace, partition.id))
        assert len(keyspace.record.map.ranges) == 4
        left, right, *_ = keyspace.record.map.ranges
        await reshaper.finished(await reshaper.merge(keyspace, left.id, right.id))
        done.set()
        await asyncio.gather(*writers)
        for queue in queues:
            first, second, third = held[queue.name]
            await queue.delete(first.message_id, receipt_of(first.receipt))
            renewed = await queue.update(
                second.message_id, receipt_of(second.receipt), invisible_ticks=SECOND, text=b"changed"
            )
            await queue.delete(second.message_id, renewed)
            assert await queue.count() == 8 + put[queue.name]
            assert third.text == b"2"
        await world.check_entries()

    run_queues(test)


def test_messages_and_receipts_survive_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        moment = Moment()
        async with open_queues(tmp_path, moment=moment, seed="first") as world:
            queue = await world.new_queue()
            await queue.put(b"taken", delay_ticks=0, live_ticks=10 * MINUTE)
            await queue.put(b"later", delay_ticks=5 * SECOND, live_ticks=None)
            (message,) = await queue.get(1, invisible_ticks=MINUTE)
        async with open_queues(tmp_path, moment=moment, seed="second") as world:
            queue = await world.queue()
            assert await queue.get(32, invisible_ticks=MINUTE) == []
            assert await queue.count() == 2
            receipt = await queue.update(
                message.message_id, receipt_of(message.receipt), invisible_ticks=0, text=b"again"
            )
            moment.ticks += 5 * SECOND
            seen = [(peeked.text, peeked.state.dequeue_count) for peeked in await queue.peek(32)]
            assert seen == [(b"again", 1), (b"later", 0)]
            await queue.delete(message.message_id, receipt)
            await world.check_entries()

    asyncio.run(test())


# --- scans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("invisible", [0, 400])
def test_a_get_reads_one_entry_however_many_messages_were_taken_or_are_invisible(
    invisible: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await fill(queue, 400, world=world)
        taken = [message for _ in range(20) for message in await queue.get(20, invisible_ticks=MINUTE)]
        for message in taken[invisible:]:
            await queue.delete(message.message_id, receipt_of(message.receipt))
        await queue.put(b"last", delay_ticks=0, live_ticks=None)
        await fill(queue, 10, world=world)
        scan, read = world.world.router.scan, 0
        starts: list[bytes] = []

        async def counted(*arguments: object, **options: object) -> object:
            nonlocal read
            page = await scan(*arguments, **options)  # type: ignore[arg-type]  # passed through
            read += len(page.entries) if page is not None else 0
            starts.append(arguments[3].start)  # type: ignore[attr-defined]  # a span
            return page

        monkeypatch.setattr(world.world.router, "scan", counted)
        (message,) = await queue.get(1, invisible_ticks=MINUTE)
        assert message.text == b"last"
        assert read == 1
        # The scan begins where the last one did, and so passes at most the entries that this took.
        first = visibility_key(queue.point, queue.record.generation, visible_at=START_TICKS + 381, message_id=b"")
        assert starts[0] > first

    run_queues(test)


# --- receipts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "x", "AAAA", "!" * 24, "/" * 22 + "==", "AAAAAAAAAAD//////////w=="])
def test_a_text_that_names_no_state_of_a_message_is_no_receipt(text: str) -> None:
    assert read_receipt(text) is None


@pytest.mark.parametrize("text", ["", "x", "0" * 32, "00000000-0000-0000-0000-00000000000g"])
def test_a_text_that_no_message_can_have_is_no_id(text: str) -> None:
    assert read_message_id(text) is None
