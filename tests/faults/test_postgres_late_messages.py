"""Orders to a PostgreSQL node, and the questions about their outcome, arrive late, in any order, or their answers never
arrive: each order is still carried out once."""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from asterism.storage.contract import Add, Batch, Fence, Span, decode_counters
from asterism.storage.postgres import PostgresEngine
from asterism.storage.postgres.connections import Link, Pool
from asterism.storage.postgres.database_errors import ConnectionLost
from asterism.values.identifiers import Epoch, PartitionNumber
from tests.support.postgres import shared_server

ONE = PartitionNumber(1)
COUNTED = Batch(adds=[Add(b"n", (1,))], stamped_puts=[(b"log", b"", b"")])
# The functions that change something, or prevent a late change.
ORDERS = ("asterism.apply_", "asterism.set_fence_", "asterism.resolve_")

really_ask = Link.ask


class Fault(enum.Enum):
    NONE = enum.auto()
    ANSWER_LOST = enum.auto()
    HELD = enum.auto()


class Network:
    """The faults of the next messages, and the messages that are held back."""

    def __init__(self) -> None:
        self.plan: deque[tuple[Fault, int]] = deque()
        self.held: list[tuple[Any, ...]] = []

    async def ask(self, link: Link, seconds: float, statement: str, *arguments: Any) -> Any:
        if not any(order in statement for order in ORDERS):
            return await really_ask(link, seconds, statement, *arguments)
        fault, late_count = self.plan.popleft() if self.plan else (Fault.NONE, 0)
        await self.deliver(link, late_count)
        if fault is Fault.HELD:
            self.held.append((statement, *arguments))
            raise ConnectionLost("it does not arrive in time")
        answer = await really_ask(link, seconds, statement, *arguments)
        if fault is Fault.ANSWER_LOST:
            raise ConnectionLost("the answer is lost")
        return answer

    async def deliver(self, link: Link, count: int) -> None:
        """Deliver held messages, the last one first: the network is not fair."""
        for _ in range(min(count, len(self.held))):
            await really_ask(link, 60.0, *self.held.pop())


class Partition:
    """A partition behind the network, and its state as its user knows it."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.runner = asyncio.Runner()
        self.engine = self.runner.run(self._open())
        self.batches = 0
        self.epoch = Epoch(1)

    async def _open(self) -> PostgresEngine:
        await shared_server().empty_database("late")
        engine = await PostgresEngine.open(shared_server().dsn("late"))
        await engine.create_partition(ONE, Fence(Epoch(1)))
        return engine

    async def write(self) -> None:
        self.batches += 1
        assert await self.engine.apply(ONE, self.epoch, COUNTED) == self.batches

    async def raise_fence(self) -> None:
        """Raise the epoch; this fails if the first attempt was carried out and then taken for another's."""
        raised = Epoch(self.epoch + 1)
        await self.engine.set_fence(ONE, Fence(raised), expected=Fence(self.epoch))
        self.epoch = raised

    async def check(self) -> None:
        self.network.plan.clear()
        # All held messages arrive with the next message.
        self.network.plan.append((Fault.NONE, len(self.network.held)))
        await self.write()
        lsn, (counter,) = await self.engine.read(ONE, self.epoch, [b"n"])
        logged = (await self.engine.scan(ONE, self.epoch, Span(b"log", b"loh"), limit=100_000)).entries
        assert (lsn, decode_counters(counter), len(logged)) == (self.batches, (self.batches,), self.batches)
        assert await self.engine.read_fence(ONE) == (Fence(self.epoch), lsn)

    def close(self) -> None:
        self.runner.run(self.engine.close())
        self.runner.close()


@pytest.fixture(scope="module")
def partition() -> Iterator[Partition]:
    network = Network()
    with pytest.MonkeyPatch.context() as patch:

        async def ask(link: Link, seconds: float, statement: str, *arguments: Any) -> Any:
            return await network.ask(link, seconds, statement, *arguments)

        patch.setattr(Link, "ask", ask)
        # The connections are intact: opening others would take most of the time.
        patch.setattr(Pool, "suspect", lambda _: None)
        opened = Partition(network)
        yield opened
        opened.close()


# Mostly faults, and held messages mostly stay held for a while.
faults = st.sampled_from([*Fault, Fault.HELD, Fault.ANSWER_LOST])
late_counts = st.sampled_from([0, 0, 1])


# P5 of asterism/storage/postgres/DESIGN.md.
@settings(max_examples=200)
# A question about the first order arrives after the second was carried out and its answer lost.
@example(
    plan=[(Fault.HELD, 0), (Fault.HELD, 0), (Fault.NONE, 0), (Fault.ANSWER_LOST, 0), (Fault.NONE, 1)], calls=["write"]
)
@given(
    plan=st.lists(st.tuples(faults, late_counts), max_size=12),
    calls=st.lists(st.sampled_from(["write", "raise_fence"]), min_size=1, max_size=4),
)
def test_every_order_is_carried_out_once(partition: Partition, plan: list[tuple[Fault, int]], calls: list[str]) -> None:
    async def run() -> None:
        partition.network.plan = deque(plan)
        for call in calls:
            await (partition.write() if call == "write" else partition.raise_fence())
        await partition.check()

    partition.runner.run(run())
