"""Graphs through both doors: elements are documents in the service's form, and documents of that form are elements."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey

from tests.clients.gremlin_door import Door, results
from tests.support.raw import wait_until
from tests.support.server import RunningServer


@pytest.fixture
def door(server: RunningServer, database: DatabaseProxy, container: ContainerProxy) -> Door:
    return Door(server, database.id, container.id)


def own(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without what the store adds."""
    added = {"_rid", "_self", "_etag", "_ts", "_attachments"}
    return {name: value for name, value in document.items() if name not in added}


def edge(edge_id: str, source: str, target: str, **more: Any) -> dict[str, Any]:
    return {
        "id": edge_id,
        "label": "knows",
        "_isEdge": True,
        "pk": f"k-{source}",
        "_vertexId": source,
        "_vertexLabel": "person",
        "_sink": target,
        "_sinkLabel": "person",
        "_sinkPartition": f"k-{target}",
        **more,
    }


# --- from Gremlin to documents --------------------------------------------------------------------------------------


def test_a_vertex_is_a_document_with_lists_of_values(door: Door, container: ContainerProxy) -> None:
    with door.client() as client:
        results(
            client,
            "g.addV('person').property('id','ann').property('pk','k-ann').property('age', 44)"
            ".property(list,'name','GER','de','Deutschland').property(list,'name','FRA').property('ttl', 3600)",
        )
    found = own(container.read_item("ann", "k-ann"))
    ids = [entry.pop("id") for name in ("age", "name") for entry in found[name]]
    assert found == {
        "id": "ann",
        "label": "person",
        "pk": "k-ann",
        "age": [{"_value": 44}],
        "name": [{"_value": "GER", "_meta": {"de": "Deutschland"}}, {"_value": "FRA"}],
        "ttl": 3600,
    }
    assert len({uuid.UUID(entry_id) for entry_id in ids}) == 3


def test_an_edge_is_a_document_in_the_partition_of_its_source(door: Door, container: ContainerProxy) -> None:
    with door.client() as client:
        for name in ("ann", "bob"):
            results(client, "g.addV('person').property('id',i).property('pk',k)", {"i": name, "k": f"k-{name}"})
        results(
            client,
            "g.V(['k-ann','ann']).addE('knows').to(g.V(['k-bob','bob'])).property('id','e').property('since', 2017)",
        )
    assert own(container.read_item("e", "k-ann")) == edge("e", "ann", "bob", since=2017)


def test_changes_and_drops_are_changes_of_documents(door: Door, container: ContainerProxy) -> None:
    with door.client() as client:
        results(client, "g.addV('person').property('id','ann').property('pk','k-ann').property('age', 1)")
        before = container.read_item("ann", "k-ann")
        results(client, "g.V(['k-ann','ann']).property('age', 2)")
        after = container.read_item("ann", "k-ann")
        assert after["_etag"] != before["_etag"]
        assert [entry["_value"] for entry in after["age"]] == [2]
        query = "SELECT c.id FROM c WHERE c.label = 'person' AND c.age[0]._value = 2"
        assert list(container.query_items(query, enable_cross_partition_query=True)) == [{"id": "ann"}]
        results(client, "g.V(['k-ann','ann']).drop()")
    assert list(container.read_all_items()) == []


# --- from documents to Gremlin --------------------------------------------------------------------------------------


def test_documents_of_the_service_s_form_are_elements_at_once(door: Door, container: ContainerProxy) -> None:
    container.create_item({"id": "ann", "label": "person", "pk": "k-ann", "age": [{"id": "1", "_value": 44}]})
    # As programs write them that know nothing of lists of values.
    container.create_item({"id": "bob", "label": "person", "pk": "k-bob", "age": 45, "name": "Bob"})
    container.create_item(edge("e", "ann", "bob", since=2017))
    with door.client() as client:
        assert results(client, "g.V(['k-ann','ann']).out('knows').values('age','name')") == [45, "Bob"]
        assert results(client, "g.V(['k-bob','bob']).inE('knows').values('since')") == [2017]
        assert results(client, "g.V().has('age', gt(44)).id()") == ["bob"]
        container.upsert_item({"id": "bob", "label": "person", "pk": "k-bob", "age": 30})
        assert results(client, "g.V().has('age', gt(44)).id()") == []
        # A change by a traversal keeps what it does not name.
        results(client, "g.V(['k-bob','bob']).property('name', 'Robert')")
        assert results(client, "g.V(['k-bob','bob']).values('age','name')") == [30, "Robert"]
        container.delete_item("e", "k-ann")
        assert results(client, "g.V().both().count()") == [0]


def test_documents_that_are_no_elements_are_not_seen(door: Door, container: ContainerProxy) -> None:
    others: list[dict[str, Any]] = [
        {"id": "1", "pk": "p"},
        {"id": "2", "pk": "p", "label": 5},
        {"id": "3", "pk": "p", "label": None},
        {"id": "4", "pk": "p", "label": "knows", "_isEdge": True},
        {"id": "5", "pk": "p", "label": "knows", "_isEdge": True, "_vertexId": 3, "_sink": [1]},
    ]
    for document in others:
        container.create_item(document)
    with door.client() as client:
        for text in ("g.V()", "g.E()", "g.V('1','2','3','4','5')", "g.V(['p','1'])", "g.V().has('pk','p')"):
            assert results(client, text) == []
        results(client, "g.V().drop()")
    assert len(list(container.read_all_items())) == len(others)


def test_elements_expire(server: RunningServer, database: DatabaseProxy) -> None:
    container = database.create_container("expiring", PartitionKey("/pk"), default_ttl=-1)
    with Door(server, database.id, container.id).client() as client:
        results(client, "g.addV('person').property('id','a').property('pk','p').property('ttl', 1)")
        results(client, "g.addV('person').property('id','b').property('pk','p')")
        assert wait_until(lambda: results(client, "g.V().id()") == ["b"])
        assert results(client, "g.V(['p','a'])") == []


def test_the_change_feed_shows_what_traversals_write(door: Door, container: ContainerProxy) -> None:
    with door.client() as client:
        results(
            client,
            "g.addV('person').property('id','a').property('pk','p').as('a')"
            ".addV('person').property('id','b').property('pk','p').addE('knows').to('a').property('id','e')",
        )
    feed = list(container.query_items_change_feed(start_time="Beginning"))
    assert sorted(document["id"] for document in feed) == ["a", "b", "e"]
    # They are one unit.
    assert len({document["_lsn"] for document in feed}) == 1
