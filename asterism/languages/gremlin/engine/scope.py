"""Names in scope: a key of the current map, a side effect, or a label on the path."""

from __future__ import annotations

from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING
from asterism.languages.gremlin.engine.run import Run
from asterism.languages.gremlin.engine.traverser import PathNode, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure


def last_labelled(path: PathNode | None, label: str) -> Any:
    """Return the value at the last place with a label; MISSING if no place has it."""
    while path is not None:
        if label in path.labels:
            return path.value
        path = path.parent
    return MISSING


def value_in_scope(key: Any, traverser: Traverser, run: Run) -> Any:
    """Return the value of a name for a traverser, the last one if it has several; MISSING if it is unknown."""
    value = traverser.value
    if isinstance(value, dict) and key in value:
        return value[key]
    if not isinstance(key, str):
        return MISSING
    side_effect = run.side_effects.get(key)
    if side_effect is not None:
        return side_effect.value
    return last_labelled(traverser.path, key)


def value_required(key: Any, traverser: Traverser, run: Run, *, step: str) -> Any:
    """Return the value of a name for a traverser. Raises ExecutionFailure if it is unknown."""
    found = value_in_scope(key, traverser, run)
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
