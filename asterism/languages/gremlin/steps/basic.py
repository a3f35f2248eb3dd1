"""The plainest steps: constants, ids, labels, values of properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.step import SyncStep
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.tree import Token


class MapStep(SyncStep):
    """A function of the value."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def process(self, batch: Batch, frame: Frame) -> Batch:  # noqa: ARG002 - a function of values needs no frame
        function = self.function
        return [traverser.to(function(traverser.value)) for traverser in batch]


class FlatMapStep(SyncStep):
    """A function of the value with any number of results."""

    def __init__(self, function: Callable[[Any], list[Any]]) -> None:
        self.function = function

    def process(self, batch: Batch, frame: Frame) -> Batch:  # noqa: ARG002
        function = self.function
        return [traverser.to(value) for traverser in batch for value in function(traverser.value)]


class FilterStep(SyncStep):
    """A test of the value."""

    def __init__(self, test: Callable[[Any], bool]) -> None:
        self.test = test

    def process(self, batch: Batch, frame: Frame) -> Batch:  # noqa: ARG002
        test = self.test
        return [traverser for traverser in batch if test(traverser.value)]


class LabelStep(SyncStep):
    """`as()`: labels the place where traversers are."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels

    def process(self, batch: Batch, frame: Frame) -> Batch:  # noqa: ARG002
        return [traverser.labelled(self.labels) for traverser in batch]


class PassStep(SyncStep):
    """`identity()`."""

    def process(self, batch: Batch, frame: Frame) -> Batch:  # noqa: ARG002
        return batch


def element_id(value: Any) -> Any:
    if isinstance(value, Vertex | Edge | VertexProperty):
        return value.id
    raise ExecutionFailure(f"The id() step can only be applied to elements, not to a {type(value).__name__}.")


def element_label(value: Any) -> Any:
    if isinstance(value, Vertex | Edge | VertexProperty):
        return value.label
    raise ExecutionFailure(f"The label() step can only be applied to elements, not to a {type(value).__name__}.")


def values_of(names: tuple[Any, ...]) -> Callable[[Any], list[Any]]:
    """Return the reader of the values of some properties, or of all of them."""

    def read(value: Any) -> list[Any]:
        if isinstance(value, Vertex):
            if names:
                return [found for name in names for found in _vertex_values(value, name)]
            return [entry.value for entries in value.properties.values() for entry in entries]
        if isinstance(value, Edge | VertexProperty):
            stored: Mapping[str, Any] = value.properties if isinstance(value, Edge) else value.meta
            chosen = names or tuple(stored)
            return [
                stored[name] if isinstance(name, str) else _token_value(value, name)
                for name in chosen
                if (name in stored if isinstance(name, str) else name is not None)
            ]
        raise ExecutionFailure(f"The values() step can only be applied to elements, not to a {type(value).__name__}.")

    return read


def _vertex_values(vertex: Vertex, name: Any) -> list[Any]:
    if isinstance(name, str):
        return vertex.values(name)
    # No property has a null for a name.
    return [] if name is None else [_token_value(vertex, name)]


def _token_value(element: Vertex | Edge | VertexProperty, token: Token) -> Any:
    return element.id if token.name == "id" else element.label


def _property_key(value: Any) -> str:
    if isinstance(value, VertexProperty | Property):
        return value.key
    raise ExecutionFailure(f"The key() step can only be applied to properties, not to a {type(value).__name__}.")


def _property_value(value: Any) -> Any:
    if isinstance(value, VertexProperty | Property):
        return value.value
    raise ExecutionFailure(f"The value() step can only be applied to properties, not to a {type(value).__name__}.")


def _make_as(call: StepCall, compiler: Compiler) -> LabelStep:
    compiler.needs_labels = True
    return LabelStep(tuple(call.arguments))


def _make_values(call: StepCall, compiler: Compiler) -> FlatMapStep:
    return FlatMapStep(values_of(tuple(compiler.key(name) for name in call.arguments)))


def _make_constant(call: StepCall, _: Compiler) -> MapStep:
    (constant,) = call.arguments
    return MapStep(lambda _value: constant)


STEPS: Mapping[str, Maker] = {
    "as": _make_as,
    "constant": _make_constant,
    "id": lambda _call, _compiler: MapStep(element_id),
    "identity": lambda _call, _compiler: PassStep(),
    "key": lambda _call, _compiler: MapStep(_property_key),
    "label": lambda _call, _compiler: MapStep(element_label),
    "value": lambda _call, _compiler: MapStep(_property_value),
    "values": _make_values,
}
