"""PartitionStrategy: a traversal reads the elements of some partitions, and writes into one.

The partitions of this strategy are values of a property. Where the property is the graph's own partition key, the
condition behind `V()` and `E()` routes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.plan.strategies import names
from asterism.languages.gremlin.plan.strategies.rewriting import (
    Steps,
    end_of_call,
    kind_before,
    returns_edges,
    returns_vertices,
    rewritten,
)
from asterism.languages.gremlin.plan.strategies.vertex_properties import with_visible_properties
from asterism.languages.gremlin.tree import Instruction, Predicate, Token, Traversal

# A step of our own that adds an entry to a map (`steps/property_filters.py`).
ENTRY_STEP = "~withEntry"


@dataclass(frozen=True, slots=True)
class _Partitions:
    key: str
    read: tuple[Any, ...]
    write: Any
    includes_meta_properties: bool
    is_graph_key: bool

    @property
    def condition(self) -> Instruction:
        return Instruction("has", (self.key, Predicate("within", list(self.read))))


def partitioned(traversal: Traversal, settings: Mapping[str, Any], *, key_name: str | None) -> Traversal:
    """Return the traversal as it runs on the partitions of the settings."""
    key = settings.get("partitionKey")
    if not isinstance(key, str):
        raise CompileFailure("PartitionStrategy needs a partitionKey, the name of the property that divides the graph.")
    partitions = _Partitions(
        key,
        names.texts(settings.get("readPartitions")),
        settings.get("writePartition"),
        names.flag(settings, "includeMetaProperties", default=False),
        key == key_name,
    )
    return rewritten(traversal, lambda steps: _rewrite(steps, partitions))


def _rewrite(steps: Steps, partitions: _Partitions) -> Steps:
    if partitions.includes_meta_properties:
        steps = _with_meta_properties(steps, partitions)
    found: list[Instruction] = []
    place = 0
    while place < len(steps):
        step = steps[place]
        place += 1
        if step.name in ("addV", "addE"):
            found.append(step)
            found += _write(step, partitions)
        elif step.name in ("mergeV", "mergeE"):
            found.append(_merge(step, partitions))
        elif returns_vertices(step) or returns_edges(step):
            end = end_of_call(steps, place - 1)
            found += (step, *steps[place:end], partitions.condition)
            place = end
        else:
            found.append(step)
    return tuple(found)


def _write(step: Instruction, partitions: _Partitions) -> Steps:
    # An edge lies in the partition of its source: the graph's own key is not among its properties.
    if partitions.write is None or (step.name == "addE" and partitions.is_graph_key):
        return ()
    return (Instruction("property", (partitions.key, partitions.write)),)


def _merge(step: Instruction, partitions: _Partitions) -> Instruction:
    if not _write(Instruction("addE" if step.name == "mergeE" else "addV"), partitions):
        return step
    entry = Instruction(ENTRY_STEP, (partitions.key, partitions.write))
    sought = step.arguments[0] if step.arguments else Traversal()
    if isinstance(sought, dict):
        merged: Any = {**sought, partitions.key: partitions.write}
    elif isinstance(sought, Traversal):
        merged = Traversal((*sought.steps, entry))
    else:
        merged = {partitions.key: partitions.write}
    return Instruction(step.name, (merged, *step.arguments[1:]), step.line, step.column)


def _with_meta_properties(steps: Steps, partitions: _Partitions) -> Steps:
    for step in steps:
        if step.name in ("properties", "values", "propertyMap", "valueMap") and partitions.key in step.arguments:
            raise CompileFailure("Cannot explicitly request the partitionKey in the traversal")
    visible = Traversal((partitions.condition,))
    written = tuple(
        _with_partition(step, partitions) if kind_before(steps, place) == "vertex" else step
        for place, step in enumerate(steps)
    )
    return with_visible_properties(written, visible)


def _with_partition(step: Instruction, partitions: _Partitions) -> Instruction:
    """Return `property(key, value)` with the partition as a property of the property."""
    if step.name != "property" or partitions.write is None:
        return step
    arguments = step.arguments
    has_cardinality = bool(arguments) and isinstance(arguments[0], Token) and arguments[0].kind == "Cardinality"
    key_place = 1 if has_cardinality else 0
    if len(arguments) < key_place + 2 or not isinstance(arguments[key_place], str):
        return step
    if arguments[key_place] == partitions.key:
        return step
    return Instruction("property", (*arguments, partitions.key, partitions.write), step.line, step.column)
