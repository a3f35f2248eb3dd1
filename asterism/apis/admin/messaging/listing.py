"""The entities of messaging namespaces, a page at a time: hubs, queues, topics with their subscriptions.

Counts are read for the page alone: a namespace may have thousands of entities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.messaging.counts import ChannelCounts, counts_of, describe_channels
from asterism.apis.admin.messaging.fields import is_in_scope
from asterism.apis.admin.messaging.partitions import closed_fragments
from asterism.apis.admin.parameters import query_parameters, whole_number_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.admin.sizes import PartitionSizes
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest
from asterism.models.messages.descriptions import SubscriptionDescription, TopicDescription
from asterism.models.messages.entity import Entity
from asterism.models.namespaces.store import EntityRecord
from asterism.values.json.text import dumps

ROWS_DEFAULT: Final = 200
ROWS_MAX: Final = 1000
_OFFSET_MAX: Final = 10**9
_KINDS: Final = ("hub", "queue", "topic", "subscription")


@dataclass(frozen=True, slots=True)
class _Row:
    record: EntityRecord
    # None for a hub.
    entity: Entity | None = None
    # None for the entity itself.
    subscription: SubscriptionDescription | None = None

    @property
    def kind(self) -> str:
        return self.record.kind if self.subscription is None else "subscription"

    @property
    def path(self) -> str:
        if self.subscription is None:
            return self.record.name
        return f"{self.record.name}/subscriptions/{self.subscription.name}"


async def show_entities(services: AdminServices, request: Request) -> Response:
    """List the entities of ?namespace=, or of all, with ?kinds=hub,queue&search=&offset=&limit=."""
    parameters = query_parameters(request)
    namespaces = [name for name in services.namespaces.namespaces() if is_in_scope(services, name)]
    kinds = _kinds_asked(parameters)
    search = parameters.get("search", "").casefold()
    offset = whole_number_of(parameters, "offset", default=0, minimum=0, maximum=_OFFSET_MAX)
    limit = whole_number_of(parameters, "limit", default=ROWS_DEFAULT, minimum=1, maximum=ROWS_MAX)
    wanted = [name for name in namespaces if parameters.get("namespace", name) == name]
    rows = [row for row in _rows(services, wanted) if row.kind in kinds and search in row.path.casefold()]
    shown = rows[offset:][:limit]
    answer = {
        "namespaces": namespaces,
        "total": len(rows),
        "entities": await _described(services, shown),
    }
    return Response(200, JSON_HEADERS, dumps(answer))


def _kinds_asked(parameters: Mapping[str, str]) -> list[str]:
    kinds = [kind for kind in parameters.get("kinds", "").split(",") if kind]
    if not set(kinds) <= set(_KINDS):
        raise MalformedRequest(reason=f"'kinds' must be some of {', '.join(_KINDS)}.")
    return kinds or list(_KINDS)


def _rows(services: AdminServices, namespaces: list[str]) -> Iterator[_Row]:
    for namespace in namespaces:
        for record in services.namespaces.entities_of(namespace, "hub", "queue", "topic"):
            if record.kind == "hub":
                yield _Row(record)
                continue
            entity = services.messages.find(namespace, record.name)
            if entity is None:
                continue
            yield _Row(record, entity)
            if isinstance(entity.description, TopicDescription):
                for subscription in sorted(entity.description.subscriptions.values(), key=lambda each: each.number):
                    yield _Row(record, entity, subscription)


async def _described(services: AdminServices, rows: list[_Row]) -> list[dict[str, Any]]:
    known: dict[str, ChannelCounts | None] = {}
    sizes = await PartitionSizes(services.router).of_keyspaces(
        [row.record.keyspace for row in rows if row.entity is None]
    )
    described = []
    for row in rows:
        entry: dict[str, Any] = {
            "namespace": row.record.namespace,
            "kind": row.kind,
            "path": row.path,
            "partitions": row.record.partition_count,
            "closed": len(closed_fragments(row.entity)),
        }
        if row.entity is None:
            size = sizes[row.record.keyspace.record.rid]
            entry |= {
                "status": row.record.description.get("status", "Active"),
                "counts": None,
                "bytes": None if size is None else size.bytes,
                "events": None if size is None else size.items,
            }
        else:
            key = f"{row.record.namespace}/{row.record.name}"
            if key not in known:
                known[key] = await counts_of(row.entity)
            counts, status = known[key], row.subscription or row.entity.description
            number = 0 if row.subscription is None else row.subscription.number
            described_counts = None if counts is None else describe_channels(counts, number)
            entry |= {
                "status": status.status,
                "counts": described_counts,
                "bytes": None if described_counts is None else described_counts["bytes"],
                "events": None,
            }
        described.append(entry)
    return described
