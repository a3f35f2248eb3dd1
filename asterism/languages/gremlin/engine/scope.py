"""Names in scope: keys of the current map, side effects, and labels on the path of a traverser, in this order."""

from __future__ import annotations

from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING
from asterism.languages.gremlin.engine.run import Run
from asterism.languages.gremlin.engine.traverser import PathNode, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.values.structures import freeze


def scope_value(traverser: Traverser, key: Any, run: Run, *, pop: str = "last") -> Any:
    """Return the value that a name has for a traverser; MISSING if it has none."""
    value = traverser.value
    if isinstance(value, dict):
        frozen = freeze(key)
        if frozen in value:
            return value[frozen]
    if type(key) is not str:
        return MISSING
    if key in run.side_effects:
        return run.side_effects[key].value
    return labelled_value(traverser.path, key, pop=pop)


def labelled_value(path: PathNode | None, label: str, *, pop: str = "last") -> Any:
    """Return the value at the places of a path with a label: the last, the first, or a list of all of them; `mixed` is
    the value alone if there is just one. MISSING if no place has the label."""
    node = path
    if pop == "last":
        while node is not None:
            if label in node.labels:
                return node.value
            node = node.parent
        return MISSING
    found: list[Any] = []
    while node is not None:
        if label in node.labels:
            found.append(node.value)
        node = node.parent
    if not found:
        return MISSING
    if pop == "first" or (pop == "mixed" and len(found) == 1):
        return found[-1]
    found.reverse()
    return found


def value_required(key: Any, traverser: Traverser, run: Run, *, step: str) -> Any:
    """Return the value of a name for a traverser. Raises ExecutionFailure if it is unknown."""
    found = scope_value(traverser, key, run)
    if found is MISSING:
        raise ExecutionFailure(f"Neither the map, sideEffects, nor path has a {key}-key: {step}")
    return found


def part_of_path(places: list[PathNode], *, start: str | None, end: str | None) -> list[PathNode]:
    """Return the places from the last one with the label `start` to the last one with the label `end`."""
    if start is None and end is None:
        return places
    first, last = 0, len(places) - 1
    if start is not None:
        first = _last_place(places, start, "from")
    if end is not None:
        last = _last_place(places, end, "to")
    if first > last:
        raise ExecutionFailure(f"Could not isolate path because from comes after to: {start}->{end}")
    return places[first : last + 1]


def _last_place(places: list[PathNode], label: str, name: str) -> int:
    for place in range(len(places) - 1, -1, -1):
        if label in places[place].labels:
            return place
    raise ExecutionFailure(f"Could not locate path {name}-label: {label}")
