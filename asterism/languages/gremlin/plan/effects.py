"""Traversals that do more than compute a value: for those, equal traversers must be run one by one."""

from __future__ import annotations

from typing import Any

from asterism.languages.gremlin.tree import Traversal

# Steps that leave something behind, or whose result is a matter of chance.
_EFFECTS = frozenset(
    {
        *("addE", "addV", "aggregate", "coin", "drop", "mergeE", "mergeV", "property", "sample", "sideEffect", "store"),
        *("call", "subgraph", "tree"),
    }
)
# Steps that do if they are given a name for their result.
_EFFECTS_BY_NAME = frozenset({"group", "groupCount"})


def has_effects(argument: Any) -> bool:
    """Return whether a traversal, or one of its children, changes anything or depends on chance."""
    if not isinstance(argument, Traversal):
        return False
    return any(
        instruction.name in _EFFECTS
        or (instruction.name in _EFFECTS_BY_NAME and bool(instruction.arguments))
        or any(has_effects(child) for child in instruction.arguments)
        for instruction in argument.steps
    )
