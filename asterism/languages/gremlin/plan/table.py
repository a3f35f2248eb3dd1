"""Every step by its name, from the tables of the families."""

from __future__ import annotations

from asterism.languages.gremlin.plan.calls import Maker
from asterism.languages.gremlin.steps import basic, graph, property_filters

STEPS: dict[str, Maker] = {
    **basic.STEPS,
    **graph.STEPS,
    **property_filters.STEPS,
}
