"""Steps of dates."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from asterism.languages.gremlin.engine.step import Step
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.arguments import refuse_arguments, step_of_arguments
from asterism.languages.gremlin.steps.basic import MapStep
from asterism.languages.gremlin.tree import Token, Traversal
from asterism.languages.gremlin.values import dates


def _make_as_date(call: StepCall, _: Compiler) -> Step:
    if call.arguments:
        raise refuse_arguments(call)
    return MapStep(dates.as_date)


def _make_date_add(call: StepCall, _: Compiler) -> Step:
    if len(call.arguments) != 2:
        raise refuse_arguments(call)
    unit, count = call.arguments
    if not isinstance(unit, Token) or not isinstance(count, int) or isinstance(count, bool):
        raise refuse_arguments(call)
    return MapStep(dates.add_to_date(unit.name, count))


def _make_date_diff(call: StepCall, compiler: Compiler) -> Step:
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], date | Traversal | None):
        raise refuse_arguments(call)
    return step_of_arguments(compiler, call.arguments, lambda value, others: dates.date_difference(value, others[0]))


STEPS: Mapping[str, Maker] = {
    "asDate": _make_as_date,
    "dateAdd": _make_date_add,
    "dateDiff": _make_date_diff,
}
