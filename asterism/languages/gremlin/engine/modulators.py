"""`by` modulators: the value of a traverser that a step goes by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from asterism.languages.gremlin.engine.merging import single
from asterism.languages.gremlin.engine.run import Run
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tree import Token, Traversal
from asterism.languages.gremlin.values.results import Path
from asterism.languages.gremlin.values.structures import MapEntry, OrderedSet

if TYPE_CHECKING:
    from asterism.languages.gremlin.engine.pipeline import Pipeline


class _NoValue:
    """The type of MISSING."""

    def __repr__(self) -> str:
        return "MISSING"


# The value of a modulator that yields nothing: the step leaves the traverser out (or, in `project`, the key).
MISSING = _NoValue()


class Modulator(ABC):
    """A function of traversers that may need the graph."""

    @abstractmethod
    async def values(self, batch: Batch, run: Run) -> list[Any]:
        """Return the value for each traverser, in their order, or MISSING."""


class ValueModulator(Modulator):
    """A modulator that needs no more than the traverser's value."""

    def __init__(self, value_of: Callable[[Any], Any]) -> None:
        self.value_of = value_of

    async def values(self, batch: Batch, run: Run) -> list[Any]:  # noqa: ARG002 - other modulators need the run
        value_of = self.value_of
        return [value_of(traverser.value) for traverser in batch]


class ChildModulator(Modulator):
    """The first result of a child traversal."""

    def __init__(self, child: Pipeline, *, is_productive: bool) -> None:
        self.child = child
        self._default = None if is_productive else MISSING

    async def values(self, batch: Batch, run: Run) -> list[Any]:
        # A modulator looks at one of the equal traversers.
        found = await self.child.first([single(traverser) for traverser in batch], run)
        return [self._default if result is None else result.value for result in found]


def modulator_of(argument: Any, *, child: Callable[[Any], Pipeline], is_productive: bool) -> Modulator:
    """Return the modulator of an argument of `by`: none, a name, a token, or a traversal."""
    if argument is None:
        return ValueModulator(lambda value: value)
    if isinstance(argument, str):
        return ValueModulator(property_reader(argument, default=None if is_productive else MISSING))
    if isinstance(argument, Token):
        return ValueModulator(token_reader(argument))
    if isinstance(argument, Traversal):
        return ChildModulator(child(argument), is_productive=is_productive)
    return ChildModulator(child(argument), is_productive=is_productive)


def property_reader(name: str, *, default: Any) -> Callable[[Any], Any]:
    """Return the reader of a property of elements, or of a key of maps."""

    def read(value: Any) -> Any:
        if isinstance(value, Vertex):
            found = value.values(name)
            return found[0] if found else default
        if isinstance(value, Edge):
            return value.properties.get(name, default)
        if isinstance(value, VertexProperty):
            return value.meta.get(name, default)
        if isinstance(value, dict):
            return value.get(name, default)
        raise ExecutionFailure(
            f'The by("{name}") modulator can only be applied to a traverser that is an Element or a Map - '
            f"it is being applied to [{value}] a {type(value).__name__} class instead"
        )

    return read


def token_reader(token: Token) -> Callable[[Any], Any]:
    """Return the reader of T.id, T.label, T.key, T.value, or of the keys or values of a map."""
    try:
        return _TOKEN_READERS[token.kind, token.name]
    except KeyError:
        raise ExecutionFailure(f"by({token.kind}.{token.name}) is not a modulator.") from None


def _id_of(value: Any) -> Any:
    if isinstance(value, Vertex | Edge | VertexProperty):
        return value.id
    raise _not_an_element(value, "id")


def _label_of(value: Any) -> Any:
    if isinstance(value, Vertex | Edge | VertexProperty):
        return value.label
    raise _not_an_element(value, "label")


def _key_of(value: Any) -> Any:
    if isinstance(value, VertexProperty | Property):
        return value.key
    raise _not_an_element(value, "key")


def _value_of(value: Any) -> Any:
    if isinstance(value, VertexProperty | Property):
        return value.value
    raise _not_an_element(value, "value")


def _keys_of(value: Any) -> Any:
    if isinstance(value, MapEntry):
        return value.key
    if isinstance(value, Path):
        return list(value.labels)
    return OrderedSet(value) if isinstance(value, dict) else _refuse_column(value, "keys")


def _values_of(value: Any) -> Any:
    if isinstance(value, MapEntry):
        return value.value
    if isinstance(value, Path):
        return list(value.objects)
    return list(value.values()) if isinstance(value, dict) else _refuse_column(value, "values")


def _refuse_column(value: Any, name: str) -> Sequence[Any]:
    raise ExecutionFailure(f"The provided object does not have accessible {name}: {type(value).__name__}")


def _not_an_element(value: Any, name: str) -> ExecutionFailure:
    return ExecutionFailure(f"T.{name} cannot be read from a {type(value).__name__}.")


_TOKEN_READERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("T", "id"): _id_of,
    ("T", "label"): _label_of,
    ("T", "key"): _key_of,
    ("T", "value"): _value_of,
    ("Column", "keys"): _keys_of,
    ("Column", "values"): _values_of,
}
