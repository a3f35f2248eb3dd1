"""Everything that the connections of the door share in a process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asterism.apis.mongo.index_filters import IndexFilters
from asterism.apis.mongo.topology import Topology
from asterism.apis.mongo.usage import UsageRegistry
from asterism.apis.mongo.write_lock import WriteLock
from asterism.values.bson.types import DatetimeMS, Document, Timestamp

if TYPE_CHECKING:
    from asterism.apis.mongo.cursors import CursorRegistry
    from asterism.apis.mongo.fail_points import FailPoints
    from asterism.apis.mongo.forwarding import Forwarder
    from asterism.apis.mongo.operations import Operations
    from asterism.apis.mongo.sessions import SessionRegistry
    from asterism.apis.mongo.settings import MongoSettings
    from asterism.apis.mongo.transactions import TransactionRegistry
    from asterism.apis.mongo.users.authentication import Authenticator
    from asterism.apis.services import DoorServices
    from asterism.models.collections.store import CollectionStore


@dataclass(slots=True)
class DoorContext:
    services: DoorServices
    settings: MongoSettings
    cursors: CursorRegistry
    transactions: TransactionRegistry
    sessions: SessionRegistry
    authenticator: Authenticator
    operations: Operations
    forwarder: Forwarder
    # None but with `--test-controls`.
    fail_points: FailPoints | None
    # In monotonic seconds.
    started_at: float
    topology: Topology = field(default_factory=Topology)
    # Values of `setParameter`, which last as long as the process.
    parameters: dict[str, Any] = field(default_factory=dict)
    index_filters: IndexFilters = field(default_factory=IndexFilters)
    write_lock: WriteLock = field(default_factory=WriteLock)
    usage: UsageRegistry = field(default_factory=UsageRegistry)
    default_read_concern: Document | None = None
    default_write_concern: Document | None = None

    @property
    def store(self) -> CollectionStore:
        return self.services.collections

    def monotonic_seconds(self) -> float:
        return self.services.clock.monotonic_seconds()

    def now(self) -> DatetimeMS:
        return DatetimeMS(int(self.services.clock.wall_seconds() * 1000))

    def cluster_time(self) -> Timestamp:
        time = self.store.services.hybrid_clock.now
        return Timestamp(time >> 32, time & 0xFFFFFFFF)
