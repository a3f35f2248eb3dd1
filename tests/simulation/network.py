"""The way between a gateway and a node: a call is a message, and so is its answer; both take their time.

A node is an engine in memory and does each call as a whole, in one moment. The seed decides when the message arrives,
whether its answer does, whether the caller dies meanwhile, and whether a message is delivered although its caller has
given up. The storage contract allows all of that for a call that failed or was cancelled. As with PostgreSQL (decision
13), a message that was given up never arrives after a later one of the same gateway to the same partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from asterism.keyspaces.catalog.store import CATALOG_PARTITION, KEYSPACE
from asterism.storage.contract import (
    Engine,
    EngineFailed,
    StorageRefusal,
)
from asterism.storage.memory import MemoryEngine, MemoryStore
from asterism.values.identifiers import NodeNumber, PartitionNumber
from tests.simulation.trace import Trace
from tests.simulation.weather import SorePoint, Weather

if TYPE_CHECKING:
    from tests.simulation.gateway import Gateway
    from tests.simulation.simulated_engine import SimulatedEngine

T = TypeVar("T")

# The time that a caller waits for a node that does not answer before it gives up, at least and at most.
PATIENCE_SECONDS = (0.5, 4.0)
# The time after that in which a message may still arrive.
_LATE_SECONDS_MAX = 3.0
_SORE_FACTOR = 50
_READS = frozenset({"read", "scan", "snapshot", "read_fence", "read_unfenced", "scan_unfenced", "read_journal"})


def _is_at(point: SorePoint, name: str, partition: PartitionNumber, arguments: tuple[Any, ...]) -> bool:
    """Return True if a call is one of those that fail much more often than others."""
    match point:
        case SorePoint.FENCES:
            return name in ("set_fence", "create_partition")
        case SorePoint.CATALOG:
            return name == "apply" and partition == CATALOG_PARTITION
        case SorePoint.MAPS:
            is_of_catalog = name == "apply" and partition == CATALOG_PARTITION
            return is_of_catalog and any(key.startswith(KEYSPACE) for key, _ in arguments[0].versioned_puts)
        case SorePoint.NONE:
            return False


class Fate(Enum):
    """The end of a message and of its answer, decided when it is sent."""

    ANSWERED = "answered"
    LOST = "lost"
    ANSWER_LOST = "answer lost"
    LATE = "late"


class Node:
    """One store; while `is_away` it cannot be reached."""

    def __init__(self, number: NodeNumber) -> None:
        self.number = number
        self.store = MemoryStore()
        self.engine = MemoryEngine(self.store)
        self.is_away = False
        self.watches: dict[object, tuple[Gateway, PartitionNumber, Callable[[], None]]] = {}


@dataclass(slots=True, eq=False)
class Message:
    """A call on its way. `effect` makes the coroutine of the node's own engine that does it."""

    handle: SimulatedEngine
    name: str
    partition: PartitionNumber
    effect: Callable[[Engine], Coroutine[Any, Any, Any]]
    answer: asyncio.Future[Any]
    sequence: int
    fate: Fate
    # True if the caller has stopped waiting, and the message is delivered all the same.
    is_given_up: bool = False
    is_dropped: bool = False


@dataclass(slots=True)
class Delivery:
    """A call that a node has carried out, for the inspector of the simulation."""

    gateway: Gateway
    node: Node
    name: str
    partition: PartitionNumber
    arguments: tuple[Any, ...]
    result: Any


