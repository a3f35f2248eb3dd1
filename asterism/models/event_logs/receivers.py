"""The receivers of each partition, by consumer group: one with the highest epoch alone, or a few without an epoch.

A process that has the store to itself decides in memory. With others, a receiver with an epoch also holds a *claim*,
a record that is replaced under an expectation and renewed while the receiver lives. Every receiver looks at it each
second and ends when it is another's (E8). A claim that is not renewed lapses, so a crash blocks a partition briefly.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from asterism.errors import AsterismError, TooMuchContention
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.contention import ATTEMPTS_MAX
from asterism.models.event_logs.hub import Hub
from asterism.models.event_logs.layout import HOLDER_BYTES, ReceiverClaim, pack_claim, receiver_key, unpack_claim
from asterism.models.event_logs.services import EventLogServices, of_hub
from asterism.partitioning.partition_key import numbered_point
from asterism.storage.contract import Batch, Expectation, ExpectationFailed, StorageRefusal

# A claim without a living process behind it lapses after this long; clients retry for longer.
CLAIM_MS: Final = 30_000
_RENEW_BELOW_MS: Final = 20_000
# An older receiver notices that it was replaced within this time.
LOOK_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


class ReceiverRefused(enum.Enum):
    """Why a receiver cannot join."""

    EPOCH_TOO_LOW = "A receiver with a higher epoch has the partition."
    TOO_MANY = "The group has as many receivers on the partition as it may have."


# Compared by identity: two receivers may look alike.
@dataclass(eq=False, slots=True)
class Receiver:
    """A receiver that has joined. `on_replaced` is called at most once, if it must end."""

    hub: Hub
    partition: int
    group: str
    epoch: int | None
    on_replaced: Callable[[], None]
    holder: bytes
    claim: bytes | None = field(default=None)

    @property
    def place(self) -> tuple[bytes, int, str]:
        return self.hub.keyspace.record.rid, self.partition, self.group


class ReceiverBook:
    """The receivers of this process, kept apart from those of others. One per process."""

    def __init__(self, services: EventLogServices) -> None:
        self._services = services
        self._receivers: dict[tuple[bytes, int, str], set[Receiver]] = {}
        self._keeper: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        await end_tasks([self._keeper])
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- joining ------------------------------------------------------------------------------------------------------

    async def join(
        self, hub: Hub, partition: int, group: str, epoch: int | None, on_replaced: Callable[[], None]
    ) -> Receiver | ReceiverRefused:
        """Add a receiver, and end those that it replaces. The caller must call `leave` when it ends."""
        holder = self._services.random_bytes(HOLDER_BYTES)
        receiver = Receiver(hub, partition, group.lower(), epoch, on_replaced, holder)
        refused = self._refusal_here(receiver)
        if refused is None and self._services.router.has_others:
            refused = await self._claim(receiver)
            # Others may have joined here meanwhile.
            refused = refused or self._refusal_here(receiver)
            if refused is not None and receiver.claim is not None:
                self._give_back(receiver)
        if refused is not None:
            return refused
        here = self._receivers.setdefault(receiver.place, set())
        replaced = list(here) if epoch is not None else []
        here.add(receiver)
        for other in replaced:
            self._end(other)
        if self._services.router.has_others and (self._keeper is None or self._keeper.done()):
            self._keeper = asyncio.get_running_loop().create_task(self._keep_looking())
        return receiver

    def leave(self, receiver: Receiver) -> None:
        """Remove a receiver; once more does no harm."""
        here = self._receivers.get(receiver.place)
        if here is not None and receiver in here:
            here.discard(receiver)
            if not here:
                del self._receivers[receiver.place]
            if receiver.claim is not None:
                self._give_back(receiver)

    def receivers_of(self, hub: Hub, partition: int, group: str) -> int:
        """Return the number of receivers in this process."""
        return len(self._receivers.get((hub.keyspace.record.rid, partition, group.lower()), ()))

    def _refusal_here(self, receiver: Receiver) -> ReceiverRefused | None:
        here = self._receivers.get(receiver.place, set())
        epochs = [other.epoch for other in here if other.epoch is not None]
        if receiver.epoch is not None:
            return ReceiverRefused.EPOCH_TOO_LOW if epochs and max(epochs) > receiver.epoch else None
        if epochs:
            return ReceiverRefused.EPOCH_TOO_LOW
        return ReceiverRefused.TOO_MANY if len(here) >= self._services.limits.plain_receivers_max else None

    def _end(self, receiver: Receiver) -> None:
        # The claim is another's by now.
        receiver.claim = None
        self.leave(receiver)
        receiver.on_replaced()

    # --- claims, seen by all processes --------------------------------------------------------------------------------

    async def _claim(self, receiver: Receiver) -> ReceiverRefused | None:
        key = receiver_key(receiver.partition, receiver.group)
        for _ in range(ATTEMPTS_MAX):
            (stored,) = await self._read(receiver.hub, receiver.partition, [key])
            known = None if stored is None else unpack_claim(stored)
            now = self._services.now_ms()
            if known is not None and known.until_ms > now and (receiver.epoch is None or known.epoch > receiver.epoch):
                return ReceiverRefused.EPOCH_TOO_LOW
            if receiver.epoch is None:
                return None
            if await self._replace(receiver, key, stored, now):
                return None
        raise TooMuchContention

    async def _replace(self, receiver: Receiver, key: bytes, stored: bytes | None, now: int) -> bool:
        """Write a receiver's claim in place of a stored one; False if that is not there any more."""
        assert receiver.epoch is not None, "only receivers with an epoch have claims"
        claim = pack_claim(ReceiverClaim(receiver.epoch, now + CLAIM_MS, receiver.holder))
        if not await self._apply(receiver, Batch([Expectation(key, stored)], puts=[(key, claim)])):
            return False
        receiver.claim = claim
        return True

    def _give_back(self, receiver: Receiver) -> None:
        """Remove a receiver's claim, in the background: should that fail, it lapses."""
        key, claim = receiver_key(receiver.partition, receiver.group), receiver.claim
        receiver.claim = None
        self._in_background(self._removed(receiver, Batch([Expectation(key, claim)], deletes=[key])))

    async def _removed(self, receiver: Receiver, batch: Batch) -> None:
        try:
            await self._apply(receiver, batch)
        except (AsterismError, StorageRefusal) as problem:
            _log.debug("a claim lapses by itself: %s", problem)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, hub: Hub, partition: int, keys: Sequence[bytes]) -> list[bytes | None]:
        with of_hub(hub.name, hub.keyspace):
            _, _, values = await self._services.router.read(hub.keyspace, numbered_point(partition), keys)
        return values

    async def _apply(self, receiver: Receiver, batch: Batch) -> bool:
        batch.may_use_reserve = True
        keyspace = receiver.hub.keyspace
        try:
            with of_hub(receiver.hub.name, keyspace), keyspace.in_flight:
                await self._services.router.apply(keyspace, numbered_point(receiver.partition), batch)
        except ExpectationFailed:
            return False
        return True

    # --- receivers that were replaced elsewhere -----------------------------------------------------------------------

    async def _keep_looking(self) -> None:
        while self._receivers:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """End the receivers that another process has replaced, and renew the claims of the others."""
        receivers = [receiver for here in list(self._receivers.values()) for receiver in here]
        receivers.sort(key=_partition_of)
        for _, group in groupby(receivers, key=_partition_of):
            try:
                await self._look_at(list(group))
            except (AsterismError, StorageRefusal) as problem:
                _log.debug("claims are looked at again later: %s", problem)

    async def _look_at(self, receivers: Sequence[Receiver]) -> None:
        """Look at the receivers of one partition."""
        first = receivers[0]
        groups = sorted({receiver.group for receiver in receivers})
        keys = {group: receiver_key(first.partition, group) for group in groups}
        stored = dict(zip(groups, await self._read(first.hub, first.partition, list(keys.values())), strict=True))
        now = self._services.now_ms()
        for receiver in receivers:
            value = stored[receiver.group]
            known = None if value is None else unpack_claim(value)
            if known is not None and known.holder != receiver.holder and known.until_ms > now:
                if receiver in self._receivers.get(receiver.place, ()):
                    self._end(receiver)
            elif receiver.claim is not None and (known is None or known.until_ms - now < _RENEW_BELOW_MS):
                await self._replace(receiver, keys[receiver.group], value, now)
                if receiver not in self._receivers.get(receiver.place, ()):
                    # It left while the claim was renewed.
                    self._give_back(receiver)


def _partition_of(receiver: Receiver) -> tuple[bytes, int]:
    return receiver.hub.keyspace.record.rid, receiver.partition
