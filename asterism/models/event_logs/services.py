"""The parts of the program that hubs need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from asterism.clock import Clock
from asterism.errors import OwnerNotFound, ResourceNotFound
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.event_logs.chunk_cache import ChunkCache
from asterism.models.event_logs.description import HubLimits


@dataclass(slots=True)
class EventLogServices:
    router: PartitionRouter
    reshaper: Reshaper
    clock: Clock
    random_bytes: Callable[[int], bytes]
    # Set by the door that has the settings.
    limits: HubLimits = field(default_factory=HubLimits)
    cache: ChunkCache = field(default_factory=ChunkCache)

    def now_ms(self) -> int:
        """Return the wall time as it is stored: no time before 1970."""
        return max(0, int(self.clock.wall_seconds() * 1000))


@contextmanager
def of_hub(name: str, keyspace: Keyspace) -> Iterator[None]:
    """Word the deletion of the keyspace as that of its hub. A process that is alone has no fence to tell it."""
    if keyspace.deleted:
        raise ResourceNotFound(kind="hub", name=name)
    try:
        yield
    except OwnerNotFound:
        raise ResourceNotFound(kind="hub", name=name) from None
