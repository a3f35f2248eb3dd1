"""Rewriting of traversals as data: what strategies have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from asterism.languages.gremlin.tree import Instruction, Token, Traversal

Steps = tuple[Instruction, ...]

ADJACENT = frozenset({"out", "in", "both"})
INCIDENT = frozenset({"outE", "inE", "bothE", "toE"})
ENDS = frozenset({"outV", "inV", "bothV", "otherV", "toV"})
# Filters on an element alone: a filter that a strategy adds may stand behind them, so that a plan finds them next to
# the step that reads.
HAS_STEPS = frozenset({"has", "hasLabel", "hasId", "hasNot", "hasKey", "hasValue"})
_PASSING = HAS_STEPS | {"as"}
# Instructions that configure a step that adds an element.
_DRAFT_PARTS = frozenset({"property", "from", "to", "with"})
# Steps that give back the elements they got.
_FILTERS_AND_SIDE_EFFECTS = _PASSING | {
    "filter",
    "where",
    "and",
    "or",
    "not",
    "is",
    "dedup",
    "limit",
    "range",
    "skip",
    "tail",
    "coin",
    "sample",
    "simplePath",
    "cyclicPath",
    "identity",
    "order",
    "barrier",
    "aggregate",
    "store",
    "sideEffect",
    "property",
    "by",
    "with",
}


def rewritten(traversal: Traversal, rewrite: Callable[[Steps], Steps]) -> Traversal:
    """Return a traversal with every chain of it rewritten, its children first: chains that `rewrite` puts in stay."""
    return Traversal(rewrite(tuple(_with_children(step, rewrite) for step in traversal.steps)), traversal.source)


def _with_children(instruction: Instruction, rewrite: Callable[[Steps], Steps]) -> Instruction:
    if not any(isinstance(argument, Traversal | list | tuple | dict) for argument in instruction.arguments):
        return instruction
    arguments = tuple(_argument(argument, rewrite) for argument in instruction.arguments)
    return Instruction(instruction.name, arguments, instruction.line, instruction.column)


def _argument(argument: Any, rewrite: Callable[[Steps], Steps]) -> Any:
    if isinstance(argument, Traversal):
        return rewritten(argument, rewrite)
    if isinstance(argument, list | tuple):
        return type(argument)(_argument(member, rewrite) for member in argument)
    if isinstance(argument, dict):
        return {key: _argument(value, rewrite) for key, value in argument.items()}
    return argument


def chains(traversal: Traversal, parents: Steps = ()) -> Iterator[tuple[Steps, Steps]]:
    """Yield every chain of a traversal, with the instructions that it is a child of, the nearest last."""
    yield traversal.steps, parents
    for step in traversal.steps:
        for argument in step.arguments:
            for child in _children(argument):
                yield from chains(child, (*parents, step))


def _children(argument: Any) -> Iterator[Traversal]:
    if isinstance(argument, Traversal):
        yield argument
    elif isinstance(argument, list | tuple):
        for member in argument:
            yield from _children(member)
    elif isinstance(argument, dict):
        for value in argument.values():
            yield from _children(value)


def is_direction_step(instruction: Instruction) -> bool:
    """Return whether this is `to(Direction.OUT, ...)`, which is a step; other `to` are modulators."""
    argument = instruction.arguments[0] if instruction.arguments else None
    return instruction.name == "to" and isinstance(argument, Token) and argument.kind == "Direction"


def returns_vertices(instruction: Instruction) -> bool:
    """Return whether a step reads vertices."""
    name = instruction.name
    return name == "V" or name in ADJACENT or name in ENDS or is_direction_step(instruction)


def returns_edges(instruction: Instruction) -> bool:
    """Return whether a step reads edges."""
    return instruction.name == "E" or instruction.name in INCIDENT


def end_of_call(steps: Steps, place: int) -> int:
    """Return the place behind a step and the instructions that a filter of its results may stand behind."""
    is_draft = steps[place].name in ("addV", "addE")
    place += 1
    while place < len(steps):
        step = steps[place]
        if step.name in _PASSING or (is_draft and step.name in _DRAFT_PARTS and not is_direction_step(step)):
            place += 1
        else:
            break
    return place


def kind_before(steps: Steps, place: int) -> str:
    """Return "vertex", "edge" or "property" for the elements that reach a step; "unknown" if it cannot be told."""
    for step in reversed(steps[:place]):
        if returns_vertices(step) or step.name in ("addV", "mergeV"):
            return "vertex"
        if returns_edges(step) or step.name in ("addE", "mergeE"):
            return "edge"
        if step.name in ("properties", "propertyMap", "valueMap", "elementMap"):
            return "property"
        if step.name not in _FILTERS_AND_SIDE_EFFECTS and step.name not in ("from", "to"):
            return "unknown"
    return "unknown"


def as_filter(criterion: Traversal) -> Steps:
    """Return the steps that let elements pass which a traversal yields something for."""
    if criterion.steps and all(step.name in HAS_STEPS for step in criterion.steps):
        # Plain conditions, which a plan can use to find elements.
        return criterion.steps
    return (Instruction("filter", (criterion,)),)
