"""The gateways of a simulation: started, restarted after they died, and chosen for requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from asterism.keyspaces.reshaping.job import Step
from asterism.limits import Limits
from tests.simulation.gateway import Gateway
from tests.simulation.network import Network
from tests.simulation.trace import Trace
from tests.support.virtual_time import virtual_clock

_RESTART_SECONDS = (0.1, 3.0)
# Clocks of two machines have nothing in common.
_CLOCK_OFFSET_SECONDS = 1000.0


class Gateways:
    """All gateways, by their places; a place has one gateway at a time."""

    def __init__(
        self,
        network: Network,
        random: Random,
        trace: Trace,
        limits: Limits,
        *,
        on_step: Callable[[Gateway, Step], None],
        on_broken: Callable[[str], None],
    ) -> None:
        self.starts = 0
        self._network = network
        self._random = random
        self._trace = trace
        self._limits = limits
        self._on_step = on_step
        self._on_broken = on_broken
        self._places: dict[int, Gateway] = {}
        self._keepers: list[asyncio.Task[None]] = []
        self._keeps = True

    @property
    def all(self) -> list[Gateway]:
        return list(self._places.values())

    @property
    def ready(self) -> list[Gateway]:
        return [gateway for gateway in self._places.values() if gateway.is_ready]

    # --- starting and ending ----------------------------------------------------------------------------------------

    async def start(self, place: int) -> bool:
        """Start the gateway of a place; return False if it could not start, and died."""
        self.starts += 1
        gateway = self._places[place] = Gateway(
            f"g{place}.{self.starts}",
            self._network,
            clock=virtual_clock(
                asyncio.get_running_loop(), monotonic_offset_seconds=_CLOCK_OFFSET_SECONDS * self.starts
            ),
            limits=self._limits,
            random=self._random,
            trace=self._trace,
            on_step=self._on_step,
            on_broken=self._on_broken,
        )
        try:
            await gateway.call(gateway.start)
        except Exception as error:
            gateway.crash(f"at its start: {type(error).__name__}")
            return False
        return True

    def keep(self, count: int) -> None:
        """Start gateways in this many places, and restart one whenever it has died."""
        self._keepers = [asyncio.create_task(self._keep(place)) for place in range(count)]

    async def _keep(self, place: int) -> None:
        while self._keeps:
            gateway = self._places.get(place)
            if gateway is None or not gateway.is_alive:
                await self.start(place)
            await asyncio.sleep(self._random.uniform(*_RESTART_SECONDS))

    async def end_in_good_order(self) -> None:
        self._keeps = False
        await asyncio.gather(*self._keepers)
        for gateway in self.all:
            await gateway.call(gateway.stop)
            gateway.crash("in good order")
        self._places.clear()

    def end(self) -> None:
        """End all tasks and gateways at once."""
        for keeper in self._keepers:
            keeper.cancel()
        for gateway in self.all:
            gateway.crash("at the end")

    # --- choosing ---------------------------------------------------------------------------------------------------

    def choose(self) -> Gateway | None:
        """Return a gateway that serves; None if there is not one."""
        return self._random.choice(self.ready) if self.ready else None

    def choose_victim(self) -> Gateway | None:
        """Return a gateway to be stopped: most often the one that leads."""
        running = [gateway for gateway in self.ready if not gateway.is_paused]
        leading = [gateway for gateway in running if gateway.catalog.leads]
        if leading and self._random.random() < 0.8:
            return leading[0]
        return self._random.choice(running) if running else None
