"""`asterism graphs` as its user meets it: graphs are created, listed and filled from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import DatabaseProxy, PartitionKey

from tests.support.commands import failure_of, run_well
from tests.support.server import RunningServer

VERTICES = 600
EDGES = 2_000
KEYS = 7


def documents(database: DatabaseProxy, graph: str) -> dict[str, dict[str, Any]]:
    """The documents by their ids, without what the server adds."""
    added = ("_rid", "_self", "_etag", "_ts", "_attachments")
    found = database.get_container_client(graph).read_all_items()
    return {item["id"]: {name: value for name, value in item.items() if name not in added} for item in found}


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """Vertices on seven partition keys, one of them with a few only, and edges between them in no order."""
    vertices, edges = tmp_path / "vertices.csv", tmp_path / "edges.csv"
    rows = [f"v{n},person,{'rare' if n < 3 else n % (KEYS - 1)},name {n},{n}" for n in range(VERTICES)]
    vertices.write_text("\n".join(["id,label,pk,name,age:Int", *rows]) + "\n")
    rows = [f"e{n},knows,v{n * 7 % VERTICES},v{n * 13 % VERTICES},{n}" for n in range(EDGES)]
    edges.write_text("\n".join(["~id,~label,~from,~to,since:Long", *rows]) + "\n")
    return vertices, edges


def test_tables_become_the_documents_of_a_graph_and_may_come_again(
    server: RunningServer, database: DatabaseProxy, tables: tuple[Path, Path]
) -> None:
    vertices, edges = tables
    assert run_well(server, "graphs", "create", database.id, "g", "--partition-key", "/pk", "--ru", "4000") == (
        f"{database.id}/g: created, divided by /pk.\n"
    )
    # In any order: edges wait for the vertices.
    assert run_well(server, "graphs", "import", database.id, "g", str(edges), str(vertices)) == (
        f"{database.id}/g: 600 vertices and 2,000 edges imported.\n"
    )
    found = documents(database, "g")
    assert len(found) == VERTICES + EDGES
    assert found["v10"]["pk"] == "4"
    assert [entry["_value"] for name in ("name", "age") for entry in found["v10"][name]] == ["name 10", 10]
    assert found["e1"] == {
        "id": "e1",
        "label": "knows",
        "_isEdge": True,
        "pk": "1",
        "_vertexId": "v7",
        "_vertexLabel": "person",
        "_sink": "v13",
        "_sinkLabel": "person",
        "_sinkPartition": "1",
        "since": 1,
    }
    again = run_well(server, "graphs", "import", database.id, "g", str(vertices), str(edges), "--format", "json")
    assert json.loads(again) == {"vertices": VERTICES, "edges": EDGES}
    assert documents(database, "g") == found


def test_edges_alone_find_the_vertices_that_the_graph_has(
    server: RunningServer, database: DatabaseProxy, tables: tuple[Path, Path]
) -> None:
    vertices, edges = (str(path) for path in tables)
    run_well(server, "graphs", "import", database.id, "g", vertices, "--partition-key", "/pk")
    assert "0 vertices and 2,000 edges" in run_well(server, "graphs", "import", database.id, "g", edges)
    assert documents(database, "g")["e1"]["_sinkPartition"] == "1"


def test_a_graph_without_the_key_in_its_file_is_divided_by_a_hash(
    server: RunningServer, database: DatabaseProxy, tmp_path: Path
) -> None:
    file = tmp_path / "graph.json"
    file.write_text('{"id":1,"label":"person","outE":{"knows":[{"id":1,"inV":2}]}}\n{"id":2,"label":"person"}\n')
    failure = failure_of(server, "graphs", "import", database.id, "g", str(file), "--partition-key", "/city")
    assert failure.startswith(f"asterism: {file}, line 1: the vertex '1' has no property 'city'")
    printed = run_well(server, "graphs", "import", database.id, "g", str(file), "--partition-key-from", "hash:5")
    assert printed == f"{database.id}/g: 2 vertices and 1 edge imported.\n"
    found = documents(database, "g")
    assert found["1|edge"]["city"] == found["1"]["city"]
    assert found["1|edge"]["_sinkPartition"] == found["2"]["city"]
    read = [
        json.loads(run_well(server, "gremlin", database.id, "g", text, "--json"))
        for text in ("g.E('1').id()", "g.V('1').id()")
    ]
    assert read == ["1", "1"]


def test_large_documents_are_imported_one_by_one(
    server: RunningServer, database: DatabaseProxy, tmp_path: Path
) -> None:
    file = tmp_path / "vertices.csv"
    file.write_text("id,pk,text\n" + "".join(f"{n},p,{'x' * 1_200_000}\n" for n in range(2)) + "small,p,x\n")
    run_well(server, "graphs", "import", database.id, "g", str(file), "--partition-key", "/pk")
    assert sorted(documents(database, "g")) == ["0", "1", "small"]


def test_a_document_that_the_server_refuses_is_named_with_its_line(
    server: RunningServer, database: DatabaseProxy, tmp_path: Path
) -> None:
    file = tmp_path / "vertices.csv"
    file.write_text("id,pk\na,p\nb/c,p\nd,p\n")
    failure = failure_of(server, "graphs", "import", database.id, "g", str(file), "--partition-key", "/pk")
    assert failure.startswith(f"asterism: {file}, line 3: ")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["create", "{db}", "g", "--partition-key", "/id"], "/id cannot be the partition key of a graph"),
        (["create", "{db}", "g", "--partition-key", "/label"], "/label cannot be the partition key of a graph"),
        (["create", "{db}", "g", "--partition-key", "/a/b"], "/a/b is a property within another"),
        (["create", "{db}", "g", "--partition-key", "/a,/b"], "a graph is divided by one property"),
        (["create", "{db}", "nested", "--partition-key", "/pk"], "{db}/nested exists already"),
        (["import", "{db}", "g", "{file}"], "there is no graph {db}/g; create it with `asterism graphs create`"),
        (["import", "{db}", "nested", "{file}"], "{db}/nested cannot be a graph: /a/b is a property within another"),
        (["import", "{db}", "g", "none.csv"], "none.csv cannot be read: No such file or directory"),
        (
            ["import", "{db}", "g", "{file}", "--partition-key", "/pk", "--partition-key-from", "hash:x"],
            "--partition-key-from",
        ),
    ],
)
def test_a_mistake_is_explained_in_one_line(
    server: RunningServer, database: DatabaseProxy, tmp_path: Path, arguments: list[str], reason: str
) -> None:
    database.create_container("nested", PartitionKey("/a/b"))
    file = tmp_path / "vertices.csv"
    file.write_text("id,pk\na,p\n")
    given = [text.format(db=database.id, file=file) for text in arguments]
    assert failure_of(server, "graphs", *given).startswith(f"asterism: {reason.format(db=database.id)}")


def test_containers_that_can_be_graphs_are_listed(server: RunningServer, database: DatabaseProxy) -> None:
    database.create_container("nested", PartitionKey("/a/b"))
    database.create_container("plain", PartitionKey("/pk"))
    listed = json.loads(run_well(server, "graphs", "list", database.id, "--format", "json"))
    assert [(graph["name"], graph["partition_key"]) for graph in listed["graphs"]] == [("plain", "pk")]
    assert "plain" in run_well(server, "graphs", "list")
