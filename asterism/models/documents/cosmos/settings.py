"""The properties of a container: checked, completed with the service's defaults, and echoed to clients.

Messages are the service's where its clients' tests look for them. Unknown properties are dropped, as the service drops
them. The partition key stays JSON here; the partitioning floor reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.models.documents.cosmos.indexing_policy import (
    check_full_text_indexes,
    check_spatial_indexes,
    complete_indexing_policy,
)
from asterism.models.documents.cosmos.policy_json import (
    as_integer,
    as_list,
    as_object,
    as_property_path,
    as_text,
    one_of,
    refuse,
)
from asterism.models.documents.cosmos.properties import RESERVED_PROPERTIES
from asterism.models.documents.cosmos.synthetic_keys import replaced_partition_key, without_counts
from asterism.models.documents.cosmos.time_to_live import TTL_SECONDS_MAX
from asterism.models.documents.cosmos.vector_policy import (
    check_vector_indexes,
    complete_vector_embeddings,
    embeddings_by_path,
)
from asterism.models.documents.indexes.paths import parse_property_path
from asterism.partitioning.partition_key import default_version
from asterism.values.item import validate_resource_name

ContainerProperties = dict[str, Any]

# Limits of the service for one container.
UNIQUE_KEYS_MAX = 10
UNIQUE_KEY_PATHS_MAX = 16
COMPUTED_PROPERTIES_MAX = 20

_FULL_TEXT_LANGUAGES = ("en-US", "fr-FR", "de-DE", "it-IT", "pt-BR", "pt-PT", "es-ES")
_CONFLICT_MODES = ("LastWriterWins", "Custom")
_GEOSPATIAL_TYPES = ("Geography", "Geometry")
_GEOGRAPHY = {"type": "Geography"}


def complete_container_properties(body: Mapping[str, Any]) -> ContainerProperties:
    """Return the properties of a container created with `body`; MalformedRequest says what is wrong with them."""
    properties = _completed(body)
    _check_spatial(properties)
    return properties


def _completed(body: Mapping[str, Any]) -> ContainerProperties:
    properties: ContainerProperties = {"id": validate_resource_name(body.get("id"))}
    for name, complete in _COMPLETIONS.items():
        given = body.get(name)
        if given is not None or name in _DEFAULTED:
            properties[name] = complete(given)
    policy = properties["indexingPolicy"]
    check_vector_indexes(policy.get("vectorIndexes", []), properties.get("vectorEmbeddingPolicy", {}))
    check_full_text_indexes(policy.get("fullTextIndexes", []), properties.get("fullTextPolicy", {}))
    return properties


def _check_spatial(properties: ContainerProperties) -> None:
    indexes, config = _spatial(properties)
    check_spatial_indexes(indexes, geospatial_type=config["type"])


def _spatial(properties: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    return properties["indexingPolicy"].get("spatialIndexes", []), properties.get("geospatialConfig", _GEOGRAPHY)


def replace_container_properties(before: Mapping[str, Any], body: Mapping[str, Any]) -> ContainerProperties:
    """Return the properties after `body` replaced `before`, or raise MalformedRequest.

    Properties that are fixed at creation may be left out of `body` and stay; all others that are left out are removed.
    """
    kept = {name: before[name] for name in _KEPT_ON_REPLACE if name in before and body.get(name) is None}
    merged = {**body, **kept}
    key = merged.get("partitionKey")
    if isinstance(key, Mapping) and "partitionKey" in before:
        merged["partitionKey"] = replaced_partition_key(before["partitionKey"], key)
    after = _completed(merged)
    check_replaceable(before, after)
    # A container that is older than these checks stays as it is.
    if _spatial(before) != _spatial(after):
        _check_spatial(after)
    return after


def check_replaceable(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Raise MalformedRequest when `after` changes what is fixed at creation. Both are completed properties."""
    for name, sentence in _FIXED_AT_CREATION.items():
        if _fixed_part(before, name) != _fixed_part(after, name):
            refuse(sentence)
    _check_kept_by_path(
        embeddings_by_path(before.get("vectorEmbeddingPolicy", {})),
        embeddings_by_path(after.get("vectorEmbeddingPolicy", {})),
        refusal="Paths in existing embedding policy cannot be modified in Collection Replace.",
        may_be_dropped=False,
    )
    _check_kept_by_path(
        {index["path"]: index for index in before["indexingPolicy"].get("vectorIndexes", [])},
        {index["path"]: index for index in after["indexingPolicy"].get("vectorIndexes", [])},
        refusal="Paths in existing vector indexing policy cannot be modified in Collection Replace.",
        may_be_dropped=True,
    )


