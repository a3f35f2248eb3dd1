"""Steps of lists: those that put two together, and those that test or number their members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.languages.gremlin.engine.step import Step
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.arguments import refuse_arguments, step_of_arguments
from asterism.languages.gremlin.steps.basic import FilterStep, MapStep
from asterism.languages.gremlin.tree import Predicate, Traversal
from asterism.languages.gremlin.values import lists
from asterism.languages.gremlin.values.predicates import compile_predicate

_OF_TWO: Mapping[str, Callable[[list[Any], list[Any]], Any]] = {
    "combine": lists.combine,
    "difference": lists.difference,
    "disjunct": lists.disjunct,
    "intersect": lists.intersect,
    "merge": lists.unite,
    "product": lists.product,
}
_TESTS: Mapping[str, Callable[[Callable[[Any], bool]], Callable[[Any], bool]]] = {
    "all": lists.all_match,
    "any": lists.any_matches,
    "none": lists.none_matches,
}


def _make_of_two(call: StepCall, compiler: Compiler) -> Step:
    if len(call.arguments) != 1:
        raise refuse_arguments(call)
    name, function = call.name, _OF_TWO[call.name]
    is_yielded = isinstance(call.arguments[0], Traversal)
    read = lists.yielded_members if is_yielded else lists.argument_members

    def apply(value: Any, arguments: list[Any]) -> Any:
        (argument,) = arguments
        if name == "merge":
            if isinstance(value, dict):
                return lists.merge_maps(value, argument)
            if isinstance(argument, dict) and not is_yielded:
                lists.incoming_members(name, value)
                raise ExecutionFailure("merge step type mismatch: expected argument to be Iterable but got Map")
        return function(lists.incoming_members(name, value), read(name, argument))

    return step_of_arguments(compiler, call.arguments, apply)


def _make_test(call: StepCall, _: Compiler) -> Step:
    if call.name == "none" and not call.arguments:
        # The name of `discard()` before 3.8.
        return FilterStep(lambda _: False)
    if len(call.arguments) != 1:
        raise refuse_arguments(call)
    (predicate,) = call.arguments
    if predicate is None:
        raise ExecutionFailure(f"Input predicate to {call.name} step can't be null.")
    if not isinstance(predicate, Predicate):
        raise refuse_arguments(call)
    return FilterStep(_TESTS[call.name](compile_predicate(predicate)))


def _make_conjoin(call: StepCall, _: Compiler) -> Step:
    if call.arguments == (None,):
        raise ExecutionFailure("Input delimiter to conjoin step can't be null.")
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], str):
        raise refuse_arguments(call)
    return MapStep(lists.conjoin(call.arguments[0]))


STEPS: Mapping[str, Maker] = {
    **dict.fromkeys(_OF_TWO, _make_of_two),
    **dict.fromkeys(_TESTS, _make_test),
    "conjoin": _make_conjoin,
}
