"""Every step by its name, from the tables of the families."""

from __future__ import annotations

from asterism.languages.gremlin.plan.calls import Maker
from asterism.languages.gremlin.steps import basic, dates, graph, lists, numbers, property_filters, texts

STEPS: dict[str, Maker] = {
    **basic.STEPS,
    **dates.STEPS,
    **graph.STEPS,
    **lists.STEPS,
    **numbers.STEPS,
    **property_filters.STEPS,
    **texts.STEPS,
}
