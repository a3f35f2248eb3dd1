"""Entries of incoming edges: which documents have them, under which keys, and the setting of a container."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.errors import MalformedRequest
from asterism.models.documents.cosmos.edges import label_bytes, sink_rule
from asterism.models.documents.cosmos.profile import CosmosProfile
from asterism.models.documents.incoming.entries import Sink, entry_of, label_prefix, sink_prefix
from asterism.models.documents.item_key import ItemKey
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.storage.contract import KEY_BYTES_MAX
from asterism.values.undefined import UNDEFINED
from tests.support.incoming_edges import edge

BY_PK = PartitionKeyDefinition(("/pk",))
FIXED = PartitionKeyDefinition(("/_partitionKey",), system_key=True)


# --- the rule -------------------------------------------------------------------------------------------------------


def test_an_edge_names_the_point_the_id_and_its_label() -> None:
    point = storage_point(BY_PK, ("q",))
    assert sink_rule(BY_PK)(edge()) == Sink(point, b"v", b"knows")


def test_an_edge_of_a_container_without_a_key_names_the_only_point() -> None:
    document = {"id": "e", "label": "knows", "_isEdge": True, "_sink": "v"}
    assert sink_rule(FIXED)(document) == Sink(b"", b"v", b"knows")


@pytest.mark.parametrize(("value", "component"), [(7, 7), (7.0, 7), (None, None), (True, True), ([], UNDEFINED)])
def test_the_sinks_key_is_read_as_that_of_an_item_is(value: Any, component: Any) -> None:
    sink = sink_rule(BY_PK)(edge(sink_pk=value))
    assert sink is not None
    assert sink.point == storage_point(BY_PK, (component,))


@pytest.mark.parametrize(
    "document",
    [
        {"id": "v", "label": "person", "pk": "p"},
        edge(_isEdge="true"),
        edge(_sink=7),
        edge(label=None),  # type: ignore[arg-type]  # what a client may write
        edge(sink_pk="k" * 5000),
        {"id": "e", "_isEdge": True},
    ],
)
def test_a_document_of_another_shape_names_no_sink(document: dict[str, Any]) -> None:
    assert sink_rule(BY_PK)(document) is None


def test_half_a_surrogate_pair_in_a_label_does_no_harm() -> None:
    sink = sink_rule(BY_PK)(edge(label="\ud800", sink="\udc00"))
    assert sink is not None
    assert sink.label == label_bytes("\ud800")


# --- keys -----------------------------------------------------------------------------------------------------------


def test_keys_stay_short_enough_for_a_store() -> None:
    definition = PartitionKeyDefinition(("/pk",), version=1)
    point = storage_point(definition, ("k" * 2000,))
    for length in (1, 64, 65, 255, 256, 1023):
        sink = Sink(point, b"i" * length, b"l" * length)
        entry = entry_of(sink, ItemKey.at(point, b"e" * length), 2**60)
        assert entry is not None
        assert len(entry.key) <= KEY_BYTES_MAX
        assert entry.key.startswith(label_prefix(point, sink.item_id, sink.label))
        assert entry.key.startswith(sink_prefix(point, sink.item_id))


def test_the_entries_of_no_other_vertex_or_label_begin_alike() -> None:
    point = storage_point(BY_PK, ("q",))
    ids = [b"a", b"a\x00knows", b"a\x00", b"ab", b"a" * 255, b"a" * 256, b"a" * 300]
    labels = [b"", b"knows", b"k\x00", b"k" * 70]
    prefixes = [label_prefix(point, item_id, label) for item_id in ids for label in labels]
    for prefix in prefixes:
        assert [other for other in prefixes if other.startswith(prefix)] == [prefix]
    sinks = [sink_prefix(point, item_id) for item_id in ids]
    for prefix in sinks:
        assert [other for other in sinks if other.startswith(prefix)] == [prefix]
        assert sum(other.startswith(prefix) for other in prefixes) == len(labels)


# --- the setting ----------------------------------------------------------------------------------------------------


def described(paths: list[str], **settings: Any) -> dict[str, Any]:
    kind = "Hash" if len(paths) == 1 else "MultiHash"
    return {"id": "c", "partitionKey": {"paths": paths, "kind": kind, "version": 2}, **settings}


def test_the_setting_is_shown_and_survives_a_replace_that_does_not_name_it() -> None:
    profile = CosmosProfile()
    settings = profile.new_container(described(["/pk"], incomingEdges=True)).settings
    assert settings["incomingEdges"] is True
    assert profile.replaced(settings, described(["/pk"]))["incomingEdges"] is True
    assert profile.replaced(settings, described(["/pk"], incomingEdges=False))["incomingEdges"] is False
    assert "incomingEdges" not in profile.new_container(described(["/pk"])).settings


@pytest.mark.parametrize(
    "body",
    [
        described(["/pk"], incomingEdges="yes"),
        described(["/pk"], incomingEdges=1),
        described(["/a/b"], incomingEdges=True),
        described(["/a", "/b"], incomingEdges=True),
    ],
)
def test_a_setting_that_cannot_be_kept_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(MalformedRequest):
        CosmosProfile().new_container(body)


def test_a_copy_under_a_key_that_cannot_have_them_goes_without() -> None:
    profile = CosmosProfile()
    settings = profile.new_container(described(["/pk"], incomingEdges=True)).settings
    assert "incomingEdges" not in profile.with_key(settings, name="d", paths=["/a/b"])
    assert profile.with_key(settings, name="d", paths=["/other"])["incomingEdges"] is True
