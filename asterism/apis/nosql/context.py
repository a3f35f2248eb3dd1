"""What every handler of the door is given, and the few look-ups they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from asterism.access.keys import AccountKeys
from asterism.apis.http import HeaderList, Headers, Request
from asterism.apis.nosql import headers
from asterism.apis.nosql.batch_turns import new_batch_turns
from asterism.apis.nosql.script_turns import ScriptTurns
from asterism.apis.nosql.session import ConsistencyRules
from asterism.clock import Clock
from asterism.documents.container import Container
from asterism.documents.store import DocumentStore
from asterism.errors import ContainerRecreated, MalformedRequest, OwnerNotFound, PreconditionFailed, ResourceNotFound
from asterism.keyspaces.lines import Lines
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.records import DatabaseRecord
from asterism.limits import Limits
from asterism.query.result_sets import ResultSets
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
    """What every answer about a container's items repeats."""

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
    # Whether queries that the service refuses are answered.
    lenient_sql: bool = False
    script_turns: ScriptTurns = field(default_factory=ScriptTurns)
    batch_turns: Lines = field(default_factory=new_batch_turns)
    _facts: dict[bytes, ContainerFacts] = field(default_factory=dict)

    def now(self) -> int:
        return self.clock.stored_seconds()

    def database(self, parts: list[str]) -> DatabaseRecord:
        return self.store.database(self.account, parts[1])

    def owning_database(self, parts: list[str]) -> DatabaseRecord:
        """The database as the owner of containers: its absence is another error than that of one asked for."""
        try:
            return self.store.database(self.account, parts[1])
        except ResourceNotFound as missing:
            raise OwnerNotFound(kind=missing.kind, name=missing.name) from None

    def container(self, parts: list[str]) -> Container:
        return self.store.container(self.owning_database(parts), parts[3])

    def items_container(self, told: Headers, parts: list[str]) -> Container:
        """The container whose items a request is about, if it is still the one that the client means."""
        container = self.store.container_for_items(self.account, parts[1], parts[3])
        intended = told.get(headers.INTENDED_CONTAINER_RID)
        if intended is not None and intended != self.facts(container).rid:
            raise ContainerRecreated(name=container.record.name)
        return container

    def reading_owner(self, told: Headers, session: Mapping[int, int] | None) -> Owner:
        """The way to the partitions for a read: to the newest, or to any copy that has seen what the session has."""
        owner = self.store.tools.owner
        return owner if self.consistency_rules.reads_newest(told) else owner.relaxed(session)

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


def check_if_match(told: Headers, etag: str) -> None:
    wanted = told.get(headers.IF_MATCH)
    if wanted is not None and wanted not in (etag, "*"):
        raise PreconditionFailed


def is_not_modified(told: Headers, etag: str) -> bool:
    wanted = told.get(headers.IF_NONE_MATCH)
    return wanted is not None and wanted in (etag, "*")


def check_common_headers(told: Headers) -> None:
    """Headers that change nothing here and yet must make sense, as they must for the service."""
    bucket = told.get(headers.THROUGHPUT_BUCKET)
    # The service has buckets 1 to 5 and keeps room for more; the clients' own tests use 256 as the first bad one.
    if bucket is not None and not whole_number(bucket, maximum=255):
        _refuse_value(headers.THROUGHPUT_BUCKET, bucket)
    priority = told.get(headers.PRIORITY_LEVEL)
    if priority is not None and priority not in ("High", "Low"):
        _refuse_value(headers.PRIORITY_LEVEL, priority)


def _refuse_value(name: str, value: str) -> None:
    raise MalformedRequest(reason=f"The value '{value[:64]}' specified for the header '{name}' is invalid.")
