"""Collections of MongoDB for operators: by the names that clients give, with their indexes, options and sizes.

Collections without a shard key share the keyspace of their database, its home, which is `system.home` where partitions
are named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import query_parameters
from asterism.apis.admin.services import AdminServices
from asterism.apis.admin.throughput import describe_throughput
from asterism.apis.transports.http import Request, Response
from asterism.errors import ResourceNotFound
from asterism.models.collections.collection import Collection
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.shared_names import SharedName, find_database, list_databases
from asterism.values.bson.json_view import to_json
from asterism.values.json.text import dumps

# Fields of an index that its key pattern shows already, or that no reader needs.
_SHOWN_ELSEWHERE: Final = frozenset({"v", "key", "name"})


@dataclass(frozen=True, slots=True)
class _Named:
    database: SharedName
    record: CollectionRecord
    # None for a view.
    collection: Collection | None


async def show_collections(services: AdminServices, request: Request) -> Response:
    """Describe the collections of ?database=, or of all databases; ?container= names a single one."""
    parameters = query_parameters(request)
    found = list(_collections_asked(services, parameters.get("database"), parameters.get("container")))
    if not found and "container" in parameters:
        raise ResourceNotFound(kind="collection", name=parameters["container"])
    described = [await describe_collection(services, named.database, named.record, named.collection) for named in found]
    return Response(200, JSON_HEADERS, dumps({"collections": described}))


def _collections_asked(services: AdminServices, database: str | None, name: str | None) -> Iterator[_Named]:
    catalog, store = services.store.catalog, services.collection_store
    if database is None:
        databases = sorted(list_databases(catalog, services.account))
    else:
        found = find_database(catalog, services.account, database)
        if found is None:
            raise ResourceNotFound(kind="database", name=database)
        databases = [found]
    for shared in databases:
        for record in store.records(services.account, shared.record.name):
            if name is None or record.name == name:
                yield _Named(shared, record, store.find(services.account, shared.record.name, record.name))


async def describe_collection(
    services: AdminServices, database: SharedName, record: CollectionRecord, collection: Collection | None
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "account": services.account,
        "database": database.shown,
        # As MongoDB's clients name it.
        "client_database": database.record.name,
        "name": record.name,
        "type": "view" if collection is None else "collection",
        "shard_key": to_json(record.shard_pattern),
        "options": to_json(record.options),
        "indexes": [describe_index(index) for index in record.indexes],
    }
    if collection is not None:
        size = await collection.size()
        described |= {
            "partitions": len(collection.keyspace.record.map.ranges),
            "throughput": describe_throughput(services, collection.keyspace),
            "bytes": size.bytes,
            "items": size.items,
        }
    return described


def describe_index(index: IndexRecord) -> dict[str, Any]:
    options = {name: value for name, value in index.options.items() if name not in _SHOWN_ELSEWHERE}
    return {
        "name": index.name,
        "key": to_json(index.key),
        "options": to_json(options),
        "state": "ready" if index.is_ready else "building",
    }
