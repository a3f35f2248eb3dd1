"""Steps that change or remove what is there: `property` and `drop`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.step import AsyncStep
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.contract import GraphSession
from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.operands import PropertyCall, PropertyValue, property_calls, property_values
from asterism.languages.gremlin.tree import Token


class PropertyStep(AsyncStep):
    """`property()` on elements that exist."""

    def __init__(self, properties: Sequence[PropertyCall]) -> None:
        self.properties = properties

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        graph = frame.run.graph
        properties = await property_values(self.properties, batch, frame.run)
        found: Batch = []
        for traverser, own in zip(batch, properties, strict=True):
            element = traverser.value
            for entry in own:
                element = await set_property(graph, element, entry)
            found.append(traverser.with_value(element))
        return found


async def set_property(graph: GraphSession, element: Any, entry: PropertyValue) -> Any:
    """Set a property of an element; return the element as it is then."""
    name = entry.name
    if isinstance(name, Token):
        raise ExecutionFailure(f"T.{name.name} is immutable on existing elements")
    if entry.is_removed:
        return await _remove_property(graph, element, name)
    if isinstance(element, Vertex):
        return await graph.set_vertex_property(element, name, entry.value, entry.cardinality or "single", entry.meta)
    if entry.cardinality is not None:
        raise ExecutionFailure(
            f"Property cardinality can only be set for a Vertex but the traversal encountered "
            f"{type(element).__name__} for key: {name}"
        )
    if isinstance(element, Edge):
        return await graph.set_edge_property(element, name, entry.value)
    if isinstance(element, VertexProperty):
        return await graph.set_meta_property(element, name, entry.value)
    raise ExecutionFailure(f"The property() step can only be applied to elements, not to a {type(element).__name__}.")


async def _remove_property(graph: GraphSession, element: Any, name: str) -> Any:
    """Remove all values of a property; return the element as it is then."""
    if isinstance(element, Vertex):
        (loaded,) = await graph.load([element])
        if loaded is None or name not in loaded.properties:
            return element
        await graph.remove(loaded.properties[name])
        (changed,) = await graph.load([element])
        return changed or element
    if isinstance(element, Edge):
        await graph.remove([Property(name, None, element)])
        kept = {key: value for key, value in element.document.items() if key != name}
        return Edge(kept, key_name=element.key_name)
    if isinstance(element, VertexProperty):
        await graph.remove([Property(name, None, element)])
        meta = {key: value for key, value in element.meta.items() if key != name}
        return VertexProperty(element.id, element.label, element.value, element.vertex, meta)
    raise ExecutionFailure(f"The property() step can only be applied to elements, not to a {type(element).__name__}.")


class DropStep(AsyncStep):
    """`drop()`: removes elements and properties, and yields nothing."""

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        values = [traverser.value for traverser in batch]
        for value in values:
            if not isinstance(value, Vertex | Edge | VertexProperty | Property):
                raise ExecutionFailure(
                    f"The drop() step can only be applied to elements and properties, not to a {type(value).__name__}."
                )
        await frame.run.graph.remove(values)
        return []


def _make_property(call: StepCall, compiler: Compiler) -> PropertyStep:
    compiler.writes = True
    return PropertyStep(property_calls(call.instruction, call, compiler))


def _make_drop(call: StepCall, compiler: Compiler) -> DropStep:
    if call.arguments:
        raise call.refused("drop() takes no arguments")
    compiler.writes = True
    return DropStep()


STEPS: Mapping[str, Maker] = {"drop": _make_drop, "property": _make_property}
