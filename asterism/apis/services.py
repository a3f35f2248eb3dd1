"""Everything below the doors, as `DoorSpec.build` gets it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from asterism.access.keys import AccountKeys
    from asterism.apis.browser_guard import BrowserGuard
    from asterism.apis.captures.captures import Captures
    from asterism.apis.door_spec import CollectionKind
    from asterism.apis.peers import Peers
    from asterism.apis.pipeline import RequestMeter
    from asterism.apis.process_group import ProcessGroup
    from asterism.apis.suite_controls import SuiteControls
    from asterism.clock import Clock
    from asterism.keyspaces.admission import Admission
    from asterism.keyspaces.processes.fleet_health import FleetHealth
    from asterism.keyspaces.processes.revocations import Revocations
    from asterism.keyspaces.processes.usage_gatherer import UsageGatherer
    from asterism.keyspaces.processes.usage_history import UsageHistory
    from asterism.keyspaces.reshaping.load_watch import LoadWatch
    from asterism.keyspaces.reshaping.mover import Mover
    from asterism.limits import Limits
    from asterism.models.blobs.store import BlobStore
    from asterism.models.collections.store import CollectionStore
    from asterism.models.documents.store import DocumentStore
    from asterism.models.event_logs.store import EventLogStore
    from asterism.models.messages.store import MessageStore
    from asterism.models.namespaces.store import NamespaceStore
    from asterism.models.queues.store import QueueStore
    from asterism.models.tables.store import TableStore
    from asterism.reading.limits import QueryMemory
    from asterism.scripts.runtime import ScriptRuntime


class MigrationControl(Protocol):
    """Moves everything the server has to another place, and shows the progress. Only the server knows how."""

    async def begin(self, wish: Mapping[str, Any], /) -> None: ...

    def show(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class DoorServices:
    """The open database, and what its doors share. One per process; a door takes what it needs."""

    clock: Clock
    random_bytes: Callable[[int], bytes]
    limits: Limits
    # Counts and times the requests of all doors.
    meter: RequestMeter
    # Names requests that bring no name.
    new_request_id: Callable[[], str]
    # The account that the server has from its configuration.
    account: str
    keys: AccountKeys
    key_is_public: bool
    # Names of all accounts of the configuration.
    configured_accounts: frozenset[str]
    # Refuses web pages, for accounts whose key is public.
    guard: BrowserGuard
    documents: DocumentStore
    tables: TableStore
    queues: QueueStore
    blobs: BlobStore
    collections: CollectionStore
    # Of messaging: the entities of all kinds, and what hubs, queues and topics are made of.
    namespaces: NamespaceStore
    event_logs: EventLogStore
    messages: MessageStore
    scripts: ScriptRuntime
    query_memory: QueryMemory
    admission: Admission
    health: FleetHealth
    mover: Mover
    usage: UsageGatherer
    history: UsageHistory
    load: LoadWatch
    migration: MigrationControl
    # Of all doors, served or not, in the order of their table.
    collection_kinds: tuple[CollectionKind, ...]
    # For a door that is a client of the others.
    peers: Peers
    revocations: Revocations
    # The processes that serve the same ports.
    processes: ProcessGroup
    # Samples of the requests on containers that have an order to capture them.
    captures: Captures
    # Given only to the server of a test suite.
    controls: SuiteControls | None = None

    @property
    def account_guard(self) -> BrowserGuard | None:
        """The guard of the account of the configuration, while its key is public."""
        return self.guard if self.key_is_public else None
