"""TinkerPop's toy graphs: read from its own data files, loaded through addV and addE."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gremlin_python.statics import long

from conformance.gremlin.notation import Element

# Older releases write v3d0 where newer ones write v3.
DATA_FILES = {
    "modern": "tinkerpop-modern-v3*.json",
    "crew": "tinkerpop-crew-v3*.json",
    "sink": "tinkerpop-sink-v3*.json",
    "grateful": "grateful-dead-v3*.json",
}
Run = Callable[[str, dict[str, Any]], Sequence[Any]]


@dataclass(slots=True)
class ToyGraph:
    vertices: dict[Any, dict[str, Any]] = field(default_factory=dict)
    edges: list[dict[str, Any]] = field(default_factory=list)
    found: dict[tuple[str, str], Element] = field(default_factory=dict)

    def find(self, kind: str, name: str) -> Element:
        return self.found.get((kind, name)) or Element(kind, name)


def read_graph(folder: Path, graph: str, new_id: Callable[[Any], Any]) -> ToyGraph:
    """`new_id` makes the ids to store of those in the file."""
    toy = ToyGraph()
    path = next(folder.rglob(DATA_FILES[graph]))
    for line in path.read_text(encoding="utf-8").splitlines():
        vertex = _plain(json.loads(line))
        vertex["id"] = new_id(vertex["id"])
        toy.vertices[vertex["id"]] = vertex
        for label, edges in vertex.get("outE", {}).items():
            for edge in edges:
                changed = {"id": new_id(edge["id"]), "label": label, "outV": vertex["id"], "inV": new_id(edge["inV"])}
                toy.edges.append(edge | changed)
    names = {id_: vertex["properties"]["name"][0]["value"] for id_, vertex in toy.vertices.items()}
    for id_, vertex in toy.vertices.items():
        toy.found["v", names[id_]] = Element("v", id_, vertex["label"])
    for edge in toy.edges:
        name = f"{names[edge['outV']]}-{edge['label']}->{names[edge['inV']]}"
        toy.found["e", name] = Element("e", edge["id"], edge["label"], name)
    return toy


def _plain(value: Any) -> Any:
    """GraphSON 3 without its types; a long stays item, so that it is sent back as it came."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"@type", "@value"}:
        inner = value["@value"]
        kind = {"g:Int64": long, "g:Double": float, "g:Float": float}.get(value["@type"], _plain)
        return kind(inner)
    return {key: _plain(item) for key, item in value.items()}


def load(toy: ToyGraph, run: Run) -> None:
    """Keys stand in the text and values are bound, so that a server can keep what it made of the text."""
    run("g.V().drop()", {})
    for vertex in toy.vertices.values():
        run(*_add_vertex(vertex))
    for edge in toy.edges:
        run(*_add_edge(edge))
    for text, wanted in (("g.V().count()", len(toy.vertices)), ("g.E().count()", len(toy.edges))):
        (count,) = run(text, {})
        if count != wanted:
            raise SystemExit(f"{text} answers {count} after loading; {wanted} expected")


def _add_vertex(vertex: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    text, values = "g.addV(l).property(T.id, i)", {"l": vertex["label"], "i": vertex["id"]}

    def bound(value: Any) -> str:
        values[f"v{len(values)}"] = value
        return f"v{len(values) - 1}"

    for key, several in vertex["properties"].items():
        for item in several:
            text += f".property({'list' if len(several) > 1 else 'single'}, '{key}', {bound(item['value'])}"
            text += "".join(f", '{name}', {bound(meta)}" for name, meta in item.get("properties", {}).items()) + ")"
    return text, values


def _add_edge(edge: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    values = {"o": edge["outV"], "l": edge["label"], "t": edge["inV"], "i": edge["id"]}
    text = "g.V(o).addE(l).to(__.V(t)).property(T.id, i)"
    for key, value in edge.get("properties", {}).items():
        values[f"v{len(values)}"] = value
        text += f".property('{key}', v{len(values) - 1})"
    return text, values
