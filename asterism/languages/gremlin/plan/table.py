"""Every step by its name, from the tables of the families."""

from __future__ import annotations

from asterism.languages.gremlin.plan.calls import Maker
from asterism.languages.gremlin.steps import (
    additions,
    basic,
    branches,
    changes,
    child_filters,
    children,
    dates,
    dedup,
    formulas,
    graph,
    has,
    lists,
    merging,
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
    **additions.STEPS,
    **basic.STEPS,
    **branches.STEPS,
    **changes.STEPS,
    **child_filters.STEPS,
    **children.STEPS,
    **dates.STEPS,
    **dedup.STEPS,
    **formulas.STEPS,
    **graph.STEPS,
    **has.STEPS,
    **lists.STEPS,
    **merging.STEPS,
    **numbers.STEPS,
    **path_filters.STEPS,
    **property_filters.STEPS,
    **ranges.STEPS,
    **repeat.STEPS,
    **sampling.STEPS,
    **texts.STEPS,
    **where.STEPS,
}
