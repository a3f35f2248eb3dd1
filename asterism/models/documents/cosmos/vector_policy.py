"""The vectors of a container: the embeddings that its items have, and the indexes on them.

An index is accepted and echoed; queries compare every vector (the distance is exact under each kind of index).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asterism.models.documents.cosmos.policy_json import (
    as_integer,
    as_list,
    as_object,
    as_property_path,
    as_text,
    one_of,
    refuse,
)

# Limits of the service for one container.
VECTOR_DIMENSIONS_MAX = 4096
QUANTIZATION_BYTES_MAX = 512
SEARCH_LIST_SIZES = range(25, 501)
SHARD_PATHS_MAX = 1

_VECTOR_DATA_TYPES = ("float32", "float16", "int8", "uint8")
_VECTOR_DISTANCE_FUNCTIONS = ("euclidean", "cosine", "dotproduct")
_VECTOR_INDEX_TYPES = ("flat", "quantizedFlat", "diskANN")
_QUANTIZER_TYPES = ("product", "spherical")
_EMBEDDING_AUTH_TYPES = ("ApiKey", "Entra")


def complete_vector_embeddings(given: Any) -> dict[str, Any]:
    policy = as_object(given, what="vectorEmbeddingPolicy")
    embeddings = as_list(policy.get("vectorEmbeddings", []), what="vectorEmbeddings")
    policy["vectorEmbeddings"] = [_check_embedding(embedding) for embedding in embeddings]
    if len(embeddings_by_path(policy)) < len(embeddings):
        refuse("The Vector Embedding Policy has the same Path more than once.")
    return policy


def _check_embedding(given: Any) -> dict[str, Any]:
    embedding = as_object(given, what="vectorEmbeddings")
    path, data_type, distance = (embedding.get(name) for name in ("path", "dataType", "distanceFunction"))
    as_property_path(path, refusal=f"The Vector Embedding Policy has an invalid Path:{path}.")
    one_of(data_type, _VECTOR_DATA_TYPES, refusal=f"The Vector Embedding Policy has an invalid DataType:{data_type}.")
    one_of(
        distance,
        _VECTOR_DISTANCE_FUNCTIONS,
        refusal=f"The Vector Embedding Policy has an invalid DistanceFunction:{distance}.",
    )
    dimensions = as_integer(embedding.get("dimensions"), what="dimensions")
    if dimensions > VECTOR_DIMENSIONS_MAX:
        refuse(
            f"The Vector Embedding Policy has Dimensions:{dimensions} which is more than the maximum supported value "
            f"{VECTOR_DIMENSIONS_MAX}."
        )
    if dimensions < 1:
        refuse(f"The Vector Embedding Policy has Dimensions:{dimensions} which is less than the minimum value 1.")
    if embedding.get("embeddingSource") is not None:
        _check_embedding_source(as_object(embedding["embeddingSource"], what="embeddingSource"))
    return embedding


def _check_embedding_source(source: Mapping[str, Any]) -> None:
    for name in ("endpoint", "deploymentName"):
        as_text(source.get(name), what=name)
    if not as_list(source.get("sourcePaths"), what="sourcePaths"):
        refuse("The embedding source of vector policy has no source paths.")
    one_of(
        source.get("authType"),
        _EMBEDDING_AUTH_TYPES,
        refusal="The auth type provided in the embedding source of vector policy is invalid.",
    )


def embeddings_by_path(policy: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {embedding["path"]: embedding for embedding in policy.get("vectorEmbeddings", [])}


def complete_vector_index(given: Any) -> dict[str, Any]:
    index = as_object(given, what="vectorIndexes")
    as_text(index.get("path"), what="path")
    kind = index.get("type")
    one_of(kind, _VECTOR_INDEX_TYPES, refusal=f"The Vector Indexing Policy's Index Type::{kind} is invalid.")
    quantizer = index.get("quantizerType", _QUANTIZER_TYPES[0])
    one_of(quantizer, _QUANTIZER_TYPES, refusal=f"The Vector Indexing Policy's QuantizerType::{quantizer} is invalid.")
    if "indexingSearchListSize" in index:
        _check_vector_parameter("IndexingSearchListSize", index["indexingSearchListSize"], SEARCH_LIST_SIZES)
    if "vectorIndexShardKey" in index:
        _check_shard_key(as_list(index["vectorIndexShardKey"], what="vectorIndexShardKey"))
    return index


def _check_vector_parameter(name: str, value: Any, allowed: range) -> None:
    if as_integer(value, what=name) not in allowed:
        refuse(
            f"The Vector Indexing Policy parameter {name} value :: {value} is out of range. "
            f"The allowed range is between {allowed[0]} and {allowed[-1]}."
        )


def _check_shard_key(paths: list[Any]) -> None:
    if len(paths) > SHARD_PATHS_MAX:
        refuse(
            f"The number of shard paths defined in the Vector Indexing Policy: {len(paths)} "
            f"exceeds the maximum: {SHARD_PATHS_MAX}."
        )
    for path in paths:
        as_property_path(path, refusal=f"The Vector Indexing Policy has an invalid Shard Path: {path}.")


def check_vector_indexes(indexes: list[dict[str, Any]], policy: Mapping[str, Any]) -> None:
    embeddings = embeddings_by_path(policy)
    for index in indexes:
        embedding = embeddings.get(index["path"])
        if embedding is None:
            refuse(f"The Vector Indexing Policy's path::{index['path']} not matching in Embedding's path.")
        if "quantizationByteSize" in index:
            bytes_max = min(embedding["dimensions"], QUANTIZATION_BYTES_MAX)
            _check_vector_parameter("QuantizationByteSize", index["quantizationByteSize"], range(1, bytes_max + 1))