def _fixed_part(properties: Mapping[str, Any], name: str) -> object:
    value = properties.get(name)
    return without_counts(value) if name == "partitionKey" and value is not None else value


def _check_kept_by_path(
    before: Mapping[str, Any], after: Mapping[str, Any], *, refusal: str, may_be_dropped: bool
) -> None:
    for path, entry in before.items():
        unchanged = after[path] == entry if path in after else may_be_dropped
        if not unchanged:
            refuse(refusal)


def _complete_partition_key(given: Any) -> dict[str, Any]:
    if given is None:
        # A fixed container: the service invents a path that no item has, and marks the key as its own.
        return {"paths": ["/_partitionKey"], "kind": "Hash", "version": 2, "systemKey": True}
    key = {"kind": "Hash", **as_object(given, what="partitionKey")}
    version = key.get("version")
    return {**key, "version": default_version(key["kind"]) if version is None else version}


def _complete_default_ttl(given: Any) -> int:
    seconds = as_integer(given, what="defaultTtl")
    if seconds != -1 and not 1 <= seconds <= TTL_SECONDS_MAX:
        refuse(f"The value of defaultTtl, {seconds}, must be -1 or a positive number of seconds.")
    return seconds


def _complete_analytical_ttl(given: Any) -> int:
    seconds = as_integer(given, what="analyticalStorageTtl")
    if not -1 <= seconds <= TTL_SECONDS_MAX:
        refuse(f"The value of analyticalStorageTtl, {seconds}, must be -1, 0 or a positive number of seconds.")
    return seconds


def _complete_unique_keys(given: Any) -> dict[str, Any]:
    policy = as_object(given, what="uniqueKeyPolicy")
    keys = as_list(policy.get("uniqueKeys", []), what="uniqueKeys")
    if len(keys) > UNIQUE_KEYS_MAX:
        refuse(f"The unique key policy has {len(keys)} keys, and the maximum is {UNIQUE_KEYS_MAX}.")
    return {"uniqueKeys": [{"paths": _unique_key_paths(key)} for key in keys]}


def _unique_key_paths(key: Any) -> list[str]:
    paths = as_list(as_object(key, what="uniqueKeys").get("paths"), what="paths")
    if not 1 <= len(paths) <= UNIQUE_KEY_PATHS_MAX:
        refuse(f"A unique key must have 1 to {UNIQUE_KEY_PATHS_MAX} paths, and one has {len(paths)}.")
    checked = [as_property_path(path, refusal=f"The unique key path '{path}' is invalid.") for path in paths]
    for path in checked:
        if not all(isinstance(segment, str) for segment in parse_property_path(path)):
            refuse(f"The unique key path '{path}' is invalid: an array has no single value to be unique.")
    return checked


def _complete_conflict_resolution(given: Any) -> dict[str, Any]:
    policy = as_object(given if given is not None else {}, what="conflictResolutionPolicy")
    mode = policy.get("mode", _CONFLICT_MODES[0])
    spelled = one_of(mode, _CONFLICT_MODES, refusal=f"The conflict resolution mode '{mode}' is invalid.")
    default_path = "/_ts" if spelled == _CONFLICT_MODES[0] else ""
    return {
        "mode": spelled,
        "conflictResolutionPath": policy.get("conflictResolutionPath") or default_path,
        "conflictResolutionProcedure": policy.get("conflictResolutionProcedure") or "",
    }


def _complete_geospatial(given: Any) -> dict[str, Any]:
    config = as_object(given if given is not None else {}, what="geospatialConfig")
    kind = config.get("type", _GEOSPATIAL_TYPES[0])
    return {"type": one_of(kind, _GEOSPATIAL_TYPES, refusal=f"The geospatial type '{kind}' is invalid.")}


