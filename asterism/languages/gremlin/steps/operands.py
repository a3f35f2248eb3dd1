"""Operands of steps that write: constants, or the first result of a child traversal for each traverser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING
from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Run
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.contract import Cardinality, GraphSession, Lookup
from asterism.languages.gremlin.graph.documents import is_key_value
from asterism.languages.gremlin.graph.elements import Vertex
from asterism.languages.gremlin.plan.calls import StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.lookups import plain
from asterism.languages.gremlin.tree import CardinalityValue, Instruction, Token, Traversal


@dataclass(frozen=True, slots=True)
class Operand:
    """A constant, or a child that gives a value for each traverser."""

    constant: Any = None
    child: Pipeline | None = None

    async def values(self, batch: Batch, run: Run) -> list[Any]:
        """Return the value for each traverser; MISSING where the child yields nothing."""
        if self.child is None:
            return [self.constant] * len(batch)
        found = await self.child.first(batch, run)
        return [MISSING if result is None else result.value for result in found]


def operand_of(argument: Any, compiler: Compiler) -> Operand:
    if isinstance(argument, Traversal):
        return Operand(child=compiler.child(argument))
    return Operand(argument)


@dataclass(frozen=True, slots=True)
class PropertyCall:
    """One property of a `property()`: its name, or T.id or T.label, its value, and its meta-properties."""

    name: Operand
    value: Operand
    # None if the call gave none.
    cardinality: Cardinality | None
    meta: tuple[tuple[str, Operand], ...] = ()
    # True: null removes the property. The service refuses it, and the graph does.
    removes_null: bool = False


def removes_null(compiler: Compiler) -> bool:
    """Return whether a property that is set to null is removed, as in graphs of TinkerPop that store no nulls."""
    return compiler.dialect == "tinkerpop"


def property_calls(instruction: Instruction, call: StepCall, compiler: Compiler) -> list[PropertyCall]:
    """Return the properties that an instruction `property(...)` sets, in any of its forms."""
    arguments = list(instruction.arguments)
    cardinality: Cardinality | None = None
    if arguments and isinstance(arguments[0], Token) and arguments[0].kind == "Cardinality":
        cardinality = cardinality_named(arguments.pop(0).name)
    if len(arguments) == 1 and (arguments[0] is None or isinstance(arguments[0], dict)):
        entries = (arguments[0] or {}).items()
        return [_of_entry(compiler.key(name), value, cardinality, compiler) for name, value in entries]
    if len(arguments) < 2 or len(arguments) % 2:
        raise call.refused(f"property() takes a name and a value, and pairs of both, not {len(arguments)} arguments")
    name, value, *pairs = arguments
    meta = tuple((str(pairs[at]), operand_of(pairs[at + 1], compiler)) for at in range(0, len(pairs), 2))
    return [
        PropertyCall(
            operand_of(compiler.key(name), compiler),
            operand_of(value, compiler),
            cardinality,
            meta,
            removes_null(compiler),
        )
    ]


def _of_entry(name: Any, value: Any, cardinality: Cardinality | None, compiler: Compiler) -> PropertyCall:
    if isinstance(value, CardinalityValue):
        cardinality, value = cardinality_named(value.cardinality), value.value
    return PropertyCall(Operand(name), operand_of(value, compiler), cardinality, removes_null=removes_null(compiler))


def cardinality_named(name: str) -> Cardinality:
    return "list" if name == "list" else "set" if name == "set" else "single"


@dataclass(slots=True)
class PropertyValue:
    """A property that is set on one element, or removed from it (`is_removed`)."""

    name: Any
    value: Any
    cardinality: Cardinality | None
    meta: dict[str, Any]
    is_removed: bool = False


async def property_values(calls: Sequence[PropertyCall], batch: Batch, run: Run) -> list[list[PropertyValue]]:
    """Return the properties for each traverser; those whose value is a traversal without results are left out."""
    found: list[list[PropertyValue]] = [[] for _ in batch]
    for call in calls:
        names = await call.name.values(batch, run)
        values = await call.value.values(batch, run)
        metas: list[dict[str, Any]] = [{} for _ in batch]
        for meta_name, operand in call.meta:
            for meta, value in zip(metas, await operand.values(batch, run), strict=True):
                if value is not MISSING:
                    meta[meta_name] = value
        for own, name, value, meta in zip(found, names, values, metas, strict=True):
            if name is not MISSING and value is not MISSING:
                is_removed = value is None and call.removes_null
                own.append(PropertyValue(name, value, call.cardinality, meta, is_removed))
    return found


def checked_label(label: Any, default: str) -> str:
    """Return the label of a new element; refuse one that no element can have."""
    if label is None or label is MISSING:
        return default
    if not isinstance(label, str):
        raise ExecutionFailure(f"A label must be a text, not a {type(label).__name__}.")
    if not label:
        raise ExecutionFailure("Label can not be empty")
    if label.startswith("~"):
        raise ExecutionFailure(f"Label can not be a hidden key: {label}")
    return label


async def find_vertices(graph: GraphSession, value: Any) -> list[Vertex]:
    """Return the vertices that a value names: a vertex, an id, or a partition key with an id."""
    if isinstance(value, Vertex):
        if value.is_loaded:
            return [value]
        (loaded,) = await graph.load([value])
        return [] if loaded is None else [loaded]
    if value is None or value is MISSING or isinstance(value, dict | bool):
        return []
    if isinstance(value, list | tuple):
        if graph.key_name is None or len(value) != 2 or not is_key_value(value[0]):
            return []
        lookup = Lookup(places=((plain(value[0]), str(value[1])),))
    else:
        lookup = Lookup(ids=(str(value),))
    return [vertex async for batch in graph.vertices(lookup) for vertex in batch]


def scoped_value(traverser: Traverser, name: str, run: Run) -> Any:
    """Return what a label of the path stands for, or else a side effect; MISSING for neither."""
    node = traverser.path
    while node is not None:
        if name in node.labels:
            return node.value
        node = node.parent
    effect = run.side_effects.get(name)
    return MISSING if effect is None else effect.value
