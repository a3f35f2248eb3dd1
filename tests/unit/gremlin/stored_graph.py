"""Graphs on containers of a database in this process, for tests of reads and writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from asterism.languages.gremlin.engine.evaluate import evaluate
from asterism.languages.gremlin.engine.run import Run
from asterism.languages.gremlin.graph.session import StoredGraph, open_session
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.table import STEPS
from asterism.languages.gremlin.tree import Instruction, Traversal
from asterism.models.documents.container import Container
from asterism.throughput.budgets import Manual
from tests.support.world import World, open_world


@dataclass
class Graph:
    """A container that is used as a graph."""

    world: World
    container: Container
    dialect: Literal["cosmos", "tinkerpop"] = "cosmos"

    def session(self, *, may_write: bool = True, looks_first: bool = False) -> StoredGraph:
        services = self.world.store.services
        return open_session(self.container, services, may_write=may_write, looks_first=looks_first)

    async def create(self, *documents: Mapping[str, Any]) -> None:
        for document in documents:
            await self.container.create_item(dict(document), None)

    async def results(self, *steps: Instruction, session: StoredGraph | None = None) -> list[Any]:
        """Run a traversal and return its results, each as often as its bulk says."""
        session = session or self.session()
        compiler = Compiler(STEPS, dialect=self.dialect, key_name=session.key_name)
        pipeline = compiler.root(Traversal(steps))
        run = Run(session, monotonic=lambda: 0.0, tracks_path=compiler.needs_path)
        return [
            traverser.value
            async for batch in evaluate(pipeline, run)
            for traverser in batch
            for _ in range(traverser.bulk)
        ]

    async def split(self, range_id: int) -> None:
        await self.world.reshaper.finished(await self.world.reshaper.split(self.container.keyspace, range_id))


@asynccontextmanager
async def open_graph(
    *, partitions: int = 4, enforce: bool = False, is_fixed: bool = False, **settings: object
) -> AsyncIterator[Graph]:
    """Open a graph in memory whose partition key is `/pk`, divided into some physical partitions, or without a key."""
    async with open_world(None, enforce=enforce) as world:
        if is_fixed:
            settings["partitionKey"] = {"paths": ["/_partitionKey"], "kind": "Hash", "version": 2, "systemKey": True}
        container = await world.container(throughput=Manual(6_000 * partitions), **settings)
        assert len(container.keyspace.record.map.ranges) == partitions
        yield Graph(world, container)


def vertex(vertex_id: str, pk: str, label: str = "person", **properties: Any) -> dict[str, Any]:
    values = {name: [{"id": f"{vertex_id}-{name}", "_value": value}] for name, value in properties.items()}
    return {"id": vertex_id, "label": label, "pk": pk, **values}


def edge(
    edge_id: str, source: Mapping[str, Any], target: Mapping[str, Any], label: str = "knows", **properties: Any
) -> dict[str, Any]:
    return {
        "id": edge_id,
        "label": label,
        "pk": source["pk"],
        "_isEdge": True,
        "_vertexId": source["id"],
        "_vertexLabel": source["label"],
        "_sink": target["id"],
        "_sinkLabel": target["label"],
        "_sinkPartition": target["pk"],
        **properties,
    }


def step(name: str, *arguments: Any) -> Instruction:
    return Instruction(name, arguments)
