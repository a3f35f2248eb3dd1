"""Queues in this process, on a real engine held to its contract, in a time that the test sets."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from asterism.clock import SYSTEM_CLOCK
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.reshaping.job import Step
from asterism.keyspaces.reshaping.load_watch import LoadWatch, Patience
from asterism.keyspaces.routing.families import COUNTERS, ITEMS, LOGICAL_SIZES, TOTALS_KEY
from asterism.limits import DEFAULT_LIMITS, Limits
from asterism.models.queues.layout import COUNTS, EXPIRY, GENERATION_BYTES, REMOVALS, TEXTS, VISIBILITY, unpack_message
from asterism.models.queues.messages import MessageFailure, MessageRefused
from asterism.models.queues.planner import stored_bytes
from asterism.models.queues.queue import Queue, QueueServices
from asterism.models.queues.receipts import Receipt, read_receipt
from asterism.models.queues.store import QueueStore
from asterism.models.queues.upkeep import QueueUpkeep
from asterism.storage.contract import Span, decode_counters
from tests.support.world import World, open_world

ACCOUNT = "acct"
SECOND = 10_000_000
MINUTE = 60 * SECOND
START_TICKS = 1_700_000_000 * SECOND


@dataclass
class Moment:
    """The time of queues in a test: it stands still until the test moves it."""

    ticks: int = START_TICKS

    def __call__(self) -> int:
        return self.ticks


@dataclass(frozen=True)
class QueueWorld:
    world: World
    queues: QueueStore
    upkeep: QueueUpkeep
    moment: Moment
    load: LoadWatch
    numbers: count[int] = field(default_factory=count)

    async def new_queue(self, name: str = "jobs") -> Queue:
        await self.queues.create_queue(ACCOUNT, name, {})
        return await self.queue(name)

    async def queue(self, name: str = "jobs") -> Queue:
        found = await self.queues.find_queue(ACCOUNT, name)
        assert found is not None
        return found

    async def tidy(self) -> None:
        await self.upkeep.remove_expired()
        await self.upkeep.remove_left()

    async def check_entries(self) -> None:
        """Check that every message has its entries and is counted, and that nothing else is stored; after `tidy`."""
        for _, keyspace in self.queues.keyspaces():
            for partition in keyspace.record.map.ranges:
                await self._check_partition(partition.partition)

    async def _check_partition(self, partition: int) -> None:
        async def entries(family: bytes) -> dict[bytes, bytes]:
            return dict(await self.world.everything(partition, family))  # type: ignore[arg-type]  # a plain number

        messages = [unpack_message(key, value) for key, value in (await entries(VISIBILITY)).items()]
        prefixes = [message.key[1:-24] for message in messages]
        assert {key[1:] for key in await entries(TEXTS)} == {
            prefix + message.message_id for prefix, message in zip(prefixes, messages, strict=True)
        }
        assert {key[1:]: decode_counters(value) for key, value in (await entries(COUNTS)).items()} == {
            prefix: (number,) for prefix, number in Counter(prefixes).items()
        }
        expiring = {
            (message.state.expires_at, message.message_id, prefix + message.visible_at.to_bytes(8, "big"))
            for prefix, message in zip(prefixes, messages, strict=True)
            if message.state.expires_at < 2**63 - 1
        }
        due = {(int.from_bytes(key[1:9], "big"), key[9:], value) for key, value in (await entries(EXPIRY)).items()}
        assert due == expiring
        assert not await entries(REMOVALS)
        sizes: dict[bytes, list[int]] = {key[1:]: [len(record), 0] for key, record in (await entries(ITEMS)).items()}
        for prefix, message in zip(prefixes, messages, strict=True):
            size = sizes[prefix[:-GENERATION_BYTES]]
            size[0] += stored_bytes(message.state)
            size[1] += 1
        stored = await entries(LOGICAL_SIZES)
        assert {key[1:]: list(COUNTERS.unpack(value)) for key, value in stored.items()} == sizes
        (totals,) = await self.world.engine.read_unfenced(partition, [TOTALS_KEY])  # type: ignore[arg-type]  # as above
        summed = tuple(map(sum, zip(*sizes.values(), strict=True))) if sizes else (0, 0)
        assert (COUNTERS.unpack(totals) if totals is not None else (0, 0)) == summed


@asynccontextmanager
async def open_queues(
    directory: Path | None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    on_step: Callable[[Step], None] | None = None,
    moment: Moment | None = None,
    seed: str = "",
) -> AsyncIterator[QueueWorld]:
    """`seed` sets generations and message ids, which are the same in each run."""
    moment = moment or Moment()
    numbers = count(1)

    def bytes_of(length: int) -> bytes:
        return hashlib.blake2b(f"{seed}/{next(numbers)}".encode(), digest_size=length).digest()

    async with open_world(directory, limits=limits, on_step=on_step) as world:
        patience = Patience(period_seconds=1000.0)
        load = LoadWatch(world.catalog, world.router, world.reshaper, limits, SYSTEM_CLOCK, patience=patience)
        services = QueueServices(world.router, world.reshaper, load, limits, SYSTEM_CLOCK, moment, bytes_of)
        queues = QueueStore(world.catalog, world.admission, SmallDocuments(world.engine), services)
        await load.start()
        yield QueueWorld(world, queues, QueueUpkeep(queues), moment, load)
        await load.stop()


def receipt_of(text: str) -> Receipt:
    receipt = read_receipt(text)
    assert receipt is not None
    return receipt


def run_queues(test: Callable[[QueueWorld], Awaitable[None]]) -> None:
    async def go() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with open_queues(Path(directory)) as world, asyncio.timeout(180):
                await test(world)

    asyncio.run(go())


async def fill(queue: Queue, count: int, *, live_ticks: int | None = None, world: QueueWorld | None = None) -> None:
    for number in range(count):
        if world is not None:
            world.moment.ticks += 1
        await queue.put(b"%d" % number, delay_ticks=0, live_ticks=live_ticks)


async def failure_of(call: Awaitable[object]) -> MessageFailure:
    with pytest.raises(MessageRefused) as refused:
        await call
    return refused.value.failure


def slow_scans(world: QueueWorld, monkeypatch: pytest.MonkeyPatch) -> list[Span]:
    """Let other calls run while a scan is under way, as engines behind a network do; return what will be scanned."""
    scan, spans = world.world.router.scan, list[Span]()

    async def scan_slowly(keyspace: Any, record: Any, partition: Any, span: Span, **options: Any) -> Any:
        spans.append(span)
        page = await scan(keyspace, record, partition, span, **options)
        await asyncio.sleep(0.001)
        return page

    monkeypatch.setattr(world.world.router, "scan", scan_slowly)
    return spans
