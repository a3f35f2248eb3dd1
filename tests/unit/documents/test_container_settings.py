from __future__ import annotations

from typing import Any

import pytest

from asterism.errors import MalformedRequest
from asterism.models.documents.cosmos.index_rules import compile_rules
from asterism.models.documents.cosmos.indexing_policy import complete_indexing_policy
from asterism.models.documents.cosmos.settings import (
    check_replaceable,
    complete_container_properties,
    replace_container_properties,
)

PARTITION_KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}
ETAG = {"path": '/"_etag"/?'}
EMBEDDING = {"path": "/v", "dataType": "float32", "dimensions": 256, "distanceFunction": "euclidean"}
EMBEDDING_SOURCE = {
    "sourcePaths": ["/title"],
    "deploymentName": "d",
    "endpoint": "https://example.com",
    "authType": "ApiKey",
}
FULL_TEXT_POLICY = {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/abstract", "language": "en-US"}]}


def body(**properties: Any) -> dict[str, Any]:
    return {"id": "c", "partitionKey": PARTITION_KEY, **properties}


def completed(**properties: Any) -> dict[str, Any]:
    return complete_container_properties(body(**properties))


def vector_body(embedding: dict[str, Any] | None = None, **index: Any) -> dict[str, Any]:
    return body(
        vectorEmbeddingPolicy={"vectorEmbeddings": [embedding or EMBEDDING]},
        indexingPolicy={"vectorIndexes": [{"path": "/v", "type": "diskANN", **index}]},
    )


def refusal_of(given: dict[str, Any]) -> str:
    with pytest.raises(MalformedRequest) as refusal:
        complete_container_properties(given)
    return refusal.value.reason


def test_a_container_with_a_name_and_a_key_gets_the_service_s_defaults() -> None:
    assert completed() == {
        "id": "c",
        "indexingPolicy": {
            "indexingMode": "consistent",
            "automatic": True,
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [ETAG],
        },
        "partitionKey": PARTITION_KEY,
        "conflictResolutionPolicy": {
            "mode": "LastWriterWins",
            "conflictResolutionPath": "/_ts",
            "conflictResolutionProcedure": "",
        },
        "geospatialConfig": {"type": "Geography"},
    }


def test_completed_properties_stay_as_they_are_when_completed_again() -> None:
    once = complete_container_properties(vector_body())
    assert complete_container_properties(once) == once


def test_what_was_sent_is_not_changed() -> None:
    policy: dict[str, Any] = {"includedPaths": [{"path": "/*"}], "excludedPaths": []}
    completed(indexingPolicy=policy)
    assert policy == {"includedPaths": [{"path": "/*"}], "excludedPaths": []}


def test_unknown_and_system_properties_are_dropped() -> None:
    assert completed(_rid="r", _self="s", surprise=1) == completed()


def test_null_is_the_same_as_absent() -> None:
    assert completed(defaultTtl=None, computedProperties=None, indexingPolicy=None) == completed()


@pytest.mark.parametrize("name", [None, "", "a/b", "x" * 256, 5])
def test_a_container_needs_a_good_name(name: object) -> None:
    assert refusal_of(body(id=name))


def test_a_key_without_kind_and_version_is_a_hash_of_version_1() -> None:
    assert completed(partitionKey={"paths": ["/pk"]})["partitionKey"] == {**PARTITION_KEY, "version": 1}


def test_a_hierarchical_key_without_version_has_version_2() -> None:
    key = {"paths": ["/a", "/b"], "kind": "MultiHash"}
    assert completed(partitionKey=key)["partitionKey"] == {**key, "version": 2}


@pytest.mark.parametrize("version", [1, 2])
def test_a_replace_that_states_no_version_keeps_the_stored_one(version: int) -> None:
    before = completed(partitionKey={**PARTITION_KEY, "version": version})
    for given in ({"paths": ["/pk"], "kind": "Hash"}, {"paths": ["/pk"], "kind": "Hash", "version": None}):
        assert replace_container_properties(before, body(partitionKey=given)) == before


def test_a_version_that_was_asked_for_is_kept() -> None:
    assert completed(partitionKey={**PARTITION_KEY, "version": 1})["partitionKey"]["version"] == 1


def test_a_container_without_a_key_has_the_system_s() -> None:
    assert complete_container_properties({"id": "c"})["partitionKey"]["systemKey"] is True


# --- the indexing policy --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        None,
        {},
        {"indexingMode": "Consistent"},
        {"indexingMode": "lazy", "automatic": True},
        {"includedPaths": [{"path": "/*", "indexes": [{"kind": "Hash", "dataType": "String"}]}]},
        {"includedPaths": [{"path": "/"}]},
        {"includedPaths": [], "excludedPaths": [ETAG]},
    ],
)
def test_partial_policies_become_the_default_one(policy: object) -> None:
    assert complete_indexing_policy(policy) == completed()["indexingPolicy"]


