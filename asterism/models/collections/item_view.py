"""Collections as containers, for readers that know items: resource ids and partition keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.models.collections.layout import body_of
from asterism.models.collections.records import HOME, MARK, CollectionRecord, HomeSettings
from asterism.models.collections.rules import at_path
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.values.bson.codec import decode
from asterism.values.bson.json_view import shown_name, to_json
from asterism.values.bson.types import MISSING
from asterism.values.resource_ids import collection_rid

# Collections without a shard key share a keyspace, so that they are numbered apart from keyspaces.
_NUMBERS_OF_SHARED: Final = 2**30
# Of a container without a partition key, as the service shows it.
NO_KEY: Final = PartitionKeyDefinition(paths=("/_partitionKey",), system_key=True)


def item_rid(record: CollectionRecord, keyspace: KeyspaceRecord) -> bytes:
    """Return the resource id of a collection, which no other collection and no container has."""
    if record.shard_key:
        return keyspace.rid
    return collection_rid(keyspace.database_rid, _NUMBERS_OF_SHARED + record.number)


def item_key(record: CollectionRecord, keyspace: KeyspaceRecord) -> PartitionKeyDefinition:
    """Return the partition key with the paths that items have: fields named like system properties have other names
    there."""
    return item_definition(keyspace) if record.shard_key else NO_KEY


def item_definition(keyspace: KeyspaceRecord) -> PartitionKeyDefinition:
    """Return the partition key of a sharded collection, with the paths that items have."""
    paths = tuple(item_path(path[1:].split("/")) for path in keyspace.definition.paths)
    return replace(keyspace.definition, paths=paths)


def logical_key(keyspace: KeyspaceRecord, point: bytes, stored: bytes) -> list[Any]:
    """Return the name of a logical partition, as JSON: the values of its shard key, which a document of it shows, or
    the collection that it is."""
    settings, definition = keyspace.settings, keyspace.definition
    if settings[MARK] == HOME:
        records = HomeSettings.from_settings(settings).collections.items()
        numbers = {name: CollectionRecord.from_text("", name, text).number for name, text in records}
        return [name for name, number in numbers.items() if storage_point(definition, (str(number),)) == point]
    shard_key = CollectionRecord.from_text("", settings["name"], settings["collection"]).shard_key
    document = decode(body_of(stored))
    values = [at_path(document, path.split(".")) for path in shard_key]
    # As for containers: JSON has no absent value.
    return [{} if value is MISSING else to_json(value) for value in values]


def item_path(names: list[str]) -> str:
    """Return the path of a field in items."""
    first, *rest = names
    return "/" + "/".join([shown_name(first), *rest])
