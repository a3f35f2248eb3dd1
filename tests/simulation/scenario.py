"""The course of a simulation: clients and operators at work among faults, a rest, a restart, and checks."""

from __future__ import annotations

import asyncio
from random import Random

from asterism.limits import DEFAULT_LIMITS
from asterism.throughput.budgets import Manual
from asterism.values.identifiers import NodeNumber
from tests.simulation.clients import KEYSPACE, Client
from tests.simulation.final_checks import check_data, check_orphans, check_reads, remaining_work
from tests.simulation.gateways import Gateways
from tests.simulation.history import History
from tests.simulation.inspector import Inspector
from tests.simulation.ledger import DEFINITION, make_items
from tests.simulation.network import Network, Node
from tests.simulation.operator import Operator, Pauses, cut_nodes_off, pause_gateways
from tests.simulation.trace import Trace
from tests.simulation.weather import Weather

# Small enough that a few items fill a partition, and that a raised throughput needs more of them.
LIMITS = DEFAULT_LIMITS.with_changes(physical_partition_bytes_max=4_000, physical_partition_ru_per_second_max=400)
ITEMS_EACH = 3
OPERATORS = 2
# Virtual time for work that is under way when the faults have ended.
REST_SECONDS_MAX = 120.0
# Longer than a call that a node will not answer, so that every gateway has heard of the last changes.
_NEWS_SECONDS = 8.0
# Longer than a new leader waits before it removes partitions that are on no map.
_SWEEP_SECONDS = 15.0


class Scenario:
    """Everything that the seed has chosen, wired together."""

    def __init__(self, random: Random, trace: Trace) -> None:
        self._random = random
        self._trace = trace
        self.weather = Weather.draw(random)
        trace.note(str(self.weather))
        # Done when a rule does not hold, with the rule.
        self.broken: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.history = History()
        self._items = make_items(self.weather.logical_partitions, ITEMS_EACH)
        self._nodes = {NodeNumber(number): Node(NodeNumber(number)) for number in range(self.weather.nodes)}
        self._network = Network(self._nodes, self.weather, random, trace)
        is_shared = not self.weather.is_alone
        self.inspector = Inspector(self._nodes, self.history, self._on_broken, is_shared=is_shared)
        self._network.observe = self.inspector.observe
        self._pauses = Pauses(random, trace, count=self.weather.pauses)
        self.gateways = Gateways(
            self._network, random, trace, LIMITS, on_step=self._pauses.on_step, on_broken=self._on_broken
        )

    def _on_broken(self, rule: str) -> None:
        self._trace.note(f"BROKEN: {rule}")
        if not self.broken.done():
            self.broken.set_result(rule)

    # --- the course of it -------------------------------------------------------------------------------------------

    async def play(self) -> None:
        self._network.is_calm = True
        await self._set_up()
        self._network.is_calm = False
        self.gateways.keep(self.weather.gateways)
        await self._work()
        self._network.is_calm = True
        self._pauses.end()
        self._trace.note("the faults have ended")
        await self._come_to_rest()
        await self._check()
        await self.gateways.end_in_good_order()
        assert await self.gateways.start(0), "a gateway cannot be started although nothing is wrong"
        await asyncio.sleep(_SWEEP_SECONDS)
        assert not (work := remaining_work(self.gateways.all, self._nodes)), f"after a restart, {work}"
        check_orphans(self.inspector, self._nodes)
        await self._check()

    async def _set_up(self) -> None:
        """Start the first gateway, and create the keyspace with most of its items."""
        await self.gateways.start(0)
        (gateway,) = self.gateways.all

        async def create() -> None:
            database = await gateway.catalog.create_database("account", "d", None, now=0)
            nodes = [NodeNumber(place % self.weather.nodes) for place in range(self._random.choice((1, 2)))]
            await gateway.catalog.create_keyspace(
                database, KEYSPACE, DEFINITION, {"number": 0}, nodes=nodes, throughput=Manual(400), now=0
            )

        await gateway.call(create)
        client = self._client(must_succeed=True)
        for item in self._items:
            if self._random.random() < 0.7:
                await client.put(gateway, item)

    def _client(self, *, must_succeed: bool) -> Client:
        return Client(
            self._items,
            self.history,
            self._random,
            choose_gateway=self.gateways.choose,
            on_broken=self._on_broken,
            must_succeed=must_succeed,
        )

    def _operator(self, *, may_drain: bool) -> Operator:
        return Operator(
            len(self._nodes),
            self.history,
            self._random,
            self._trace,
            choose_gateway=self.gateways.choose,
            on_broken=self._on_broken,
            may_drain=may_drain,
        )

    async def _work(self) -> None:
        weather, nodes = self.weather, list(self._nodes.values())
        clients = [self._client(must_succeed=weather.is_fair) for _ in range(weather.clients)]
        operators = [self._operator(may_drain=place == 0) for place in range(OPERATORS)]
        await asyncio.gather(
            *(client.work(weather.operations_per_client) for client in clients),
            *(operator.work(weather.operator_actions // OPERATORS) for operator in operators),
            pause_gateways(self.gateways.choose_victim, self._pauses, self._random),
            cut_nodes_off(nodes, self._random, self._trace, outages=weather.outages),
        )

    # --- the end of it ----------------------------------------------------------------------------------------------

    async def _come_to_rest(self) -> None:
        """Wait until every gateway serves, one leads, and no work is left: nothing may take forever."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + REST_SECONDS_MAX
        while work := self._remaining_work():
            assert loop.time() < give_up_at, f"the work does not end: {work}"
            await asyncio.sleep(0.2)
        await asyncio.sleep(_NEWS_SECONDS)

    def _remaining_work(self) -> str:
        if len(self.gateways.ready) < self.weather.gateways:
            return "a gateway does not serve"
        return remaining_work(self.gateways.all, self._nodes)

    async def _check(self) -> None:
        check_data(self.gateways.all, self.inspector, self.history, self._items)
        await check_reads(self.gateways.all, self.inspector, self._items)