def test_the_etag_is_excluded_from_custom_policies_too() -> None:
    policy = complete_indexing_policy(
        {"includedPaths": [{"path": "/"}], "excludedPaths": [{"path": '/"systemMetadata"/*'}]}
    )
    assert policy["includedPaths"] == [{"path": "/*"}]
    assert policy["excludedPaths"] == [{"path": '/"systemMetadata"/*'}, ETAG]


def test_everything_may_be_excluded_but_some_paths() -> None:
    policy = complete_indexing_policy({"includedPaths": [{"path": "/a/?"}], "excludedPaths": [{"path": "/*"}]})
    assert policy["includedPaths"] == [{"path": "/a/?"}]
    assert policy["excludedPaths"] == [{"path": "/*"}, ETAG]


def test_mode_none_has_no_paths_and_is_not_automatic() -> None:
    policy = complete_indexing_policy({"indexingMode": "none"})
    assert policy == {"indexingMode": "none", "automatic": False, "includedPaths": [], "excludedPaths": []}
    assert not compile_rules(policy).enabled


def test_composite_and_spatial_indexes_are_echoed() -> None:
    composite = [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]]
    spatial = [{"path": "/p/*", "types": ["Point", "LineString", "Polygon", "MultiPolygon"]}]
    policy = complete_indexing_policy({"compositeIndexes": composite, "spatialIndexes": spatial})
    assert (policy["compositeIndexes"], policy["spatialIndexes"]) == (composite, spatial)


def test_composite_paths_ascend_and_spatial_paths_hold_all_shapes_unless_told() -> None:
    policy = complete_indexing_policy(
        {"compositeIndexes": [[{"path": "/a"}, {"path": "/b"}]], "spatialIndexes": [{"path": "/p/?"}]}
    )
    assert [entry["order"] for entry in policy["compositeIndexes"][0]] == ["ascending", "ascending"]
    assert len(policy["spatialIndexes"][0]["types"]) == 4


