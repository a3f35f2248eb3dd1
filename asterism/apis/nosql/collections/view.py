"""Collections of MongoDB as the protocol's databases and containers: names, resource ids, keys and policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from asterism.apis.nosql import headers
from asterism.apis.nosql.context import ContainerFacts, Context, header_path
from asterism.errors import OwnerNotFound, ResourceNotFound
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.models.collections.collection import Collection
from asterism.models.collections.item_view import item_key, item_path, item_rid
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.shared_names import SharedName, find_database, shown_name
from asterism.models.collections.store import ACCOUNT_PREFIX, CollectionStore
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.values import resource_ids

_ORDERS: Final = {True: "descending", False: "ascending"}
_SPATIAL_TYPES: Final = ["Point", "LineString", "Polygon", "MultiPolygon"]


@dataclass(frozen=True, slots=True)
class CollectionView:
    """A collection under the names of a request."""

    database: SharedName
    collection: Collection
    record: CollectionRecord
    rid: bytes
    definition: PartitionKeyDefinition
    facts: ContainerFacts

    @property
    def keyspace_record(self) -> KeyspaceRecord:
        """The record of the keyspace, under the resource id of the collection."""
        return replace(self.collection.keyspace.record, rid=self.rid)


def collections_of(context: Context) -> CollectionStore:
    assert context.collections is not None, "only a door with collections looks for them"
    return context.collections


def database_of(context: Context, name_or_rid: str) -> SharedName:
    """Find a database of collections by name or by resource id; ResourceNotFound."""
    catalog = context.store.catalog
    found = find_database(catalog, context.account, name_or_rid)
    if found is not None:
        return found
    rid = resource_ids.from_text(name_or_rid)
    record = None if rid is None else catalog.databases.get(rid)
    if record is None or record.account != ACCOUNT_PREFIX + context.account:
        raise ResourceNotFound(kind="database", name=name_or_rid)
    return SharedName(shown_name(catalog, context.account, record), record)


def views_of(context: Context, database: SharedName) -> list[CollectionView]:
    """Return all collections of a database, by name. Views of MongoDB are queries, and not shown."""
    store = collections_of(context)
    found = [
        _view(database, record, collection)
        for record in store.records(context.account, database.record.name)
        if (collection := store.find(context.account, database.record.name, record.name)) is not None
    ]
    return sorted(found, key=lambda view: view.record.name)


def view_of(context: Context, database_name: str, name_or_rid: str) -> CollectionView:
    """Find a collection by names or by resource ids; OwnerNotFound, ResourceNotFound."""
    try:
        database = database_of(context, database_name)
    except ResourceNotFound as missing:
        raise OwnerNotFound(kind=missing.kind, name=missing.name) from None
    store = collections_of(context)
    record = store.record(context.account, database.record.name, name_or_rid)
    collection = store.find(context.account, database.record.name, name_or_rid)
    if record is not None and collection is not None:
        return _view(database, record, collection)
    rid = resource_ids.from_text(name_or_rid)
    found = next((view for view in views_of(context, database) if view.rid == rid), None) if rid else None
    if found is None:
        raise ResourceNotFound(kind="container", name=name_or_rid)
    return found


def _view(database: SharedName, record: CollectionRecord, collection: Collection) -> CollectionView:
    keyspace = collection.keyspace.record
    rid = item_rid(record, keyspace)
    rid_text = resource_ids.to_text(rid)
    path = header_path(f"dbs/{database.shown}/colls/{record.name}")
    common = [*headers.COMMON, (headers.ALT_CONTENT_PATH, path), (headers.CONTENT_PATH, rid_text)]
    return CollectionView(
        database, collection, record, rid, item_key(record, keyspace), ContainerFacts(rid_text, common)
    )


# --- settings -------------------------------------------------------------------------------------------------------


def container_settings(view: CollectionView) -> dict[str, Any]:
    return {
        "id": view.record.name,
        "partitionKey": view.definition.to_json(),
        "indexingPolicy": indexing_policy(view.record.indexes),
    }


def indexing_policy(indexes: tuple[IndexRecord, ...]) -> dict[str, Any]:
    """Return the indexes of a collection in the protocol's words."""
    included: list[dict[str, Any]] = []
    composite: list[list[dict[str, Any]]] = []
    spatial: list[dict[str, Any]] = []
    for index in indexes:
        if not index.is_ready or index.is_hidden:
            continue
        if any(isinstance(direction, str) and direction.startswith("2d") for direction in index.key.values()):
            spatial += [
                {"path": f"{_path(name)}/*", "types": _SPATIAL_TYPES}
                for name, direction in index.key.items()
                if isinstance(direction, str)
            ]
        elif len(index.key) == 1:
            included += [{"path": _included_path(name)} for name in index.key]
        else:
            composite.append([_composite_entry(name, direction) for name, direction in index.key.items()])
    policy: dict[str, Any] = {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": included,
        "excludedPaths": [{"path": "/*"}] if {"path": "/*"} not in included else [],
    }
    more: Mapping[str, list[Any]] = {"compositeIndexes": composite, "spatialIndexes": spatial}
    return policy | {name: entries for name, entries in more.items() if entries}


def _path(name: str) -> str:
    return item_path(name.split("."))


def _included_path(name: str) -> str:
    before, wildcard, _ = name.partition("$**")
    if not wildcard:
        return f"{_path(name)}/?"
    return f"{_path(before.rstrip('.'))}/*" if before else "/*"


def _composite_entry(name: str, direction: object) -> dict[str, Any]:
    is_descending = isinstance(direction, (int, float)) and direction < 0
    return {"path": _path(name), "order": _ORDERS[is_descending]}
