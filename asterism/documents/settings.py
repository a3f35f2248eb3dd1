"""A container's properties: checked, completed with the service's defaults, and echoed to whoever reads it.

The sentences of the refusals are the service's where its clients' tests look for them. Properties that nobody knows
are dropped, as the service drops them. The partition key stays JSON here; the partitioning floor reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from asterism.documents.indexes import Coverage, parse_policy_path, parse_property_path
from asterism.documents.time_to_live import TTL_SECONDS_MAX
from asterism.errors import MalformedRequest
from asterism.values.item import validate_resource_name

ContainerProperties = dict[str, Any]

# Limits of the service for one container.
UNIQUE_KEYS_MAX = 10
UNIQUE_KEY_PATHS_MAX = 16
COMPOSITE_INDEX_PATHS_MIN = 2
COMPOSITE_INDEX_PATHS_MAX = 8
COMPUTED_PROPERTIES_MAX = 20
VECTOR_DIMENSIONS_MAX = 4096
QUANTIZATION_BYTES_MAX = 512
SEARCH_LIST_SIZES = range(25, 501)
SHARD_PATHS_MAX = 1

_ETAG_PATH = '/"_etag"/?'
_SPATIAL_TYPES = ("Point", "LineString", "Polygon", "MultiPolygon")
_VECTOR_DATA_TYPES = ("float32", "float16", "int8", "uint8")
_VECTOR_DISTANCE_FUNCTIONS = ("euclidean", "cosine", "dotproduct")
_VECTOR_INDEX_TYPES = ("flat", "quantizedFlat", "diskANN")
_QUANTIZER_TYPES = ("product", "spherical")
_EMBEDDING_AUTH_TYPES = ("ApiKey", "Entra")
_FULL_TEXT_LANGUAGES = ("en-US", "fr-FR", "de-DE", "it-IT", "pt-BR", "pt-PT", "es-ES")
_CONFLICT_MODES = ("LastWriterWins", "Custom")
_GEOSPATIAL_TYPES = ("Geography", "Geometry")
_RESERVED_PROPERTY_NAMES = frozenset({"id", "_rid", "_ts", "_etag", "_self", "_attachments"})


def complete_container_properties(body: Mapping[str, Any]) -> ContainerProperties:
    """The properties a container created with `body` has; MalformedRequest says what is wrong with them."""
    properties: ContainerProperties = {"id": validate_resource_name(body.get("id"))}
    for name, complete in _COMPLETIONS.items():
        given = body.get(name)
        if given is not None or name in _DEFAULTED:
            properties[name] = complete(given)
    policy = properties["indexingPolicy"]
    _check_vector_indexes(policy.get("vectorIndexes", []), properties.get("vectorEmbeddingPolicy", {}))
    _check_full_text_indexes(policy.get("fullTextIndexes", []), properties.get("fullTextPolicy", {}))
    return properties


def replace_container_properties(before: Mapping[str, Any], body: Mapping[str, Any]) -> ContainerProperties:
    """The properties after `body` replaced `before`, or MalformedRequest.

    What is fixed at creation may be left out of `body` and stays; everything else that is left out is taken away.
    """
    kept = {name: before[name] for name in _KEPT_ON_REPLACE if name in before and body.get(name) is None}
    merged = {**body, **kept}
    key = merged.get("partitionKey")
    if isinstance(key, Mapping) and "partitionKey" in before:
        merged["partitionKey"] = {"version": before["partitionKey"].get("version"), **key}
    after = complete_container_properties(merged)
    check_replaceable(before, after)
    return after


def check_replaceable(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """MalformedRequest when `after` changes what is fixed at creation. Both are completed properties."""
    for name, sentence in _FIXED_AT_CREATION.items():
        if before.get(name) != after.get(name):
            _refuse(sentence)
    _check_kept_by_path(
        _embeddings_by_path(before.get("vectorEmbeddingPolicy", {})),
        _embeddings_by_path(after.get("vectorEmbeddingPolicy", {})),
        refusal="Paths in existing embedding policy cannot be modified in Collection Replace.",
        may_be_dropped=False,
    )
    _check_kept_by_path(
        {index["path"]: index for index in before["indexingPolicy"].get("vectorIndexes", [])},
        {index["path"]: index for index in after["indexingPolicy"].get("vectorIndexes", [])},
        refusal="Paths in existing vector indexing policy cannot be modified in Collection Replace.",
        may_be_dropped=True,
    )


def _check_kept_by_path(
    before: Mapping[str, Any], after: Mapping[str, Any], *, refusal: str, may_be_dropped: bool
) -> None:
    for path, entry in before.items():
        unchanged = after[path] == entry if path in after else may_be_dropped
        if not unchanged:
            _refuse(refusal)


# --- reading JSON that may be anything ------------------------------------------------------------------------------


def _refuse(reason: str) -> NoReturn:
    raise MalformedRequest(reason=reason)


def _object(value: Any, *, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(f"One of the specified inputs is invalid: {what} must be an object.")
    return dict(value)


def _list(value: Any, *, what: str) -> list[Any]:
    if not isinstance(value, list):
        _refuse(f"One of the specified inputs is invalid: {what} must be an array.")
    return list(value)


def _text(value: Any, *, what: str) -> str:
    if not isinstance(value, str) or not value:
        _refuse(f"One of the specified inputs is invalid: {what} must be a non-empty string.")
    return value


def _integer(value: Any, *, what: str) -> int:
    if type(value) is not int:
        _refuse(f"One of the specified inputs is invalid: {what} must be a whole number.")
    return value


def _one_of(value: Any, allowed: Collection[str], *, refusal: str) -> str:
    """The allowed spelling of `value`, whatever its case."""
    spelled = {text.lower(): text for text in allowed}.get(value.lower()) if isinstance(value, str) else None
    if spelled is None:
        _refuse(refusal)
    return spelled


def _property_path(value: Any, *, refusal: str) -> str:
    if not isinstance(value, str) or not value.startswith("/") or value == "/":
        _refuse(refusal)
    parse_property_path(value)
    return value


# --- the indexing policy --------------------------------------------------------------------------------------------


def complete_indexing_policy(given: Any) -> dict[str, Any]:
    """The policy as it is stored and echoed: with defaults, without what newer versions of the service ignore."""
    policy = _object(given if given is not None else {}, what="indexingPolicy")
    # The service has turned "lazy" into "consistent" for all new containers.
    mode = _one_of(
        policy.get("indexingMode", "consistent"),
        ("consistent", "none", "lazy"),
        refusal=f"The indexing mode '{policy.get('indexingMode')}' is invalid.",
    ).replace("lazy", "consistent")
    automatic = policy.get("automatic", True)
    if not isinstance(automatic, bool):
        _refuse("One of the specified inputs is invalid: automatic must be true or false.")
    included, excluded = ([], []) if mode == "none" else _complete_paths(policy)
    completed: dict[str, Any] = {
        "indexingMode": mode,
        "automatic": automatic and mode != "none",
        "includedPaths": included,
        "excludedPaths": excluded,
    }
    for name, complete in _INDEX_COMPLETIONS.items():
        if policy.get(name) is not None:
            completed[name] = [complete(entry) for entry in _list(policy[name], what=name)]
    return completed


def _complete_paths(policy: Mapping[str, Any]) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    included = _paths(policy, "includedPaths")
    excluded = _paths(policy, "excludedPaths")
    if not included and "/*" not in excluded:
        included = ["/*"]
    if "/*" not in included and "/*" not in excluded:
        _refuse('The mandatory indexing path "/*" is in neither the included nor the excluded paths.')
    if _ETAG_PATH not in excluded and _ETAG_PATH not in included:
        excluded.append(_ETAG_PATH)
    seen: dict[tuple[object, Coverage], str] = {}
    for path in included + excluded:
        if seen.setdefault(parse_policy_path(path), path) != path or (path in included and path in excluded):
            _refuse(f"The indexing path '{path}' is given more than once.")
    return [{"path": path} for path in included], [{"path": path} for path in excluded]


def _paths(policy: Mapping[str, Any], name: str) -> list[str]:
    """The paths alone: what else the entries have (kinds, precisions) the service has ignored since 2018."""
    entries = policy.get(name)
    paths = []
    for entry in _list(entries if entries is not None else [], what=name):
        path = _text(_object(entry, what=name).get("path"), what="path")
        parse_policy_path(path)
        paths.append("/*" if path == "/" else path)
    return list(dict.fromkeys(paths))


def _complete_composite_index(given: Any) -> list[dict[str, Any]]:
    entries = [_object(entry, what="compositeIndexes") for entry in _list(given, what="compositeIndexes")]
    if not COMPOSITE_INDEX_PATHS_MIN <= len(entries) <= COMPOSITE_INDEX_PATHS_MAX:
        _refuse(
            f"A composite index must have {COMPOSITE_INDEX_PATHS_MIN} to {COMPOSITE_INDEX_PATHS_MAX} paths, "
            f"and one has {len(entries)}."
        )
    for entry in entries:
        _property_path(
            entry.get("path"), refusal=f"The composite indexing path '{entry.get('path')}' could not be accepted."
        )
        order = entry.get("order", "ascending")
        entry["order"] = _one_of(
            order, ("ascending", "descending"), refusal=f"The composite index order '{order}' is invalid."
        )
    return entries


def _complete_spatial_index(given: Any) -> dict[str, Any]:
    index = _object(given, what="spatialIndexes")
    parse_policy_path(_text(index.get("path"), what="path"))
    types = _list(index.get("types", list(_SPATIAL_TYPES)), what="types")
    index["types"] = [_one_of(name, _SPATIAL_TYPES, refusal=f"The spatial type '{name}' is invalid.") for name in types]
    return index


def _complete_vector_index(given: Any) -> dict[str, Any]:
    index = _object(given, what="vectorIndexes")
    _text(index.get("path"), what="path")
    kind = index.get("type")
    _one_of(kind, _VECTOR_INDEX_TYPES, refusal=f"The Vector Indexing Policy's Index Type::{kind} is invalid.")
    quantizer = index.get("quantizerType", _QUANTIZER_TYPES[0])
    _one_of(quantizer, _QUANTIZER_TYPES, refusal=f"The Vector Indexing Policy's QuantizerType::{quantizer} is invalid.")
    if "indexingSearchListSize" in index:
        _check_vector_parameter("IndexingSearchListSize", index["indexingSearchListSize"], SEARCH_LIST_SIZES)
    if "vectorIndexShardKey" in index:
        _check_shard_key(_list(index["vectorIndexShardKey"], what="vectorIndexShardKey"))
    return index


def _check_vector_parameter(name: str, value: Any, allowed: range) -> None:
    if _integer(value, what=name) not in allowed:
        _refuse(
            f"The Vector Indexing Policy parameter {name} value :: {value} is out of range. "
            f"The allowed range is between {allowed[0]} and {allowed[-1]}."
        )


def _check_shard_key(paths: list[Any]) -> None:
    if len(paths) > SHARD_PATHS_MAX:
        _refuse(
            f"The number of shard paths defined in the Vector Indexing Policy: {len(paths)} "
            f"exceeds the maximum: {SHARD_PATHS_MAX}."
        )
    for path in paths:
        _property_path(path, refusal=f"The Vector Indexing Policy has an invalid Shard Path: {path}.")


def _complete_full_text_index(given: Any) -> dict[str, Any]:
    index = _object(given, what="fullTextIndexes")
    path = index.get("path")
    _property_path(path, refusal=f"The Full Text Indexing Policy contains an invalid Path: {path}.")
    return index


_INDEX_COMPLETIONS: dict[str, Callable[[Any], Any]] = {
    "compositeIndexes": _complete_composite_index,
    "spatialIndexes": _complete_spatial_index,
    "vectorIndexes": _complete_vector_index,
    "fullTextIndexes": _complete_full_text_index,
}


def _check_vector_indexes(indexes: list[dict[str, Any]], policy: Mapping[str, Any]) -> None:
    embeddings = _embeddings_by_path(policy)
    for index in indexes:
        embedding = embeddings.get(index["path"])
        if embedding is None:
            _refuse(f"The Vector Indexing Policy's path::{index['path']} not matching in Embedding's path.")
        if "quantizationByteSize" in index:
            bytes_max = min(embedding["dimensions"], QUANTIZATION_BYTES_MAX)
            _check_vector_parameter("QuantizationByteSize", index["quantizationByteSize"], range(1, bytes_max + 1))


def _check_full_text_indexes(indexes: list[dict[str, Any]], policy: Mapping[str, Any]) -> None:
    paths = {entry["path"] for entry in policy.get("fullTextPaths", [])}
    for index in indexes:
        if index["path"] not in paths:
            _refuse(f"The path of the full text index {index['path']} is not in the full text policy.")


def _embeddings_by_path(policy: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {embedding["path"]: embedding for embedding in policy.get("vectorEmbeddings", [])}


# --- the other policies ---------------------------------------------------------------------------------------------


def _complete_partition_key(given: Any) -> dict[str, Any]:
    if given is None:
        # A fixed container: the service invents a path that no item has, and marks the key as its own.
        return {"paths": ["/_partitionKey"], "kind": "Hash", "version": 2, "systemKey": True}
    key = {"kind": "Hash", **_object(given, what="partitionKey")}
    # Clients take a missing version for 1, and the JavaScript one leaves it out when it creates a container.
    return {**key, "version": key.get("version") or 2}


def _complete_default_ttl(given: Any) -> int:
    seconds = _integer(given, what="defaultTtl")
    if seconds != -1 and not 1 <= seconds <= TTL_SECONDS_MAX:
        _refuse(f"The value of defaultTtl, {seconds}, must be -1 or a positive number of seconds.")
    return seconds


def _complete_analytical_ttl(given: Any) -> int:
    seconds = _integer(given, what="analyticalStorageTtl")
    if not -1 <= seconds <= TTL_SECONDS_MAX:
        _refuse(f"The value of analyticalStorageTtl, {seconds}, must be -1, 0 or a positive number of seconds.")
    return seconds


def _complete_unique_keys(given: Any) -> dict[str, Any]:
    policy = _object(given, what="uniqueKeyPolicy")
    keys = _list(policy.get("uniqueKeys", []), what="uniqueKeys")
    if len(keys) > UNIQUE_KEYS_MAX:
        _refuse(f"The unique key policy has {len(keys)} keys, and the maximum is {UNIQUE_KEYS_MAX}.")
    return {"uniqueKeys": [{"paths": _unique_key_paths(key)} for key in keys]}


def _unique_key_paths(key: Any) -> list[str]:
    paths = _list(_object(key, what="uniqueKeys").get("paths"), what="paths")
    if not 1 <= len(paths) <= UNIQUE_KEY_PATHS_MAX:
        _refuse(f"A unique key must have 1 to {UNIQUE_KEY_PATHS_MAX} paths, and one has {len(paths)}.")
    checked = [_property_path(path, refusal=f"The unique key path '{path}' is invalid.") for path in paths]
    for path in checked:
        if not all(isinstance(segment, str) for segment in parse_property_path(path)):
            _refuse(f"The unique key path '{path}' is invalid: an array has no single value to be unique.")
    return checked


def _complete_conflict_resolution(given: Any) -> dict[str, Any]:
    policy = _object(given if given is not None else {}, what="conflictResolutionPolicy")
    mode = policy.get("mode", _CONFLICT_MODES[0])
    spelled = _one_of(mode, _CONFLICT_MODES, refusal=f"The conflict resolution mode '{mode}' is invalid.")
    default_path = "/_ts" if spelled == _CONFLICT_MODES[0] else ""
    return {
        "mode": spelled,
        "conflictResolutionPath": policy.get("conflictResolutionPath") or default_path,
        "conflictResolutionProcedure": policy.get("conflictResolutionProcedure") or "",
    }


def _complete_geospatial(given: Any) -> dict[str, Any]:
    config = _object(given if given is not None else {}, what="geospatialConfig")
    kind = config.get("type", _GEOSPATIAL_TYPES[0])
    return {"type": _one_of(kind, _GEOSPATIAL_TYPES, refusal=f"The geospatial type '{kind}' is invalid.")}


def _complete_computed_properties(given: Any) -> list[dict[str, Any]]:
    computed = [_object(entry, what="computedProperties") for entry in _list(given, what="computedProperties")]
    if len(computed) > COMPUTED_PROPERTIES_MAX:
        _refuse(f"A container has at most {COMPUTED_PROPERTIES_MAX} computed properties, not {len(computed)}.")
    names = [_text(entry.get("name"), what="a computed property's name") for entry in computed]
    for name in names:
        if name in _RESERVED_PROPERTY_NAMES or names.count(name) > 1:
            _refuse(f"The name of the computed property '{name}' is reserved or given twice.")
    for entry in computed:
        query = _text(entry.get("query"), what="a computed property's query")
        if query.upper().split()[:2] != ["SELECT", "VALUE"]:
            _refuse(f"The query of the computed property '{entry['name']}' must begin with SELECT VALUE.")
    return computed


def _complete_vector_embeddings(given: Any) -> dict[str, Any]:
    policy = _object(given, what="vectorEmbeddingPolicy")
    embeddings = _list(policy.get("vectorEmbeddings", []), what="vectorEmbeddings")
    policy["vectorEmbeddings"] = [_check_embedding(embedding) for embedding in embeddings]
    if len(_embeddings_by_path(policy)) < len(embeddings):
        _refuse("The Vector Embedding Policy has the same Path more than once.")
    return policy


def _check_embedding(given: Any) -> dict[str, Any]:
    embedding = _object(given, what="vectorEmbeddings")
    path, data_type, distance = (embedding.get(name) for name in ("path", "dataType", "distanceFunction"))
    _property_path(path, refusal=f"The Vector Embedding Policy has an invalid Path:{path}.")
    _one_of(data_type, _VECTOR_DATA_TYPES, refusal=f"The Vector Embedding Policy has an invalid DataType:{data_type}.")
    _one_of(
        distance,
        _VECTOR_DISTANCE_FUNCTIONS,
        refusal=f"The Vector Embedding Policy has an invalid DistanceFunction:{distance}.",
    )
    dimensions = _integer(embedding.get("dimensions"), what="dimensions")
    if dimensions > VECTOR_DIMENSIONS_MAX:
        _refuse(
            f"The Vector Embedding Policy has Dimensions:{dimensions} which is more than the maximum supported value "
            f"{VECTOR_DIMENSIONS_MAX}."
        )
    if dimensions < 1:
        _refuse(f"The Vector Embedding Policy has Dimensions:{dimensions} which is less than the minimum value 1.")
    if embedding.get("embeddingSource") is not None:
        _check_embedding_source(_object(embedding["embeddingSource"], what="embeddingSource"))
    return embedding


def _check_embedding_source(source: Mapping[str, Any]) -> None:
    for name in ("endpoint", "deploymentName"):
        _text(source.get(name), what=name)
    if not _list(source.get("sourcePaths"), what="sourcePaths"):
        _refuse("The embedding source of vector policy has no source paths.")
    _one_of(
        source.get("authType"),
        _EMBEDDING_AUTH_TYPES,
        refusal="The auth type provided in the embedding source of vector policy is invalid.",
    )


def _complete_full_text_policy(given: Any) -> dict[str, Any]:
    policy = _object(given, what="fullTextPolicy")
    entries = [_object(entry, what="fullTextPaths") for entry in _list(policy.get("fullTextPaths", []), what="paths")]
    for entry in (policy, *entries):
        language = entry.get("defaultLanguage" if entry is policy else "language")
        if language is not None and language not in _FULL_TEXT_LANGUAGES:
            _refuse(f"The Full Text Policy contains an unsupported language: {language}.")
    for entry in entries:
        path = entry.get("path")
        _property_path(path, refusal=f"The Full Text Policy contains an invalid Path: {path}.")
    return {**policy, "fullTextPaths": entries}


# A month: longer than the service keeps versions for (its continuous backup has 30 days at most).
_RETENTION_MINUTES_MAX = 30 * 24 * 60


def _complete_change_feed_policy(given: Any) -> dict[str, Any]:
    policy = _object(given, what="changeFeedPolicy")
    minutes = policy.get("retentionDuration", 0)
    if isinstance(minutes, bool) or not isinstance(minutes, int) or not 0 <= minutes <= _RETENTION_MINUTES_MAX:
        raise MalformedRequest(
            reason="The changeFeedPolicy's 'retentionDuration' must be a whole number of minutes, at most "
            f"{_RETENTION_MINUTES_MAX}."
        )
    return policy


def _complete_encryption_policy(given: Any) -> dict[str, Any]:
    return _object(given, what="clientEncryptionPolicy")


# In the order in which a container shows them.
_COMPLETIONS: dict[str, Callable[[Any], Any]] = {
    "indexingPolicy": complete_indexing_policy,
    "partitionKey": _complete_partition_key,
    "defaultTtl": _complete_default_ttl,
    "uniqueKeyPolicy": _complete_unique_keys,
    "conflictResolutionPolicy": _complete_conflict_resolution,
    "geospatialConfig": _complete_geospatial,
    "computedProperties": _complete_computed_properties,
    "vectorEmbeddingPolicy": _complete_vector_embeddings,
    "fullTextPolicy": _complete_full_text_policy,
    "changeFeedPolicy": _complete_change_feed_policy,
    "analyticalStorageTtl": _complete_analytical_ttl,
    "clientEncryptionPolicy": _complete_encryption_policy,
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
)
_FIXED_AT_CREATION = {
    "id": "The id of a container cannot be changed by a replace.",
    "partitionKey": "Document collection partition key cannot be changed.",
    "uniqueKeyPolicy": "The unique keys of a container cannot be changed.",
    "conflictResolutionPolicy": "The conflict resolution policy of a container cannot be changed.",
}