@pytest.mark.parametrize(
    "policy",
    [
        [],
        {"indexingMode": "sometimes"},
        {"automatic": "yes"},
        {"includedPaths": {"path": "/*"}},
        {"includedPaths": ["/*"]},
        {"includedPaths": [{}]},
        {"includedPaths": [{"path": "/a"}]},
        {"includedPaths": [{"path": "/a/?"}]},
        {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/*"}]},
        {"includedPaths": [{"path": "/*"}, {"path": "/a/?"}], "excludedPaths": [{"path": '/"a"/?'}]},
        {"compositeIndexes": [[{"path": "/a"}]]},
        {"compositeIndexes": [[{"path": f"/{number}"} for number in range(9)]]},
        {"compositeIndexes": [{"path": "/a"}, {"path": "/b"}]},
        {"compositeIndexes": [[{"path": "a"}, {"path": "/b"}]]},
        {"compositeIndexes": [[{"path": "/a", "order": "sideways"}, {"path": "/b"}]]},
        {"spatialIndexes": [{"path": "/p"}]},
        {"spatialIndexes": [{"path": "/p/*", "types": ["Circle"]}]},
    ],
)
def test_policies_that_cannot_be_are_refused(policy: object) -> None:
    assert refusal_of(body(indexingPolicy=policy))


# --- the other policies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [-1, 1, 10, 2**31 - 1])
def test_a_time_to_live_is_minus_one_or_positive(seconds: int) -> None:
    assert completed(defaultTtl=seconds)["defaultTtl"] == seconds


@pytest.mark.parametrize("seconds", [0, -10, 2**31, 1.5, "10", True])
def test_other_times_to_live_are_refused(seconds: object) -> None:
    assert "defaultTtl" in refusal_of(body(defaultTtl=seconds))


@pytest.mark.parametrize("seconds", [-1, 0, 1000])
def test_an_analytical_time_to_live_is_echoed(seconds: int) -> None:
    assert completed(analyticalStorageTtl=seconds)["analyticalStorageTtl"] == seconds
    assert "analyticalStorageTtl" in refusal_of(body(analyticalStorageTtl=-2))


def test_unique_keys_are_echoed() -> None:
    policy = {"uniqueKeys": [{"paths": ["/email"]}, {"paths": ["/a/b", "/c"]}]}
    assert completed(uniqueKeyPolicy=policy)["uniqueKeyPolicy"] == policy


@pytest.mark.parametrize(
    "keys",
    [
        [{"paths": ["/a"]}] * 11,
        [{"paths": [f"/{number}" for number in range(17)]}],
        [{"paths": []}],
        [{"paths": ["a"]}],
        [{"paths": "/a"}],
        [{}],
        {},
    ],
)
def test_unique_keys_that_cannot_be_are_refused(keys: object) -> None:
    assert refusal_of(body(uniqueKeyPolicy={"uniqueKeys": keys}))


def test_a_custom_conflict_resolution_names_its_procedure() -> None:
    policy = {"mode": "custom", "conflictResolutionProcedure": "dbs/d/colls/c/sprocs/s"}
    assert completed(conflictResolutionPolicy=policy)["conflictResolutionPolicy"] == {
        "mode": "Custom",
        "conflictResolutionPath": "",
        "conflictResolutionProcedure": "dbs/d/colls/c/sprocs/s",
    }
    assert refusal_of(body(conflictResolutionPolicy={"mode": "FirstWriterWins"}))


def test_shapes_are_on_the_globe_or_on_a_plane() -> None:
    assert completed(geospatialConfig={"type": "Geometry"})["geospatialConfig"] == {"type": "Geometry"}
    assert refusal_of(body(geospatialConfig={"type": "Topology"}))


def test_a_change_feed_policy_is_echoed() -> None:
    assert completed(changeFeedPolicy={"retentionDuration": 10})["changeFeedPolicy"] == {"retentionDuration": 10}
    assert refusal_of(body(changeFeedPolicy=10))
    assert refusal_of(body(changeFeedPolicy={"retentionDuration": -1}))
    assert refusal_of(body(changeFeedPolicy={"retentionDuration": True}))


def test_computed_properties_are_echoed() -> None:
    computed = [{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}]
    assert completed(computedProperties=computed)["computedProperties"] == computed


def test_computed_properties_are_a_list() -> None:
    message = refusal_of(body(computedProperties={"name": "a", "query": "SELECT VALUE c.a FROM c"}))
    assert "One of the specified inputs is invalid" in message


@pytest.mark.parametrize(
    "computed",
    [
        [{"name": "a", "query": "SELECT c.a FROM c"}],
        [{"name": "id", "query": "SELECT VALUE c.a FROM c"}],
        [{"name": "a", "query": "SELECT VALUE c.a FROM c"}] * 2,
        [{"name": f"p{number}", "query": "SELECT VALUE 1"} for number in range(21)],
        [{"query": "SELECT VALUE c.a FROM c"}],
        [{"name": "a"}],
        ["a"],
    ],
)
def test_computed_properties_that_cannot_be_are_refused(computed: object) -> None:
    assert refusal_of(body(computedProperties=computed))


# --- vectors and full text ------------------------------------------------------------------------------------------


def test_vector_policies_are_echoed() -> None:
    index: dict[str, Any] = {
        "quantizerType": "product",
        "quantizationByteSize": 8,
        "vectorIndexShardKey": ["/country/city"],
    }
    given = vector_body(**index, indexingSearchListSize=50)
    properties = complete_container_properties(given)
    assert properties["vectorEmbeddingPolicy"] == given["vectorEmbeddingPolicy"]
    assert properties["indexingPolicy"]["vectorIndexes"] == given["indexingPolicy"]["vectorIndexes"]


@pytest.mark.parametrize("data_type", ["float32", "float16", "int8", "uint8"])
def test_vectors_are_of_four_types(data_type: str) -> None:
    embeddings = [{**EMBEDDING, "dataType": data_type, "embeddingSource": EMBEDDING_SOURCE}]
    properties = completed(vectorEmbeddingPolicy={"vectorEmbeddings": embeddings})
    assert properties["vectorEmbeddingPolicy"]["vectorEmbeddings"] == embeddings


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        ({"path": "/other"}, "The Vector Indexing Policy's path::/other not matching in Embedding's path."),
        ({"type": "notFlat"}, "Index Type::notFlat is invalid"),
        (
            {"quantizationByteSize": 0},
            "The Vector Indexing Policy parameter QuantizationByteSize value :: 0 is out of range. "
            "The allowed range is between 1 and 256.",
        ),
        (
            {"indexingSearchListSize": 5},
            "IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 and 500.",
        ),
        ({"vectorIndexShardKey": ["country"]}, "The Vector Indexing Policy has an invalid Shard Path: country."),
        (
            {"vectorIndexShardKey": ["/country", "/city", "/zipcode"]},
            "The number of shard paths defined in the Vector Indexing Policy: 3 exceeds the maximum: 1.",
        ),
        ({"vectorIndexShardKey": "/country"}, "One of the specified inputs is invalid"),
        ({"quantizerType": "cubic"}, "QuantizerType::cubic"),
    ],
)
def test_vector_indexes_that_cannot_be_are_refused_in_the_service_s_words(index: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal_of(vector_body(**index))


def test_at_most_512_bytes_of_a_long_vector_are_quantized() -> None:
    message = refusal_of(vector_body({**EMBEDDING, "dimensions": 550}, quantizationByteSize=513))
    assert "QuantizationByteSize value :: 513 is out of range. The allowed range is between 1 and 512." in message


def test_a_vector_index_needs_an_embedding() -> None:
    message = refusal_of(body(indexingPolicy={"vectorIndexes": [{"path": "/vector1", "type": "flat"}]}))
    assert "vector1 not matching in Embedding's path" in message


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"dataType": "float33"}, "Vector Embedding Policy has an invalid DataType"),
        ({"dimensions": 8000}, "has Dimensions:8000 which is more than the maximum supported value"),
        ({"dimensions": -1}, "The Vector Embedding Policy has Dimensions:-1"),
        ({"dimensions": "many"}, "One of the specified inputs is invalid"),
        (
            {"distanceFunction": "handMeasured"},
            "The Vector Embedding Policy has an invalid DistanceFunction:handMeasured",
        ),
        ({"path": "v"}, "invalid Path:v"),
        (
            {"embeddingSource": {**EMBEDDING_SOURCE, "authType": "Guess"}},
            "The auth type provided in the embedding source of vector policy is invalid.",
        ),
        ({"embeddingSource": {**EMBEDDING_SOURCE, "sourcePaths": []}}, "no source paths"),
        ({"embeddingSource": {**EMBEDDING_SOURCE, "endpoint": None}}, "endpoint"),
    ],
)
def test_embeddings_that_cannot_be_are_refused_in_the_service_s_words(change: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal_of(body(vectorEmbeddingPolicy={"vectorEmbeddings": [{**EMBEDDING, **change}]}))


def test_two_embeddings_have_two_paths() -> None:
    assert "more than once" in refusal_of(body(vectorEmbeddingPolicy={"vectorEmbeddings": [EMBEDDING, EMBEDDING]}))


def test_full_text_policies_are_echoed() -> None:
    properties = completed(fullTextPolicy=FULL_TEXT_POLICY, indexingPolicy={"fullTextIndexes": [{"path": "/abstract"}]})
    assert properties["fullTextPolicy"] == FULL_TEXT_POLICY
    assert properties["indexingPolicy"]["fullTextIndexes"] == [{"path": "/abstract"}]


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (
            {**FULL_TEXT_POLICY, "fullTextPaths": [{"path": "abstract"}]},
            "Full Text Policy contains an invalid Path: abstract",
        ),
        ({**FULL_TEXT_POLICY, "defaultLanguage": "spa-SPA"}, "Full Text Policy contains an unsupported language"),
        (
            {"fullTextPaths": [{"path": "/abstract", "language": "spa-SPA"}]},
            "Full Text Policy contains an unsupported language",
        ),
    ],
)
def test_full_text_policies_that_cannot_be_are_refused(policy: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal_of(body(fullTextPolicy=policy))


@pytest.mark.parametrize("index", [{"path": "abstract"}, {"not_path": "/abstract"}, {"path": "/other"}, "/abstract"])
def test_full_text_indexes_need_a_path_of_the_policy(index: object) -> None:
    assert refusal_of(body(fullTextPolicy=FULL_TEXT_POLICY, indexingPolicy={"fullTextIndexes": [index]}))


def test_a_full_text_language_may_be_a_number() -> None:
    policy = {"defaultLanguage": 1033, "fullTextPaths": [{"path": "/text", "language": 1033}]}
    assert completed(fullTextPolicy=policy)["fullTextPolicy"] == policy


# --- spatial indexes ------------------------------------------------------------------------------------------------

BOX = {"xmin": 0, "ymin": 0, "xmax": 10, "ymax": 10.5}


def spatial(kind: str, **more: object) -> dict[str, Any]:
    index = {"path": "/location/?", "types": ["Point"], **more}
    return body(geospatialConfig={"type": kind}, indexingPolicy={"spatialIndexes": [index]})


def test_a_plane_has_a_bounding_box_and_the_earth_none() -> None:
    for given in (spatial("Geography"), spatial("Geography", boundingBox=None), spatial("Geometry", boundingBox=BOX)):
        assert complete_container_properties(given)["geospatialConfig"] == given["geospatialConfig"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            spatial("Geography", boundingBox=BOX),
            "Incorrect parameter 'boundingBox' specified for 'Geography' collection",
        ),
        (
            spatial("Geometry"),
            r"Required parameter 'boundingBox' for 'Geometry' collection is missing in spatial path '\/location\/?'",
        ),
        (
            spatial("Geometry", boundingBox={**BOX, "xmax": 0}),
            "The value of parameter 'xmax' must be greater than the value of parameter 'xmin' in 'boundingBox' for "
            r"spatial path '\/location\/?'",
        ),
        (
            spatial("Geometry", boundingBox={"xmin": 0}),
            r"Required parameter 'ymin' in 'boundingBox' for spatial path '\/location\/?' is missing or no number",
        ),
    ],
)
def test_a_bounding_box_that_does_not_fit_the_geospatial_type_is_refused(given: dict[str, Any], sentence: str) -> None:
    assert refusal_of(given) == sentence


def test_a_container_with_a_spatial_index_of_before_is_replaced_in_other_things() -> None:
    before = complete_container_properties(spatial("Geography"))
    before["geospatialConfig"] = {"type": "Geometry"}
    assert replace_container_properties(before, {**before, "defaultTtl": 5}) == {**before, "defaultTtl": 5}
    more = {**before["indexingPolicy"], "spatialIndexes": [{"path": "/other/?"}]}
    with pytest.raises(MalformedRequest, match="boundingBox"):
        replace_container_properties(before, {**before, "indexingPolicy": more})


# --- replacing ------------------------------------------------------------------------------------------------------


def test_what_may_change_changes_and_what_is_left_out_goes() -> None:
    before = completed(defaultTtl=10, computedProperties=[{"name": "a", "query": "SELECT VALUE 1"}])
    after = replace_container_properties(before, body(indexingPolicy={"indexingMode": "none"}))
    assert after == completed(indexingPolicy={"indexingMode": "none"})


def test_what_is_fixed_at_creation_may_be_left_out_of_a_replace() -> None:
    before = complete_container_properties(
        {
            "id": "c",
            "partitionKey": {**PARTITION_KEY, "version": 1},
            "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a"]}]},
            "conflictResolutionPolicy": {"mode": "Custom"},
            "geospatialConfig": {"type": "Geometry"},
        }
    )
    assert replace_container_properties(before, {"id": "c"}) == before
    assert replace_container_properties(before, {"id": "c", "partitionKey": {"paths": ["/pk"]}}) == before


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"id": "other"}, "id"),
        ({"partitionKey": {"paths": ["/other"]}}, "partition key"),
        ({"partitionKey": {"paths": ["/pk"], "version": 1}}, "partition key"),
        ({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/b"]}]}}, "unique keys"),
        ({"conflictResolutionPolicy": {"mode": "Custom"}}, "conflict resolution"),
    ],
)
def test_what_is_fixed_at_creation_cannot_be_replaced(change: dict[str, Any], word: str) -> None:
    before = completed(uniqueKeyPolicy={"uniqueKeys": [{"paths": ["/a"]}]})
    with pytest.raises(MalformedRequest, match=f"{word}.*cannot be changed"):
        check_replaceable(before, complete_container_properties({**before, **change}))


def test_a_vector_index_may_be_dropped_but_not_modified() -> None:
    before = complete_container_properties(vector_body())
    dropped = complete_container_properties(vector_body() | {"indexingPolicy": {}})
    check_replaceable(before, dropped)
    with pytest.raises(MalformedRequest, match="Paths in existing vector indexing policy cannot be modified"):
        check_replaceable(before, complete_container_properties(vector_body(type="flat")))


@pytest.mark.parametrize("policy", [{"vectorEmbeddings": [{**EMBEDDING, "dimensions": 384}]}, {"vectorEmbeddings": []}])
def test_an_embedding_can_neither_be_modified_nor_dropped(policy: dict[str, Any]) -> None:
    before = completed(vectorEmbeddingPolicy={"vectorEmbeddings": [EMBEDDING]})
    with pytest.raises(MalformedRequest, match="Paths in existing embedding policy cannot be modified"):
        check_replaceable(before, completed(vectorEmbeddingPolicy=policy))


def test_an_embedding_may_be_added() -> None:
    more = {"vectorEmbeddings": [EMBEDDING, {**EMBEDDING, "path": "/w"}]}
    before = completed(vectorEmbeddingPolicy={"vectorEmbeddings": [EMBEDDING]})
    assert replace_container_properties(before, body(vectorEmbeddingPolicy=more))["vectorEmbeddingPolicy"] == more
