"""The account of a request with all that its handlers need, and the few look-ups they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from asterism.access.keys import AccountKeys
from asterism.apis.captures.captures import Captures
from asterism.apis.nosql import headers
from asterism.apis.nosql.item_paths import ItemPaths
from asterism.apis.nosql.items.batch_turns import new_batch_turns
from asterism.apis.nosql.scripts.turns import ScriptTurns
from asterism.apis.nosql.session import ConsistencyRules
from asterism.apis.transports.http import HeaderList, Headers, Request
from asterism.clock import Clock
from asterism.errors import MalformedRequest, OwnerNotFound, PreconditionFailed
from asterism.keyspaces.routing.keyed_semaphore import KeyedSemaphore
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.limits import Limits
from asterism.models.collections.store import CollectionStore
from asterism.models.documents.container import Container
from asterism.models.documents.store import DocumentStore
from asterism.reading.result_sets import ResultSets
from asterism.scripts.runtime import ScriptRuntime
from asterism.values import resource_ids
from asterism.values.item import parse_item
from asterism.values.whole_numbers import whole_number

# Names may hold any character; in a header everything beyond ASCII is percent-encoded. Spaces stay: the Python client
# looks its session up by the plain name.
_ASCII_KEPT = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
_KNOWN_CONTAINERS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """The parts that every answer about a container's items repeats."""

    rid: str
    headers: HeaderList


@dataclass(frozen=True, slots=True)
class Context:
    store: DocumentStore
    account: str
    consistency: str
    consistency_rules: ConsistencyRules
    region: str
    limits: Limits
    clock: Clock
    # Permissions sign their tokens with them.
    keys: AccountKeys
    scripts: ScriptRuntime
    result_sets: ResultSets
    # Queries that the service refuses are answered.
    lenient_sql: bool = False
    # Collections of MongoDB, which can be read through this door.
    collections: CollectionStore | None = None
    # The address of the door through which they are written; None if it is not served.
    mongo_address: Callable[[], str | None] = lambda: None
    # Samples of requests, for containers that have an order to capture them.
    captures: Captures | None = None
    script_turns: ScriptTurns = field(default_factory=ScriptTurns)
    batch_turns: KeyedSemaphore = field(default_factory=new_batch_turns)
    _facts: dict[bytes, ContainerFacts] = field(default_factory=dict)
    # Containers by account, database and their own name, for as long as they are current (`Container.is_current`).
    containers: dict[tuple[str, str, str], Container] = field(default_factory=dict)
    item_paths: ItemPaths = field(default_factory=ItemPaths)

    def now(self) -> int:
        return self.clock.stored_seconds()

    def find_container(self, database: str, container: str) -> Container:
        """Find a container by its names or resource ids, and remember it among the known ones."""
        found = self.store.container_for_items(self.account, database, container)
        if found.record.name == container and self.store.database(self.account, database).name == database:
            # Only by names: a resource id gives way to a name that is equal to it. A name belongs to the same keyspace
            # until that is deleted, which shows in the container.
            if len(self.containers) >= _KNOWN_CONTAINERS_MAX:
                self.containers.clear()
            self.containers[self.account, database, container] = found
            self.item_paths.remember(database, container)
        return found

    def reading_router(self, given: Headers, session: Mapping[int, int] | None) -> PartitionRouter:
        """Return the way to the partitions for a read: to the newest, or to any copy that the session has reached."""
        router = self.store.services.router
        if not router.may_read_copies or self.consistency_rules.reads_newest(given):
            return router
        return router.relaxed(session)

    def facts(self, container: Container) -> ContainerFacts:
        known = self._facts.get(container.record.rid)
        return known if known is not None else self._learn(container)

    def _learn(self, container: Container) -> ContainerFacts:
        record = container.record
        database = self.store.catalog.databases.get(record.database_rid)
        if database is None:
            raise OwnerNotFound(kind="container", name=record.name)
        rid = resource_ids.to_text(record.rid)
        facts = ContainerFacts(
            rid,
            [
                *headers.COMMON,
                (headers.ALT_CONTENT_PATH, header_path(f"dbs/{database.name}/colls/{record.name}")),
                (headers.CONTENT_PATH, rid),
            ],
        )
        # Resource ids are never used twice, so entries of deleted containers are only dead weight.
        if len(self._facts) >= _KNOWN_CONTAINERS_MAX:
            self._facts.clear()
        self._facts[record.rid] = facts
        return facts


def header_path(path: str) -> str:
    return path if path.isascii() and "%" not in path else quote(path, safe=_ASCII_KEPT)


def json_object(request: Request, context: Context) -> dict[str, object]:
    return parse_item(request.body, bytes_max=context.limits.request_bytes_max)


def check_if_match(given: Headers, etag: str) -> None:
    wanted = given.get(headers.IF_MATCH)
    if wanted is not None and wanted not in (etag, "*"):
        raise PreconditionFailed


def is_not_modified(given: Headers, etag: str) -> bool:
    wanted = given.get(headers.IF_NONE_MATCH)
    return wanted is not None and wanted in (etag, "*")


def check_common_headers(given: Headers) -> None:
    """Check headers that change nothing here and yet must make sense, as they must for the service."""
    bucket = given.get(headers.THROUGHPUT_BUCKET)
    # The service has buckets 1 to 5 and keeps room for more; the clients' own tests use 256 as the first bad one.
    if bucket is not None and not whole_number(bucket, maximum=255):
        _refuse_value(headers.THROUGHPUT_BUCKET, bucket)
    priority = given.get(headers.PRIORITY_LEVEL)
    if priority is not None and priority not in ("High", "Low"):
        _refuse_value(headers.PRIORITY_LEVEL, priority)


def _refuse_value(name: str, value: str) -> None:
    raise MalformedRequest(reason=f"The value '{value[:64]}' specified for the header '{name}' is invalid.")


def read_only_words(address: str | None) -> str:
    """Return why collections of MongoDB are not changed through this door, and where they are."""
    where = "The server has no MongoDB port; start it with --apis mongo"
    if address is not None:
        where = f"Use a MongoDB client at mongodb://{address}/"
    return f"MongoDB collections are read-only through this endpoint. {where} to change them."
