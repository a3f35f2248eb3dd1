"""The part of strategies that hides properties of vertices: every step that reads them is made to filter them."""

from __future__ import annotations

from asterism.languages.gremlin.plan.strategies.rewriting import Steps, kind_before
from asterism.languages.gremlin.tree import Instruction, Traversal

# Steps of our own, which no text can name (`steps/property_filters.py`).
FILTER_STEP = "~filterVertexProperties"
VALUE_STEP = "~visibleValue"
# The option of valueMap(), propertyMap() and elementMap() with the same meaning.
MAP_OPTION = "~vertexProperties"

_MAPS = frozenset({"valueMap", "propertyMap", "elementMap"})


def with_visible_properties(steps: Steps, criterion: Traversal) -> Steps:
    """Return a chain that sees no property of a vertex that the criterion yields nothing for."""
    found: list[Instruction] = []
    for place, step in enumerate(steps):
        if step.name in ("properties", "values") and kind_before(steps, place) != "property":
            found.append(Instruction("properties", step.arguments, step.line, step.column))
            found.append(Instruction(FILTER_STEP, (criterion,)))
            if step.name == "values":
                found.append(Instruction("value"))
        elif step.name in _MAPS:
            found += (step, Instruction("with", (MAP_OPTION, criterion)))
        elif step.name == "by" and step.arguments and isinstance(step.arguments[0], str):
            value = Traversal((Instruction(VALUE_STEP, (step.arguments[0], criterion)),))
            found.append(Instruction("by", (value, *step.arguments[1:]), step.line, step.column))
        else:
            found.append(step)
    return tuple(found)