class Network:
    """The network that delivers messages. `observe` gets every call that had an effect, at the moment of the effect."""

    def __init__(self, nodes: dict[NodeNumber, Node], weather: Weather, random: Random, trace: Trace) -> None:
        self.nodes = nodes
        self.weather = weather
        self.is_calm = False
        self.observe: Callable[[Delivery], None] = lambda _: None
        self._random = random
        self._trace = trace
        self._loop = asyncio.get_running_loop()
        self._sequence = 0

    # --- sending ----------------------------------------------------------------------------------------------------

    async def call(
        self,
        handle: SimulatedEngine,
        name: str,
        partition: PartitionNumber,
        effect: Callable[[Engine], Coroutine[Any, Any, T]],
        arguments: tuple[Any, ...] = (),
    ) -> T:
        gateway = handle.gateway
        await gateway.may_run()
        if name in _READS and self.weather.reads_are_inline and not handle.node.is_away:
            return self._do(handle, name, partition, effect, arguments)
        self._sequence += 1
        factor = _SORE_FACTOR if _is_at(self.weather.sore_point, name, partition, arguments) else 1
        fate = self._fate(name, self.weather.failure_share * factor)
        message = Message(handle, name, partition, effect, self._loop.create_future(), self._sequence, fate)
        dies = not self.is_calm and self._random.random() < self.weather.crash_share * factor
        if dies and self._random.random() < 0.5:
            # Before the message is out.
            gateway.crash(f"before {name} {partition}")
        else:
            self._loop.call_later(self._latency(), self._deliver, message, arguments)
            if dies:
                self._loop.call_later(self._latency(), gateway.crash, f"during {name} {partition}")
        try:
            result: T = await message.answer
        except asyncio.CancelledError:
            self._give_up(message)
            raise
        await gateway.may_run()
        return result

    def _fate(self, name: str, failure_share: float) -> Fate:
        if self.is_calm or self._random.random() >= failure_share:
            return Fate.ANSWERED
        return Fate.LOST if name in _READS else self._random.choice((Fate.LOST, Fate.ANSWER_LOST, Fate.LATE))

    def _latency(self) -> float:
        weather, drawn = self.weather, self._random.random()
        if drawn < 0.2:
            return 0.0
        if not self.is_calm and drawn > 1 - weather.slow_share:
            return self._random.uniform(0.0, weather.slow_seconds_max)
        return self._random.uniform(0.0, weather.latency_seconds_max)

    def _patience(self) -> float:
        return self._random.uniform(*PATIENCE_SECONDS)

    # --- delivering -------------------------------------------------------------------------------------------------

    def _deliver(self, message: Message, arguments: tuple[Any, ...]) -> None:
        handle, name, partition = message.handle, message.name, message.partition
        if message.is_dropped or (message.is_given_up and handle.delivered.get(partition, 0) > message.sequence):
            return
        if message.fate is Fate.LOST or handle.node.is_away:
            message.is_dropped = True
            self._loop.call_later(self._patience(), self._fail, message)
            return
        if message.fate is Fate.LATE and not message.is_given_up:
            patience = self._patience()
            self._loop.call_later(patience, self._fail, message)
            self._loop.call_later(
                patience + self._random.uniform(0.0, _LATE_SECONDS_MAX), self._deliver, message, arguments
            )
            return
        if name not in _READS:
            handle.delivered[partition] = max(handle.delivered.get(partition, 0), message.sequence)
        try:
            result = self._do(handle, name, partition, message.effect, arguments)
        except StorageRefusal as refusal:
            outcome: Any = refusal
        else:
            outcome = result
        if message.fate is Fate.ANSWER_LOST:
            self._loop.call_later(self._patience(), self._fail, message)
        else:
            self._loop.call_later(self._latency(), _answer, message.answer, outcome)

    def _do(
        self,
        handle: SimulatedEngine,
        name: str,
        partition: PartitionNumber,
        effect: Callable[[Engine], Coroutine[Any, Any, T]],
        arguments: tuple[Any, ...],
    ) -> T:
        """Carry out the call on the node, as a whole and now: its engine suspends only to let other tasks run."""
        gateway, node = handle.gateway, handle.node
        try:
            result = _finish(effect(node.engine))
        except StorageRefusal as refusal:
            self._trace.note(f"{gateway} {name} {partition} on {node.number}: {type(refusal).__name__}")
            raise
        if name not in _READS:
            self._trace.note(f"{gateway} {name} {partition} on {node.number}: {result!r}")
            self.observe(Delivery(gateway, node, name, partition, arguments, result))
            if name == "apply":
                self._tell_watchers(node, partition)
        return result

    def _fail(self, message: Message) -> None:
        message.is_given_up = True
        _answer(message.answer, EngineFailed(f"node {message.handle.node.number} does not answer"))

    def _give_up(self, message: Message) -> None:
        """Mark the message of a caller that was cancelled, or has died: it may arrive or not."""
        message.is_given_up = True
        message.is_dropped = message.is_dropped or self.weather.is_alone or self._random.random() < 0.5

    # --- watching ---------------------------------------------------------------------------------------------------

    def _tell_watchers(self, node: Node, partition: PartitionNumber) -> None:
        if not node.store.partition(partition).announced:
            return
        for gateway, watched, callback in node.watches.values():
            if watched == partition:
                delay_seconds = self._random.uniform(0.0, self.weather.notice_seconds_max)
                self._loop.call_later(delay_seconds, gateway.notice, callback)


def _finish(coroutine: Coroutine[Any, Any, T]) -> T:
    while True:
        try:
            coroutine.send(None)
        except StopIteration as stop:
            result: T = stop.value
            return result


def _answer(answer: asyncio.Future[Any], outcome: Any) -> None:
    if answer.done():
        return
    if isinstance(outcome, StorageRefusal):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
