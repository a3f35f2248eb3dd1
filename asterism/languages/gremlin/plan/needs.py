"""The look ahead: whether later steps may ask for the properties of vertices, which are otherwise not loaded.

Conservative: a step that is not known here needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from asterism.languages.gremlin.plan.calls import StepCall
from asterism.languages.gremlin.plan.has_conditions import has_conditions
from asterism.languages.gremlin.tree import Instruction, Token, Traversal

# Steps that go on with the vertices themselves and ask for nothing but ids, labels and places.
_PASSING: Final = frozenset(
    {"identity", "dedup", "limit", "range", "skip", "tail", "barrier", "simplePath", "cyclicPath", "coin"}
)
# Steps that go on with something else, for which ids, labels and places are enough.
_LEAVING: Final = frozenset(
    {"count", "id", "label", "out", "in", "both", "outE", "inE", "bothE", "toE", "V", "E", "constant", "discard"}
)
# Steps that look at results of children without passing them on.
_FILTERS: Final = frozenset({"where", "filter", "not", "and", "or"})
# Steps whose children's results go on behind them.
_BRANCHES: Final = frozenset({"union", "optional", "coalesce", "flatMap", "local", "map"})
_PATH_FILTERS: Final = frozenset({"simplePath", "cyclicPath"})
# Steps that bring back earlier places of a path.
_RECALLING: Final = frozenset({"path", "tree", "select", "as", "match", "subgraph", "profile", "executionProfile"})


def needs_documents(following: Sequence[Instruction], parents: Sequence[StepCall], *, materializes: bool) -> bool:
    """Return whether the vertices of a step are asked for their properties, by the instructions behind it or by those
    behind the steps that it is a child of (the nearest last). `materializes`: results are shown with properties."""
    if _recalls(following) or any(_recalls(parent.following) or _recalls(parent.modulators) for parent in parents):
        return True
    return _needs(following, parents, materializes)


def _recalls(instructions: Sequence[Instruction]) -> bool:
    found = list(_all(instructions))
    if any(instruction.name in _RECALLING for instruction in found):
        return True
    # A modulator of simplePath() or cyclicPath() looks at all places of the path.
    names = [instruction.name for instruction in found]
    return "by" in names and any(name in _PATH_FILTERS for name in names)


def _all(instructions: Sequence[Instruction]) -> Iterator[Instruction]:
    for instruction in instructions:
        yield instruction
        for argument in instruction.arguments:
            yield from _nested(argument)


def _nested(argument: Any) -> Iterator[Instruction]:
    if isinstance(argument, Traversal):
        yield from _all(argument.steps)
    elif isinstance(argument, list | tuple):
        for member in argument:
            yield from _nested(member)
    elif isinstance(argument, dict):
        for member in argument.values():
            yield from _nested(member)


def _needs(following: Sequence[Instruction], parents: Sequence[StepCall], materializes: bool) -> bool:
    for instruction in following:
        name = instruction.name
        if name in _LEAVING or (name == "to" and _is_direction(instruction)):
            return False
        if name in _FILTERS:
            if any(_needs_in_filter(argument) for argument in instruction.arguments):
                return True
        elif name not in _PASSING and not _is_of_tokens(instruction):
            return True
    return _needs_of_parents(parents, materializes)


def _needs_of_parents(parents: Sequence[StepCall], materializes: bool) -> bool:
    if not parents:
        return materializes
    parent, outer = parents[-1], parents[:-1]
    if parent.name in _FILTERS:
        return False
    if parent.name in _BRANCHES and not parent.modulators:
        return _needs(parent.following, outer, materializes)
    if parent.name == "repeat":
        # The results of a round begin the next one, and are looked at by `until` and `emit`.
        rounds = [argument for argument in parent.arguments if isinstance(argument, Traversal)]
        tests = [argument for modulator in parent.modulators for argument in modulator.arguments]
        if any(_needs_in_filter(argument) for argument in (*rounds, *tests) if isinstance(argument, Traversal)):
            return True
        return _needs(parent.following, outer, materializes)
    return True


def _needs_in_filter(argument: Any) -> bool:
    return not isinstance(argument, Traversal) or _needs(argument.steps, (), materializes=False)


def _is_of_tokens(instruction: Instruction) -> bool:
    """Return whether this is a condition on ids and labels alone."""
    conditions = has_conditions(instruction)
    return conditions is not None and all(isinstance(condition.key, Token) for condition in conditions)


def _is_direction(instruction: Instruction) -> bool:
    argument = instruction.arguments[0] if instruction.arguments else None
    return isinstance(argument, Token) and argument.kind == "Direction"
