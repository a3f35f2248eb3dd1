"""The profile of the service's containers: their settings are the JSON that its clients see, their items its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.models.documents.codec import DocumentCodec
from asterism.models.documents.cosmos.codec import CosmosCodec
from asterism.models.documents.cosmos.edges import may_name_sinks, sink_rule
from asterism.models.documents.cosmos.index_rules import UNTURNED_COMPOSITES, compile_rules
from asterism.models.documents.cosmos.policy_json import refuse
from asterism.models.documents.cosmos.properties import ID
from asterism.models.documents.cosmos.settings import complete_container_properties, replace_container_properties
from asterism.models.documents.cosmos.synthetic_keys import SYNTHETIC, computed_key_of, shown_partition_key
from asterism.models.documents.indexes.paths import parse_property_path
from asterism.models.documents.indexes.rules import IndexingRules
from asterism.models.documents.settings import (
    INCOMING_EDGES_DUE,
    ComputedProperty,
    ContainerSettings,
    NewContainer,
    StoredSettings,
)
from asterism.models.documents.unique_keys import UniqueKeys
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.values.item import validate_resource_name

_INDEXING_POLICY: Final = "indexingPolicy"
_PARTITION_KEY: Final = "partitionKey"
_CHANGE_FEED_POLICY: Final = "changeFeedPolicy"
_INCOMING_EDGES: Final = "incomingEdges"
# The parts of an indexing policy that decide over index entries.
_DECISIVE: Final = ("indexingMode", "includedPaths", "excludedPaths", "compositeIndexes", "spatialIndexes")


class CosmosProfile:
    """Shared by every door whose containers are the service's: NoSQL and the admin door."""

    def describes(self, record: KeyspaceRecord) -> bool:
        return _INDEXING_POLICY in record.settings

    def codec(self, record: KeyspaceRecord) -> CosmosCodec:
        return CosmosCodec(record.rid)

    def compile(self, record: KeyspaceRecord, codec: DocumentCodec) -> ContainerSettings:
        settings = record.settings
        policy = settings.get(_INDEXING_POLICY, {})
        unique_keys = (settings.get("uniqueKeyPolicy") or {}).get("uniqueKeys", ())
        default_ttl = settings.get("defaultTtl")
        return ContainerSettings(
            rules=compile_rules(policy, earlier=record.catching_up.get("policies", ())),
            unique_keys=UniqueKeys.of_paths(codec.order, [key["paths"] for key in unique_keys]),
            default_ttl_seconds=default_ttl if type(default_ttl) is int else None,
            versions_kept_seconds=_versions_kept_seconds(settings),
            vector_distances={
                parse_property_path(embedding["path"]): str(embedding["distanceFunction"])
                for embedding in (settings.get("vectorEmbeddingPolicy") or {}).get("vectorEmbeddings") or ()
            },
            computed_properties=tuple(
                ComputedProperty(str(entry["name"]), str(entry["query"]))
                for entry in settings.get("computedProperties") or ()
            ),
            computed_key=computed_key_of(settings.get(_PARTITION_KEY, {})),
            sink_rule=sink_rule(record.definition) if self.keeps_incoming_edges(settings) else None,
            has_all_incoming_edges=self.keeps_incoming_edges(settings) and INCOMING_EDGES_DUE not in record.catching_up,
        )

    # --- what clients ask for ---------------------------------------------------------------------------------------

    def check_name(self, name: object) -> str:
        return validate_resource_name(name)

    def new_container(self, body: Mapping[str, Any]) -> NewContainer:
        settings = complete_container_properties(body)
        definition = PartitionKeyDefinition.parse(settings[_PARTITION_KEY])
        settings[_PARTITION_KEY] = shown_partition_key(definition, settings[_PARTITION_KEY])
        _check_incoming_edges(settings)
        return NewContainer(settings[ID], definition, settings)

    def replaced(self, before: StoredSettings, body: Mapping[str, Any]) -> StoredSettings:
        settings = replace_container_properties(before, body)
        _check_incoming_edges(settings)
        return settings

    # --- what the server changes by itself --------------------------------------------------------------------------

    def with_key(
        self,
        settings: StoredSettings,
        *,
        name: str,
        paths: Sequence[str],
        synthetic: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        kind = "Hash" if len(paths) == 1 else "MultiHash"
        key: dict[str, Any] = {"paths": list(paths), "kind": kind, "version": 2}
        if synthetic is not None:
            key[SYNTHETIC] = synthetic
        described = {**settings, ID: name, _PARTITION_KEY: key}
        if settings.get(_INCOMING_EDGES) and not _may_keep_incoming_edges(key):
            del described[_INCOMING_EDGES]
        return described

    def with_name(self, settings: StoredSettings, *, name: str) -> Mapping[str, Any]:
        return {**settings, ID: name}

    def with_versions_kept(self, settings: StoredSettings, *, minutes: int) -> Mapping[str, Any]:
        policy = {**settings.get(_CHANGE_FEED_POLICY, {}), "retentionDuration": minutes}
        return {**settings, _CHANGE_FEED_POLICY: policy}

    def index_policy(self, settings: StoredSettings) -> Mapping[str, Any]:
        policy: Mapping[str, Any] = settings[_INDEXING_POLICY]
        return policy

    def gives_same_entries(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        return all((before.get(name) or []) == (after.get(name) or []) for name in _DECISIVE)

    def keeps_incoming_edges(self, settings: StoredSettings) -> bool:
        return settings.get(_INCOMING_EDGES) is True

    def computes_key(self, settings: StoredSettings) -> bool:
        return SYNTHETIC in settings.get(_PARTITION_KEY, {})

    def conversion_rules(self, record: KeyspaceRecord) -> IndexingRules | None:
        policy = record.settings[_INDEXING_POLICY]
        written = (*record.catching_up.get("policies", ()), policy)
        composites = [paths for earlier in written for paths in earlier.get("compositeIndexes") or ()]
        if not record.catching_up and not any(_descends(paths[0]) for paths in composites):
            return None
        return compile_rules(policy, earlier=[{**earlier, UNTURNED_COMPOSITES: True} for earlier in written])


def _check_incoming_edges(settings: Mapping[str, Any]) -> None:
    if settings.get(_INCOMING_EDGES) and not _may_keep_incoming_edges(settings[_PARTITION_KEY]):
        refuse(
            "'incomingEdges' needs a container whose partition key is one property at the top of its items, and not a "
            "synthetic one: edges name the key of the vertex they lead to by one value."
        )


def _may_keep_incoming_edges(partition_key: Mapping[str, Any]) -> bool:
    return may_name_sinks(PartitionKeyDefinition.parse(partition_key)) and SYNTHETIC not in partition_key


def _versions_kept_seconds(settings: StoredSettings) -> int | None:
    """Return the retention of the change feed policy, which has minutes; None if it keeps no versions."""
    policy = settings.get(_CHANGE_FEED_POLICY)
    minutes = policy.get("retentionDuration") if isinstance(policy, Mapping) else None
    if isinstance(minutes, bool) or not isinstance(minutes, int) or minutes <= 0:
        return None
    return minutes * 60


def _descends(path: Mapping[str, Any]) -> bool:
    return str(path.get("order", "ascending")).lower() == "descending"
