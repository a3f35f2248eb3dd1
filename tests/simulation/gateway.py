"""One process of the simulation: the objects of the keyspaces floor, wired as the server wires them, and its death.

Everything that a gateway does runs in tasks of its own. A crash ends all of them at the await where they are; their
messages are on the way or not, and the next start knows only the data of the nodes.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from asterism.clock import Clock
from asterism.errors import AsterismError
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog, CatalogChanges
from asterism.keyspaces.processes.budget_sharer import BudgetSharer
from asterism.keyspaces.processes.coordination import Coordination, Services
from asterism.keyspaces.processes.usage_gatherer import UsageGatherer
from asterism.keyspaces.reshaping.job import Step
from asterism.keyspaces.reshaping.mover import Mover
from asterism.keyspaces.reshaping.placer import Placer
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.limits import Limits
from asterism.storage.contract import StorageRefusal
from asterism.storage.nodes import NodeEngines
from asterism.values.identifiers import NodeNumber
from tests.simulation.network import Network
from tests.simulation.simulated_engine import SimulatedEngine
from tests.simulation.trace import Trace

T = TypeVar("T")

# The gateway whose task is running; tasks that it creates are its own.
_RUNNING: contextvars.ContextVar[Gateway | None] = contextvars.ContextVar("running gateway", default=None)
# Ways in which work may end without anything being wrong.
_EXPECTED = (AsterismError, StorageRefusal, asyncio.CancelledError, TimeoutError)


class GatewayGone(Exception):
    """The gateway died before it answered: its client does not know the outcome of the request."""


class Gateway:
    """A process, from its start to its end."""

    def __init__(
        self,
        name: str,
        network: Network,
        *,
        clock: Clock,
        limits: Limits,
        random: Random,
        trace: Trace,
        on_step: Callable[[Gateway, Step], None],
        on_broken: Callable[[str], None],
    ) -> None:
        self.name = name
        self.is_alive = True
        self.is_ready = False
        self._network = network
        self._clock = clock
        self._limits = limits
        self._random = random
        self._trace = trace
        self._tell_step = on_step
        self._on_broken = on_broken
        self._running = asyncio.Event()
        self._running.set()
        # In the order of their creation, so that every run of a seed ends them in the same order.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._context = contextvars.copy_context()
        self._context.run(_RUNNING.set, self)

    def __str__(self) -> str:
        return self.name

    # --- as in the server's `assemble` ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open everything; raise the errors for which a server would not start."""
        is_shared = not self._network.weather.is_alone
        handles = {number: SimulatedEngine(self._network, self, node) for number, node in self._network.nodes.items()}
        monotonic = self._clock.monotonic_seconds
        self.engines = NodeEngines(handles, catalog_node=NodeNumber(0))
        self.catalog = Catalog(
            self.engines, random_bytes=self._random.randbytes, monotonic=monotonic, is_shared=is_shared
        )
        await self.catalog.open()
        if len(handles) > 1:
            for number in handles:
                await self.catalog.nodes.join(f"n{number}", frozenset(), number=number)
        self.admission = Admission(self.catalog, self._limits, enforce=False, monotonic=monotonic)
        for keyspace in self.catalog.keyspaces.values():
            self.admission.refresh(keyspace)
        self.router = PartitionRouter(self.engines, self.catalog.follow if is_shared else None)
        placer = Placer(self.catalog, self.router, self.admission, self._limits, self._clock)
        self.reshaper = Reshaper(
            self.engines,
            self.catalog,
            self.router,
            self.admission,
            self._limits,
            self._clock,
            placer=placer,
            on_step=self._on_step,
        )
        self.mover = Mover(self.catalog, self.reshaper, self.engines)
        self.catalog.listeners.append(self._take_over)
        services = Services([(self.reshaper.recover, self.reshaper.stop), (self.mover.start, self.mover.stop)])
        usage = UsageGatherer(self.catalog)
        self.coordination = Coordination(
            self.engines,
            self.catalog,
            monotonic=monotonic,
            background=services,
            presence=[BudgetSharer(self.admission, monotonic=monotonic), usage],
            name=self.name,
        )
        usage.on_news = self.coordination.hurry
        self._background = self.coordination if is_shared else services
        await self._background.start()
        self.is_ready = True
        self._trace.note(f"{self} is ready as number {self.catalog.boot_number}")

    async def stop(self) -> None:
        """End in good order."""
        self.is_ready = False
        await self._background.stop()

    def _take_over(self, changes: CatalogChanges) -> None:
        for keyspace in changes.keyspaces:
            self.admission.refresh(keyspace)
        self.reshaper.wake(changes)

    def _on_step(self, step: Step) -> None:
        self._trace.note(f"{self} reaches {step.value!r}")
        self._tell_step(self, step)

    # --- running ----------------------------------------------------------------------------------------------------

    async def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a request in this gateway. Raises GatewayGone if it dies before it has answered."""
        if not self.is_alive:
            raise GatewayGone
        task = asyncio.get_running_loop().create_task(work(), context=self._context.copy())
        await asyncio.wait({task})
        if task.cancelled():
            raise GatewayGone
        return task.result()

    async def may_run(self) -> None:
        """Return at once, or after a pause of the process; in a dead process it never returns."""
        if not self.is_alive:
            raise asyncio.CancelledError
        if not self._running.is_set():
            await self._running.wait()

    def pause(self) -> None:
        self._running.clear()

    def resume(self) -> None:
        self._running.set()

    @property
    def is_paused(self) -> bool:
        return not self._running.is_set()

    def notice(self, callback: Callable[[], None]) -> None:
        """Notify a watcher of a batch."""
        if self.is_alive:
            self._context.copy().run(callback)

    # --- dying ------------------------------------------------------------------------------------------------------

    def crash(self, reason: str) -> None:
        if self.is_alive:
            self._trace.note(f"{self} dies {reason}")
            self.is_alive = self.is_ready = False
            self.resume()
            self._end_tasks()

    def _end_tasks(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            asyncio.get_running_loop().call_soon(self._end_tasks)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        self._tasks[task] = None
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[Any]) -> None:
        del self._tasks[task]
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, _EXPECTED) and self.is_alive:
            self._on_broken(f"a task of {self} ended with {error!r}")


def create_task(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, Any, T],
    context: contextvars.Context | None = None,
) -> asyncio.Task[T]:
    """Create a task, as a task factory: the tasks of a gateway are those that its tasks and callbacks create."""
    task = asyncio.Task(coroutine, loop=loop, context=context)
    gateway = _RUNNING.get() if context is None else context.get(_RUNNING)
    if gateway is not None:
        gateway.adopt(task)
    return task
