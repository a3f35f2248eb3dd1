"""Steps that add elements: `addV` and `addE`, with the `property` calls behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.merging import unmerged
from asterism.languages.gremlin.engine.modulators import MISSING
from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.step import AsyncStep, Step
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.contract import Cardinality, EdgeDraft, VertexDraft
from asterism.languages.gremlin.graph.elements import DEFAULT_LABEL, Vertex
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.basic import LabelStep
from asterism.languages.gremlin.steps.operands import (
    Operand,
    PropertyCall,
    PropertyValue,
    checked_label,
    find_vertices,
    operand_of,
    property_calls,
    property_values,
    removes_null,
    scoped_value,
)
from asterism.languages.gremlin.tree import T_ID, T_LABEL, Instruction, Token, Traversal

DEFAULT_EDGE_LABEL = "edge"


class AddVertexStep(AsyncStep):
    """`addV()`: a new vertex for each traverser."""

    def __init__(self, label: Operand, properties: Sequence[PropertyCall], *, keeps_all: bool) -> None:
        self.label = label
        self.properties = properties
        self.keeps_all = keeps_all

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        run, batch = frame.run, unmerged(batch)
        labels = await self.label.values(batch, run)
        properties = await property_values(self.properties, batch, run)
        found: Batch = []
        for traverser, label, own in zip(batch, labels, properties, strict=True):
            vertex = await run.graph.add_vertex(vertex_draft(label, own, keeps_all=self.keeps_all))
            found.append(traverser.to(vertex))
        return found


def vertex_draft(label: Any, properties: Sequence[PropertyValue], *, keeps_all: bool = False) -> VertexDraft:
    """Return the draft of a vertex, whose id and label may be among its properties. `keeps_all`: a name that comes
    again without a cardinality gives the vertex another value; otherwise the last counts, as in the service."""
    draft = VertexDraft("")
    names: set[Any] = set()
    for entry in properties:
        if entry.name == T_ID:
            draft.vertex_id = new_id_text(entry.value)
        elif entry.name == T_LABEL:
            label = entry.value
        elif not entry.is_removed:
            default: Cardinality = "list" if keeps_all and entry.name in names else "single"
            draft.properties.append((entry.name, entry.value, entry.cardinality or default, entry.meta))
            names.add(entry.name)
    draft.label = checked_label(label, DEFAULT_LABEL)
    return draft


def new_id_text(value: Any) -> str | None:
    """Return the id of a new element as a text; None for null, which asks for a new one."""
    if value is None:
        return None
    if isinstance(value, list | tuple | dict | set | frozenset):
        raise ExecutionFailure("The id of an element must be a text or a number.")
    return str(value)


class AddEdgeStep(AsyncStep):
    """`addE()`: a new edge for each traverser, from or to the vertex it is at unless the step names both."""

    def __init__(
        self, label: Operand, properties: Sequence[PropertyCall], *, source: EndOperand, target: EndOperand
    ) -> None:
        self.label = label
        self.properties = properties
        self.source = source
        self.target = target

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        run, batch = frame.run, unmerged(batch)
        labels = [checked_label(label, DEFAULT_EDGE_LABEL) for label in await self.label.values(batch, run)]
        targets = await self.target.vertices(batch, labels, run)
        sources = await self.source.vertices(batch, labels, run)
        properties = await property_values(self.properties, batch, run)
        found: Batch = []
        for traverser, label, source, target, own in zip(batch, labels, sources, targets, properties, strict=True):
            edge = await run.graph.add_edge(edge_draft(label, source, target, own))
            found.append(traverser.to(edge))
        return found


def edge_draft(label: str, source: Vertex, target: Vertex, properties: Sequence[PropertyValue]) -> EdgeDraft:
    """Return the draft of an edge, whose id and label may be among its properties."""
    draft = EdgeDraft(label, source, target)
    for entry in properties:
        if entry.name == T_ID:
            draft.edge_id = new_id_text(entry.value)
        elif entry.name == T_LABEL:
            draft.label = checked_label(entry.value, DEFAULT_EDGE_LABEL)
        elif not entry.is_removed:
            draft.properties[entry.name] = entry.value
    return draft


class EndOperand:
    """An end of new edges: the value of a child, a labelled place of the path, a vertex, or where the traverser is."""

    def __init__(self, name: str, argument: Any, compiler: Compiler, *, is_given: bool) -> None:
        self.name = name
        self._is_given = is_given
        self._label = argument if isinstance(argument, str) else None
        self._operand = operand_of(argument, compiler)
        if self._label is not None:
            compiler.needs_path = True

    async def vertices(self, batch: Batch, edge_labels: Sequence[str], run: Run) -> list[Vertex]:
        """Return the vertex for each traverser. Vertices that are known from edges are loaded together."""
        if not self._is_given:
            values = [traverser.value for traverser in batch]
        elif self._label is not None:
            values = [scoped_value(traverser, self._label, run) for traverser in batch]
        else:
            values = await self._operand.values(batch, run)
        unloaded = [value for value in dict.fromkeys(filter(_is_vertex, values)) if not value.is_loaded]
        loaded = dict(zip(unloaded, await run.graph.load(unloaded), strict=True))
        found: list[Vertex] = []
        for value, edge_label in zip(values, edge_labels, strict=True):
            vertex = loaded.get(value, value) if _is_vertex(value) else None
            if vertex is None:
                if not _is_vertex(value) and value is not MISSING:
                    vertex = next(iter(await find_vertices(run.graph, value)), None)
                if vertex is None:
                    raise ExecutionFailure(
                        f"The value given to addE({edge_label}).{self.name}() must resolve to a Vertex or the ID of a "
                        f"Vertex present in the graph."
                    )
            found.append(vertex)
        return found


def _is_vertex(value: Any) -> bool:
    return isinstance(value, Vertex)


# --- makers ---------------------------------------------------------------------------------------------------------


class _Folded:
    """The instructions behind an addition that belong to it: properties, ends, and labels of its place in the path."""

    def __init__(self, call: StepCall, compiler: Compiler, *, takes_ends: bool) -> None:
        self.properties: list[PropertyCall] = []
        self.ends: dict[str, Any] = {}
        labels: list[str] = []
        for modulator in call.modulators:
            if modulator.name in ("from", "to"):
                self._take_end(call, modulator)
        for instruction in call.following:
            if instruction.name == "property":
                self.properties += property_calls(instruction, call, compiler)
            elif instruction.name == "as":
                labels += instruction.arguments
            elif takes_ends and instruction.name in ("from", "to") and not _is_direction(instruction):
                self._take_end(call, instruction)
            elif instruction.name != "with":
                break
            call.consumed += 1
        if labels:
            compiler.needs_path = True
        self.labels = [LabelStep(tuple(labels))] if labels else []

    def _take_end(self, call: StepCall, instruction: Instruction) -> None:
        if len(instruction.arguments) != 1:
            raise call.refused(f"Unable to bind to method '{instruction.name}'")
        self.ends[instruction.name] = instruction.arguments[0]


def _is_direction(instruction: Instruction) -> bool:
    argument = instruction.arguments[0] if instruction.arguments else None
    return isinstance(argument, Token) and argument.kind == "Direction"


def _make_add_vertex(call: StepCall, compiler: Compiler) -> Sequence[Step]:
    compiler.writes = True
    label, pairs = _label_and_pairs(call, compiler)
    folded = _Folded(call, compiler, takes_ends=False)
    keeps_all = compiler.dialect == "tinkerpop"
    return [AddVertexStep(label, [*pairs, *folded.properties], keeps_all=keeps_all), *folded.labels]


def _label_and_pairs(call: StepCall, compiler: Compiler) -> tuple[Operand, list[PropertyCall]]:
    """Return the label of an `addV`, and the properties of its oldest form, `addV('label', 'x', 'name', 'n')`."""
    arguments = call.arguments
    if len(arguments) <= 1:
        return operand_of(arguments[0] if arguments else None, compiler), []
    if len(arguments) % 2:
        raise call.refused("addV() takes a label, or pairs of names and values")
    pairs: list[PropertyCall] = []
    for at in range(0, len(arguments), 2):
        name = compiler.key(arguments[at])
        if name in ("id", "label"):
            name = T_ID if name == "id" else T_LABEL
        pairs.append(
            PropertyCall(
                Operand(name), operand_of(arguments[at + 1], compiler), None, removes_null=removes_null(compiler)
            )
        )
    return Operand(), pairs


def _make_add_edge(call: StepCall, compiler: Compiler) -> Sequence[Step]:
    compiler.writes = True
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], str | Traversal | None):
        raise call.refused("addE() takes the label of the edge")
    folded = _Folded(call, compiler, takes_ends=True)
    ends = folded.ends
    step = AddEdgeStep(
        operand_of(call.arguments[0], compiler),
        folded.properties,
        source=EndOperand("from", ends.get("from"), compiler, is_given="from" in ends),
        target=EndOperand("to", ends.get("to"), compiler, is_given="to" in ends),
    )
    return [step, *folded.labels]


STEPS: Mapping[str, Maker] = {"addV": _make_add_vertex, "addE": _make_add_edge}
