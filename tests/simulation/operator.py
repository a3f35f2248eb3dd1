"""The actions of operators and the faults while clients work: splits, moves, settings, pauses, outages, restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from asterism.errors import AsterismError
from asterism.keyspaces.reshaping.job import Step
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.storage.contract import StorageRefusal
from asterism.throughput.budgets import Manual
from tests.simulation.clients import find_keyspace
from tests.simulation.gateway import Gateway, GatewayGone
from tests.simulation.history import History
from tests.simulation.ledger import DEFINITION
from tests.simulation.network import Node
from tests.simulation.trace import Trace

OTHER = "other"
_REST_SECONDS_MAX = 0.5
# Others wait three seconds for a leader.
_PAUSE_SECONDS = (1.0, 8.0)
_OUTAGE_SECONDS_MAX = 5.0

Action = Callable[[Gateway, Keyspace], Coroutine[Any, Any, object]]


class Operator:
    """An operator that asks any gateway for one action after the other. A refusal is an answer."""

    def __init__(
        self,
        node_count: int,
        history: History,
        random: Random,
        trace: Trace,
        *,
        choose_gateway: Callable[[], Gateway | None],
        on_broken: Callable[[str], None],
        may_drain: bool,
    ) -> None:
        """Only one operator drains nodes: two could leave none for the data to go to."""
        self._history = history
        self._random = random
        self._trace = trace
        self._choose_gateway = choose_gateway
        self._on_broken = on_broken
        self._actions: list[tuple[Action, int]] = [
            (self._split, 6),
            (self._merge, 4),
            (self._change_settings, 2),
            (self._change_throughput, 1),
            (self._restart, 1),
            (self._create_other, 1),
            (self._delete_other, 1),
        ]
        if node_count > 1:
            self._actions += [(self._move, 5), (self._rebalance, 1), (self._take_back, 2)]
        if node_count > 1 and may_drain:
            self._actions.append((self._drain, 2))

    async def work(self, actions: int) -> None:
        choices, weights = zip(*self._actions, strict=True)
        for _ in range(actions):
            await asyncio.sleep(self._random.uniform(0.0, _REST_SECONDS_MAX))
            gateway = self._choose_gateway()
            if gateway is not None:
                (action,) = self._random.choices(choices, weights)
                await self._ask(gateway, action)

    async def _ask(self, gateway: Gateway, action: Action) -> None:
        self._trace.note(f"operator asks {gateway}: {action.__name__}")

        async def act() -> None:
            await gateway.catalog.follow()
            await action(gateway, find_keyspace(gateway))

        try:
            await gateway.call(act)
        except (AsterismError, StorageRefusal, GatewayGone) as refusal:
            self._trace.note(f"operator gets {type(refusal).__name__}")
        except Exception as error:
            self._on_broken(f"the operator got {error!r}")

    # --- actions ----------------------------------------------------------------------------------------------------

    async def _split(self, gateway: Gateway, keyspace: Keyspace) -> None:
        await gateway.reshaper.split(keyspace, self._random.choice(keyspace.record.map.ranges).id)

    async def _merge(self, gateway: Gateway, keyspace: Keyspace) -> None:
        ranges = keyspace.record.map.ranges
        if len(ranges) > 1:
            place = self._random.randrange(len(ranges) - 1)
            await gateway.reshaper.merge(keyspace, ranges[place].id, ranges[place + 1].id)

    async def _move(self, gateway: Gateway, keyspace: Keyspace) -> None:
        online = gateway.catalog.nodes.online()
        if online:
            target = self._random.choice(online)
            await gateway.mover.move(keyspace, self._random.choice(keyspace.record.map.ranges).id, target)

    async def _rebalance(self, gateway: Gateway, _: Keyspace) -> None:
        await gateway.mover.rebalance()

    async def _drain(self, gateway: Gateway, _: Keyspace) -> None:
        online = gateway.catalog.nodes.online()
        if len(online) > 1:
            await gateway.mover.drain(self._random.choice(online))

    async def _take_back(self, gateway: Gateway, _: Keyspace) -> None:
        online = gateway.catalog.nodes.online()
        away = [node for node in gateway.catalog.nodes.records.values() if node not in online]
        if away:
            await gateway.mover.take_back(self._random.choice(away))

    async def _change_settings(self, gateway: Gateway, keyspace: Keyspace) -> None:
        number = self._history.next_settings()
        await gateway.catalog.replace_keyspace_settings(keyspace, {"number": number}, now=0)
        # Writes of other processes are fenced off by now; writes of this one may still be under way.
        await keyspace.earlier_work_done()
        self._history.acknowledge_settings(number)

    async def _restart(self, gateway: Gateway, _: Keyspace) -> None:
        """End a gateway in good order; it is started again as one that died is."""
        await gateway.stop()
        gateway.crash("in good order")

    async def _create_other(self, gateway: Gateway, keyspace: Keyspace) -> None:
        """Create another keyspace, which is deleted later; nothing of it may be left."""
        catalog = gateway.catalog
        database = catalog.databases[keyspace.record.database_rid]
        nodes = [self._random.choice(catalog.nodes.online()).number for _ in range(self._random.choice((1, 3)))]
        await catalog.create_keyspace(database, OTHER, DEFINITION, {}, nodes=nodes, throughput=None, now=0)

    async def _delete_other(self, gateway: Gateway, keyspace: Keyspace) -> None:
        other = gateway.catalog.find_keyspace(keyspace.record.database_rid, OTHER)
        if other is not None:
            await gateway.catalog.delete_keyspace(other)
            gateway.reshaper.collect_garbage()

    async def _change_throughput(self, gateway: Gateway, keyspace: Keyspace) -> None:
        offer = gateway.catalog.governing_offer(keyspace.record.rid)
        if offer is not None:
            ru_per_second = self._random.choice((400, 400, 800, 1200))
            await gateway.catalog.replace_offer(offer, Manual(ru_per_second), now=0)
            gateway.reshaper.grow(keyspace)


class Pauses:
    """Pauses of processes, often in the middle of a job: longer than others wait for a leader, which then resumes with
    outdated state."""

    def __init__(self, random: Random, trace: Trace, *, count: int) -> None:
        self._random = random
        self._trace = trace
        self._left = count
        self._loop = asyncio.get_running_loop()

    def on_step(self, gateway: Gateway, step: Step) -> None:
        # Most steps are pages of a copy.
        if self._left and self._random.random() < (0.02 if step is Step.COPYING else 0.3):
            self.pause(gateway)

    def pause(self, gateway: Gateway) -> None:
        if not self._left or gateway.is_paused:
            return
        self._left -= 1
        self._trace.note(f"{gateway} is stopped")
        gateway.pause()
        self._loop.call_later(self._random.uniform(*_PAUSE_SECONDS), self._resume, gateway)

    def _resume(self, gateway: Gateway) -> None:
        self._trace.note(f"{gateway} resumes")
        gateway.resume()

    def end(self) -> None:
        self._left = 0


async def pause_gateways(choose_gateway: Callable[[], Gateway | None], pauses: Pauses, random: Random) -> None:
    """Pause a gateway at any time, too."""
    await asyncio.sleep(random.uniform(0.0, 10.0))
    gateway = choose_gateway()
    if gateway is not None:
        pauses.pause(gateway)


async def cut_nodes_off(nodes: list[Node], random: Random, trace: Trace, *, outages: int) -> None:
    for _ in range(outages):
        await asyncio.sleep(random.uniform(0.0, 6.0))
        node = random.choice(nodes)
        trace.note(f"node {node.number} cannot be reached")
        node.is_away = True
        await asyncio.sleep(random.uniform(0.1, _OUTAGE_SECONDS_MAX))
        trace.note(f"node {node.number} can be reached")
        node.is_away = False
