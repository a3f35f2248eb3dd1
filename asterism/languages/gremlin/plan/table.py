"""Every step by its name, from the tables of the families."""

from __future__ import annotations

from asterism.languages.gremlin.plan.calls import Maker
from asterism.languages.gremlin.steps import (
    basic,
    branches,
    child_filters,
    children,
    dates,
    dedup,
    formulas,
    graph,
    has,
    lists,
    numbers,
    path_filters,
    property_filters,
    ranges,
    repeat,
    sampling,
    texts,
    where,
)

STEPS: dict[str, Maker] = {
    **basic.STEPS,
    **branches.STEPS,
    **child_filters.STEPS,
    **children.STEPS,
    **dates.STEPS,
    **dedup.STEPS,
    **formulas.STEPS,
    **graph.STEPS,
    **has.STEPS,
    **lists.STEPS,
    **numbers.STEPS,
    **path_filters.STEPS,
    **property_filters.STEPS,
    **ranges.STEPS,
    **repeat.STEPS,
    **sampling.STEPS,
    **texts.STEPS,
    **where.STEPS,
}
