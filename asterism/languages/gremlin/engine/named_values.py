"""Values by name: keys of a map, side effects, and labels on the path of a traverser, in this order."""

from __future__ import annotations

from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING
from asterism.languages.gremlin.engine.run import Run
from asterism.languages.gremlin.engine.traverser import PathNode, Traverser
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
