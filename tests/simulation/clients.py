"""Clients that write and read items through any gateway, and record the replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from asterism.errors import StorageUnavailable
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.storage.contract import Batch, ExpectationFailed
from asterism.values.identifiers import Lsn
from tests.simulation.gateway import Gateway, GatewayGone
from tests.simulation.history import History, ItemRead, Operation, Outcome
from tests.simulation.ledger import Item, plan_clear, plan_delete, plan_put, read_item

KEYSPACE = "c"
_THINK_SECONDS_MAX = 0.3
_PADDING_MAX = 60

# Plans the batch of an operation; None if there is nothing to do.
Planner = Callable[[Gateway, Keyspace, Item, Operation, int], Coroutine[Any, Any, Batch | None]]


class Client:
    """A client of the database; `choose_gateway` returns a gateway that is ready, or None."""

    def __init__(
        self,
        items: list[Item],
        history: History,
        random: Random,
        *,
        choose_gateway: Callable[[], Gateway | None],
        on_broken: Callable[[str], None],
        must_succeed: bool,
    ) -> None:
        self._items = items
        self._history = history
        self._random = random
        self._choose_gateway = choose_gateway
        self._on_broken = on_broken
        # In good weather no request fails.
        self._must_succeed = must_succeed

    async def work(self, operations: int) -> None:
        for _ in range(operations):
            await asyncio.sleep(self._random.uniform(0.0, _THINK_SECONDS_MAX))
            while (gateway := self._choose_gateway()) is None:
                await asyncio.sleep(0.1)
            await self.do_something(gateway)

    async def do_something(self, gateway: Gateway) -> None:
        item, drawn = self._random.choice(self._items), self._random.random()
        if drawn < 0.25:
            await self._read(gateway, item)
        elif drawn < 0.85:
            await self.put(gateway, item)
        elif drawn < 0.97:
            await self._change(gateway, item, self._plan_delete)
        else:
            await self._change(gateway, item, self._plan_clear)

    async def put(self, gateway: Gateway, item: Item) -> None:
        await self._change(gateway, item, self._plan_put)

    # --- writing ----------------------------------------------------------------------------------------------------

    async def _change(self, gateway: Gateway, item: Item, plan: Planner) -> None:
        operation = self._history.begin(item.point)

        async def act() -> Lsn | None:
            keyspace = find_keyspace(gateway)
            with keyspace.in_flight:
                settings = keyspace.record.settings
                batch = await plan(gateway, keyspace, item, operation, settings["number"])
                if batch is None:
                    return None
                partition, lsn = await gateway.router.apply(keyspace, item.point, batch, planned_under=settings)
            gateway.reshaper.notice_growth(keyspace, partition, batch.adds[-1].deltas[0])
            return lsn

        try:
            lsn = await gateway.call(act)
        except ExpectationFailed:
            operation.outcome = Outcome.REFUSED
        except GatewayGone:
            pass
        except StorageUnavailable as error:
            self._note_failure(error)
        except Exception as error:
            self._on_broken(f"a client got {error!r}")
        else:
            self._end(operation, lsn)

    def _end(self, operation: Operation, lsn: Lsn | None) -> None:
        if lsn is None:
            operation.outcome = Outcome.REFUSED
            return
        self._history.acknowledge(operation, lsn)
        if lsn <= operation.lsn_before:
            self._on_broken(f"operation {operation.number} has LSN {lsn}, and {operation.lsn_before} existed before")

    def _note_failure(self, error: Exception) -> None:
        if self._must_succeed:
            self._on_broken(f"a request failed although nothing went wrong: {error!r}")

    async def _plan_put(
        self, gateway: Gateway, keyspace: Keyspace, item: Item, operation: Operation, settings: int
    ) -> Batch | None:
        _, _, (stored,) = await gateway.router.read(keyspace, item.point, [item.key])
        padding = self._random.randrange(_PADDING_MAX)
        return plan_put(item, read_item(stored), operation=operation.number, settings=settings, padding=padding)

    async def _plan_delete(
        self, gateway: Gateway, keyspace: Keyspace, item: Item, operation: Operation, settings: int
    ) -> Batch | None:
        _, _, (stored,) = await gateway.router.read(keyspace, item.point, [item.key])
        found = read_item(stored)
        return None if found is None else plan_delete(item, found, operation=operation.number, settings=settings)

    async def _plan_clear(
        self, gateway: Gateway, keyspace: Keyspace, item: Item, operation: Operation, settings: int
    ) -> Batch | None:
        neighbors = [other for other in self._items if other.point == item.point]
        _, _, values = await gateway.router.read(keyspace, item.point, [other.key for other in neighbors])
        stored = zip(neighbors, map(read_item, values), strict=True)
        found = {other: kept for other, kept in stored if kept is not None}
        if not found:
            return None
        return plan_clear(item.point, found, operation=operation.number, settings=settings)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def _read(self, gateway: Gateway, item: Item) -> None:
        lsn_before = self._history.lsn_at(item.point)

        async def act() -> ItemRead:
            _, lsn, (stored,) = await gateway.router.read(find_keyspace(gateway), item.point, [item.key])
            found = read_item(stored)
            return ItemRead(item, lsn, 0 if found is None else found.operation)

        try:
            read = await gateway.call(act)
        except GatewayGone:
            pass
        except StorageUnavailable as error:
            self._note_failure(error)
        except Exception as error:
            self._on_broken(f"a client got {error!r}")
        else:
            self._history.reads.append(read)
            if read.lsn < lsn_before:
                self._on_broken(f"a read is of LSN {read.lsn}, and {lsn_before} was acknowledged before it began")


def find_keyspace(gateway: Gateway) -> Keyspace:
    (keyspace,) = [space for space in gateway.catalog.keyspaces.values() if space.record.name == KEYSPACE]
    return keyspace
