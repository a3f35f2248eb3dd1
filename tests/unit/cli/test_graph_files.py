"""Files of vertices and edges, and the documents that an import makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asterism.cli.failure import CommandFailed
from asterism.cli.graph_definition import is_graph, refusal
from asterism.cli.graph_import.documents import DocumentMaker, KeyRule
from asterism.cli.graph_import.load import GraphFile
from asterism.cli.graph_import.records import BadElement, EdgeRecord, EndRecord, VertexRecord

ANNA = {"id": 1, "label": "person", "outE": {"knows": [{"id": 7, "inV": 2, "properties": {"weight": 0.5}}]}}
BERT = {"id": 2, "label": "person", "properties": {"name": [{"id": 0, "value": "Bert", "properties": {"since": 2001}}]}}


def typed(kind: str, value: Any) -> dict[str, Any]:
    return {"@type": kind, "@value": value}


TYPED_ANNA = {
    "id": typed("g:Int32", 1),
    "label": "person",
    "outE": {
        "knows": [
            {
                "id": typed("g:Int64", 7),
                "inV": typed("g:Int32", 2),
                "properties": typed("g:Map", ["weight", typed("g:Double", 0.5)]),
            }
        ]
    },
}
EDGE = {"id": 7, "label": "knows", "type": "edge", "outV": 1, "inV": 2, "properties": {"weight": 0.5}}


def records(path: Path) -> list[Any]:
    file = GraphFile.find(path)
    found = []
    for edges in (False, True):
        if file.has_edges if edges else file.has_vertices:
            found += [record for _, _, record in file.read(edges=edges)]
    return found


def written(folder: Path, name: str, *lines: Any) -> Path:
    path = folder / name
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return path


@pytest.mark.parametrize(
    "lines",
    [
        [ANNA, BERT],
        [TYPED_ANNA, BERT],
        [{"vertices": [ANNA, BERT]}],
        [json.dumps({"vertices": [ANNA, BERT]}, indent=2)],
        [{"vertices": [{"id": 1, "label": "person"}, BERT], "edges": [EDGE]}],
        [typed("tinker:graph", {"vertices": [typed("g:Vertex", TYPED_ANNA), BERT], "edges": []})],
        [[{"id": "1", "label": "person", "type": "vertex"}, BERT, EDGE]],
    ],
)
def test_every_form_of_graphson_has_the_same_elements(tmp_path: Path, lines: list[Any]) -> None:
    anna, bert, edge = records(written(tmp_path, "graph.json", *lines))
    assert (anna.id, anna.label, anna.properties) == ("1", "person", {})
    assert (bert.id, bert.properties) == ("2", {"name": [("Bert", {"since": 2001})]})
    assert (edge.id, edge.label, edge.source.id, edge.target.id) == ("7", "knows", "1", "2")
    assert edge.properties == {"weight": 0.5}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": 1, "label": ', "line 2: The text is not valid JSON"),
        ({"label": "person"}, "line 2: the vertex has no id"),
        ({"id": 1, "label": 5}, "line 2: the label of the vertex is not a text: 5"),
        ({"id": 1, "properties": {"a": [{"value": {"b": 1}}]}}, "line 2: the property 'a' has the value {'b': 1}"),
        ({"id": 1, "properties": {"a": [{"value": None}]}}, "line 2: the property 'a' is null"),
        (
            {"id": 1, "properties": {"a": [{"value": typed("g:Double", "NaN")}]}},
            "line 2: the property 'a' has the value",
        ),
        ({"id": 1, "@class": "java.util.HashMap"}, "line 2: the file is GraphSON 1 with the names of Java's classes"),
        ([1], "line 2: it is not the JSON object of an element"),
    ],
)
def test_a_wrong_line_of_graphson_is_named(tmp_path: Path, line: Any, reason: str) -> None:
    path = written(tmp_path, "graph.json", BERT, line)
    with pytest.raises(CommandFailed) as failed:
        records(path)
    assert str(failed.value).startswith(f"{path}: {reason}")


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("id,label,pk,name,age:Int,tags:String[]", "a,person,p,Anna,31,x;y"),
        ("~id,~label,pk:String,name:String(single),age:Int(single),tags:String(set)[]", "a,person,p,Anna,31,x;y"),
    ],
)
def test_tables_of_vertices_have_plain_names_or_those_of_bulk_loaders(tmp_path: Path, header: str, row: str) -> None:
    (anna,) = records(written(tmp_path, "vertices.csv", header, row))
    assert (anna.id, anna.label) == ("a", "person")
    assert anna.properties == {
        "pk": [("p", {})],
        "name": [("Anna", {})],
        "age": [(31, {})],
        "tags": [("x", {}), ("y", {})],
    }


def test_tables_of_edges_may_name_partitions_and_labels_of_both_ends(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "edges.csv",
        "\ufeff~id,~from,~to,~label,fromPk,toPk:Int,toLabel,weight:Double,close:Bool,note:x",
        'e1,a,b,knows,p,5,person,0.25,true,"two\nlines"',
        ",a,b,,,,,,,",
    )
    first, second = records(path)
    assert first == EdgeRecord(
        "e1",
        "knows",
        EndRecord("a", "p"),
        EndRecord("b", 5, "person"),
        {"weight": 0.25, "close": True, "note:x": "two\nlines"},
    )
    assert second == EdgeRecord(None, "edge", EndRecord("a"), EndRecord("b"))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["id,age:Int", "a,old"], "line 2: the column 'age' has 'old', which is no int"),
        (["id,ok:Bool", "a,maybe"], "line 2: the column 'ok' has 'maybe', which is no bool"),
        (["id,label", "a,b,c"], "line 2: the line has 3 cells, the first line 2"),
        (["id,x:Double", "a,inf"], "line 2: the property 'x' has the value inf"),
        (["id,label", ",person"], "line 2: the vertex has no id"),
        (["from,to", "a,"], "line 2: the edge does not say where it goes to"),
        (["name,age", "a,1"], "line 1: the first line must name the columns"),
        ([""], "line 1: the first line must name the columns"),
    ],
)
def test_a_wrong_line_of_a_table_is_named(tmp_path: Path, lines: list[str], reason: str) -> None:
    path = written(tmp_path, "table.csv", *lines)
    with pytest.raises(CommandFailed) as failed:
        records(path)
    assert str(failed.value).startswith(f"{path}: {reason}")


@pytest.mark.parametrize(
    ("source", "key"), [(None, "oslo"), ("name", "Anna"), ("label", "person"), ("id", "a"), ("hash:1", "0")]
)
def test_the_partition_key_of_a_vertex_comes_from_where_it_is_told(source: str | None, key: str) -> None:
    vertex = VertexRecord("a", "person", {"city": [("oslo", {})], "name": [("Anna", {})]})
    found, document = DocumentMaker(KeyRule("city", source)).vertex(vertex)
    assert (found, document["city"]) == (key, key)
    assert [entry["_value"] for entry in document["name"]] == ["Anna"]


@pytest.mark.parametrize("values", [[], [("a", {}), ("b", {})], [(["a"], {})]])
def test_a_vertex_without_a_single_partition_key_is_refused(values: list[Any]) -> None:
    with pytest.raises(BadElement, match="property 'city'"):
        DocumentMaker(KeyRule("city")).vertex(VertexRecord("a", "person", {"city": values}))


def test_documents_of_edges_lie_with_their_source_and_name_their_target() -> None:
    maker = DocumentMaker(KeyRule("pk"))
    maker.vertex(VertexRecord("a", "person", {"pk": [("p", {})]}))
    maker.vertex(VertexRecord("b", "city", {"pk": [(5, {})]}))
    edge = EdgeRecord("e", "in", EndRecord("a"), EndRecord("b"), {"since": 2017})
    assert maker.edge(edge, line=9) == (
        "p",
        {
            "id": "e",
            "label": "in",
            "_isEdge": True,
            "pk": "p",
            "_vertexId": "a",
            "_vertexLabel": "person",
            "_sink": "b",
            "_sinkLabel": "city",
            "_sinkPartition": 5,
            "since": 2017,
        },
    )


def test_a_repeated_import_makes_the_same_documents() -> None:
    def made() -> list[Any]:
        maker = DocumentMaker(KeyRule("pk", "hash:7"))
        vertex = maker.vertex(VertexRecord("a", "person", {"name": [("x", {}), ("x", {"m": 1})]}))
        return [vertex, *(maker.edge(EdgeRecord(None, "l", EndRecord("a"), EndRecord("a")), line=n) for n in (1, 2))]

    first = made()
    assert first == made()
    assert len({document["id"] for _, document in first}) == 3
    assert len({entry["id"] for entry in first[0][1]["name"]}) == 2


def test_an_edge_with_the_id_of_a_vertex_of_its_partition_keeps_it_beside_that_of_its_document() -> None:
    maker = DocumentMaker(KeyRule("pk"))
    for vertex_id, key in (("1", "p"), ("2", "q")):
        maker.vertex(VertexRecord(vertex_id, "person", {"pk": [(key, {})]}))
    found = [maker.edge(EdgeRecord(edge_id, "knows", EndRecord("1"), EndRecord("2")), line=1)[1] for edge_id in "123"]
    assert [(document["id"], document.get("_edgeId")) for document in found] == [
        ("1|edge", "1"),
        ("2", None),
        ("3", None),
    ]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (EndRecord("missing"), "no file has the vertex 'missing'"),
        (EndRecord("twice"), "the vertex 'twice' is in several partitions"),
    ],
)
def test_an_end_that_cannot_be_found_is_named(target: EndRecord, reason: str) -> None:
    maker = DocumentMaker(KeyRule("pk"))
    for key in ("p", "q"):
        maker.vertex(VertexRecord("twice", "person", {"pk": [(key, {})]}))
    with pytest.raises(BadElement, match=reason):
        maker.edge(EdgeRecord("e", "knows", EndRecord("twice", "p", "person"), target), line=1)


@pytest.mark.parametrize("name", ["_sink", "label", "pk"])
def test_names_that_a_document_needs_are_no_properties_of_edges(name: str) -> None:
    maker = DocumentMaker(KeyRule("pk"))
    end = EndRecord("a", "p", "person")
    with pytest.raises(BadElement, match=f"'{name}' cannot be the name of a property"):
        maker.edge(EdgeRecord("e", "knows", end, end, {name: 1}), line=1)


@pytest.mark.parametrize("paths", [["/id"], ["/label"], ["/a/b"], ["/a", "/b"], ["pk"], ["/"]])
def test_keys_that_cannot_divide_a_graph_are_refused_with_a_sentence(paths: list[str]) -> None:
    assert refusal(paths)
    assert not is_graph({"partitionKey": {"paths": paths}})


def test_a_container_with_one_property_as_its_key_can_be_a_graph() -> None:
    assert is_graph({"partitionKey": {"paths": ["/city"]}})
    assert is_graph({})