def _complete_computed_properties(given: Any) -> list[dict[str, Any]]:
    computed = [as_object(entry, what="computedProperties") for entry in as_list(given, what="computedProperties")]
    if len(computed) > COMPUTED_PROPERTIES_MAX:
        refuse(f"A container has at most {COMPUTED_PROPERTIES_MAX} computed properties, not {len(computed)}.")
    names = [as_text(entry.get("name"), what="a computed property's name") for entry in computed]
    for name in names:
        if name in RESERVED_PROPERTIES or names.count(name) > 1:
            refuse(f"The name of the computed property '{name}' is reserved or given twice.")
    for entry in computed:
        query = as_text(entry.get("query"), what="a computed property's query")
        if query.upper().split()[:2] != ["SELECT", "VALUE"]:
            refuse(f"The query of the computed property '{entry['name']}' must begin with SELECT VALUE.")
    return computed


def _complete_full_text_policy(given: Any) -> dict[str, Any]:
    policy = as_object(given, what="fullTextPolicy")
    paths = as_list(policy.get("fullTextPaths", []), what="paths")
    entries = [as_object(entry, what="fullTextPaths") for entry in paths]
    for entry in (policy, *entries):
        language = entry.get("defaultLanguage" if entry is policy else "language")
        if language is not None and not _is_language(language):
            refuse(f"The Full Text Policy contains an unsupported language: {language}.")
    for entry in entries:
        path = entry.get("path")
        as_property_path(path, refusal=f"The Full Text Policy contains an invalid Path: {path}.")
    return {**policy, "fullTextPaths": entries}


def _is_language(language: Any) -> bool:
    # A number is a Windows locale id, such as 1033; the service accepts one.
    return language in _FULL_TEXT_LANGUAGES if isinstance(language, str) else type(language) is int


# A month: longer than the service keeps versions for (its continuous backup has 30 days at most).
_RETENTION_MINUTES_MAX = 30 * 24 * 60


def _complete_change_feed_policy(given: Any) -> dict[str, Any]:
    policy = as_object(given, what="changeFeedPolicy")
    minutes = policy.get("retentionDuration", 0)
    if isinstance(minutes, bool) or not isinstance(minutes, int) or not 0 <= minutes <= _RETENTION_MINUTES_MAX:
        refuse(
            "The changeFeedPolicy's 'retentionDuration' must be a whole number of minutes, at most "
            f"{_RETENTION_MINUTES_MAX}."
        )
    return policy


def _complete_encryption_policy(given: Any) -> dict[str, Any]:
    return as_object(given, what="clientEncryptionPolicy")


def _complete_incoming_edges(given: Any) -> bool:
    if type(given) is not bool:
        refuse("The value of incomingEdges must be true or false.")
    return bool(given)


# In the order in which a container shows them.
_COMPLETIONS: dict[str, Callable[[Any], Any]] = {
    "indexingPolicy": complete_indexing_policy,
    "partitionKey": _complete_partition_key,
    "defaultTtl": _complete_default_ttl,
    "uniqueKeyPolicy": _complete_unique_keys,
    "conflictResolutionPolicy": _complete_conflict_resolution,
    "geospatialConfig": _complete_geospatial,
    "computedProperties": _complete_computed_properties,
    "vectorEmbeddingPolicy": complete_vector_embeddings,
    "fullTextPolicy": _complete_full_text_policy,
    "changeFeedPolicy": _complete_change_feed_policy,
    "analyticalStorageTtl": _complete_analytical_ttl,
    "clientEncryptionPolicy": _complete_encryption_policy,
    # Not the service's: entries by which a graph finds the edges that lead to a vertex (models/documents/incoming).
    "incomingEdges": _complete_incoming_edges,
}
_DEFAULTED = frozenset({"indexingPolicy", "partitionKey", "conflictResolutionPolicy", "geospatialConfig"})
_KEPT_ON_REPLACE = (
    "id",
    "partitionKey",
    "uniqueKeyPolicy",
    "conflictResolutionPolicy",
    "geospatialConfig",
    "clientEncryptionPolicy",
    # The Python client's replace cannot send it, and must not end a retention by that. A duration of 0 ends it.
    "changeFeedPolicy",
    # No client's replace knows it. False ends it.
    "incomingEdges",
)
_FIXED_AT_CREATION = {
    "id": "The id of a container cannot be changed by a replace.",
    "partitionKey": "Document collection partition key cannot be changed.",
    "uniqueKeyPolicy": "The unique keys of a container cannot be changed.",
    "conflictResolutionPolicy": "The conflict resolution policy of a container cannot be changed.",
}
