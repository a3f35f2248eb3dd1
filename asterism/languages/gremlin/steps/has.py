"""Filters on the value of a traverser alone: the has-family, `is`, and the tests of lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.languages.gremlin.engine.step import Step
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.elements import (
    EDGE_NAMES,
    STORE_NAMES,
    VERSION,
    Edge,
    Property,
    Vertex,
    VertexProperty,
)
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.has_conditions import HasCondition, has_conditions
from asterism.languages.gremlin.steps.basic import FilterStep
from asterism.languages.gremlin.steps.child_filters import ChildFilterStep, PipelineTest
from asterism.languages.gremlin.tree import Instruction, Predicate, Token, Traversal
from asterism.languages.gremlin.values.predicates import Test, as_test, compile_predicate
from asterism.languages.gremlin.values.results import Path


def condition_test(condition: HasCondition) -> Test:
    """Return the test of a condition of the has-family as a function of an element or a property."""
    key, predicate = condition.key, condition.predicate
    if predicate is None:
        return exists_test(key)
    test = compile_predicate(predicate)
    if isinstance(key, Token):
        return _token_test(key, test)
    return _property_test(key, test)


def exists_test(key: Any) -> Test:
    """Return the test whether an element has a property; every element has an id and a label."""
    if isinstance(key, Token):
        return _token_test(key, lambda _value: True)
    return _property_test(key, lambda _value: True, step="values")


def _store_test(name: str, test: Test) -> Test:
    """Return the test of a property that the store adds, such as `_etag`: for writes on the condition of a version."""

    def holds(value: Any) -> bool:
        document = value.document if isinstance(value, Vertex | Edge) else None
        return document is not None and name in document and test(document[name])

    return holds


def _property_test(name: str | None, test: Test, *, step: str = "has") -> Test:
    if name in STORE_NAMES:
        return _store_test(str(name), test)

    def holds(value: Any) -> bool:
        if isinstance(value, Vertex):
            return name is not None and any(map(test, value.values(name)))
        if isinstance(value, Edge):
            document = value.document
            # The partition key is no property of an edge, and yet a condition that routes: it is that of the source.
            if name is None or name not in document or name in EDGE_NAMES:
                return False
            return test(document[name])
        if isinstance(value, VertexProperty):
            return name is not None and name in value.meta and test(value.meta[name])
        if isinstance(value, Property):
            return False
        raise _no_element(value, step)

    return holds


def _token_test(token: Token, test: Test) -> Test:
    name = token.name
    if name in ("id", "label"):

        def of_element(value: Any) -> bool:
            if isinstance(value, Vertex | Edge | VertexProperty):
                return test(value.id if name == "id" else value.label)
            if isinstance(value, Property):
                return False
            raise _no_element(value, "has")

        return of_element

    def of_property(value: Any) -> bool:
        if isinstance(value, VertexProperty | Property):
            return test(value.key if name == "key" else value.value)
        if isinstance(value, Vertex | Edge):
            return False
        raise _no_element(value, "has")

    return of_property


def _no_element(value: Any, step: str) -> ExecutionFailure:
    return ExecutionFailure(
        f"Traverser to {step}() must be of type Property or Element, not {type(value).__name__}. "
        "Use is() or where() for other values."
    )


def _all_hold(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    return lambda value: all(test(value) for test in tests)


def _make_has(call: StepCall, compiler: Compiler) -> Step:
    arguments = call.arguments
    if len(arguments) == 2 and isinstance(arguments[1], Traversal):
        # `has(key, traversal)`: a condition on the value of a property.
        key = compiler.key(arguments[0])
        reader = Instruction(key.name) if isinstance(key, Token) else Instruction("values", (key,))
        child = compiler.pipeline(Traversal((reader, *arguments[1].steps)))
        return ChildFilterStep(PipelineTest(child))
    conditions = has_conditions(call.instruction, compiler.key)
    if conditions is None:
        raise call.refused(f"The {call.name}() step takes values and predicates here, and no traversal.")
    if any(condition.key == VERSION for condition in conditions):
        compiler.settings.expects_version = True
    return FilterStep(_all_hold([condition_test(condition) for condition in conditions]))


def _make_has_not(call: StepCall, compiler: Compiler) -> Step:
    if len(call.arguments) != 1:
        raise call.refused("The hasNot() step takes the name of a property.")
    exists = exists_test(compiler.key(call.arguments[0]))
    return FilterStep(lambda value: not exists(value))


def _make_is(call: StepCall, _: Compiler) -> Step:
    if len(call.arguments) != 1:
        raise call.refused("The is() step takes a value or a predicate.")
    return FilterStep(as_test(call.arguments[0]))


def _members(value: Any) -> Any:
    """Return the members of a list, a set or a path; None for anything else."""
    if isinstance(value, list | tuple | set | frozenset):
        return value
    return value.objects if isinstance(value, Path) else None


def _all(test: Test, members: Any) -> bool:
    return all(map(test, members))


def _any(test: Test, members: Any) -> bool:
    return any(map(test, members))


def _none(test: Test, members: Any) -> bool:
    return not any(map(test, members))


def _list_filter(combine: Callable[[Test, Any], bool]) -> Maker:
    """Return the maker of a filter on lists by a predicate on their members."""

    def make(call: StepCall, _: Compiler) -> Step:
        if not call.arguments and call.name == "none":
            return _discard()
        if len(call.arguments) != 1 or not isinstance(call.arguments[0], Predicate):
            raise call.refused(f"Input predicate to {call.name} step can't be null.")
        test = compile_predicate(call.arguments[0])

        def holds(value: Any) -> bool:
            members = _members(value)
            return members is not None and combine(test, members)

        return FilterStep(holds)

    return make


def _discard() -> Step:
    return FilterStep(lambda _value: False)


STEPS: Mapping[str, Maker] = {
    "all": _list_filter(_all),
    "any": _list_filter(_any),
    "discard": lambda _call, _compiler: _discard(),
    "has": _make_has,
    "hasId": _make_has,
    "hasKey": _make_has,
    "hasLabel": _make_has,
    "hasNot": _make_has_not,
    "hasValue": _make_has,
    "is": _make_is,
    "none": _list_filter(_none),
}
