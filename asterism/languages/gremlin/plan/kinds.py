"""Kinds of arguments: which values fit a place in the form of an instruction, and the names of types in refusals."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tokens import TOKENS
from asterism.languages.gremlin.tree import CardinalityValue, Lambda, Predicate, Strategy, Token, Traversal, Variable
from asterism.languages.gremlin.values.numbers import is_number, number_type

Fits = Callable[[Any], bool]


def _instances_of(*bases: type) -> Fits:
    return lambda value: isinstance(value, bases)


def _token_of(kind: str) -> Fits:
    return lambda value: isinstance(value, Token) and value.kind == kind


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


KINDS: dict[str, Fits] = {
    "any": lambda _: True,
    "null": lambda value: value is None,
    "string": _instances_of(str),
    "boolean": _instances_of(bool),
    "integer": _is_integer,
    "number": is_number,
    "date": _instances_of(date),
    "map": _instances_of(dict),
    "traversal": _instances_of(Traversal),
    "predicate": _instances_of(Predicate),
    "vertex": _instances_of(Vertex),
    "strategy": _instances_of(Strategy),
    **{kind: _token_of(kind) for kind in TOKENS},
}

_TYPE_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "Boolean"),
    (str, "String"),
    (Traversal, "GraphTraversal"),
    (Predicate, "P"),
    (CardinalityValue, "CardinalityValueTraversal"),
    (Lambda, "Lambda"),
    (Variable, "Object"),
    (Strategy, "TraversalStrategy"),
    ((list, tuple), "List"),
    ((set, frozenset), "Set"),
    (dict, "Map"),
    (date, "DateTime"),
    (timedelta, "TimeSpan"),
    (UUID, "Guid"),
    (Vertex, "Vertex"),
    (Edge, "Edge"),
    (VertexProperty, "VertexProperty"),
    (Property, "Property"),
)

# The service is written in another language than TinkerPop, and names numbers by its own types.
_NUMBER_NAMES = {"Integer": "Int32", "Long": "Int64", "Short": "Int16", "Float": "Single", "BigDecimal": "Decimal"}


def type_name(value: Any) -> str:
    """Return the name of a value's type as the service's messages have it."""
    if value is None:
        return "Null"
    if isinstance(value, Token):
        return value.kind
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        name = number_type(value)
        return _NUMBER_NAMES.get(name, name)
    return next((name for base, name in _TYPE_NAMES if isinstance(value, base)), type(value).__name__)


def type_names(arguments: tuple[Any, ...]) -> str:
    """Return the types of arguments in the form of the service's messages."""
    return "(" + ",".join(map(type_name, arguments)) + ")"


class Form:
    """One accepted list of arguments: kinds for the first places, and a kind for all further ones if there may be any.

    Written as the kinds of each place, `|` between alternatives, `?` for "or null", and `*` at the last place for "any
    number of them".
    """

    __slots__ = ("_places", "_rest", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        words = text.split()
        self._rest: Fits | None = _fits(words.pop().removesuffix("*")) if text.endswith("*") else None
        self._places = tuple(map(_fits, words))

    def accepts(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether arguments are of the form; variables, whose values come later, fit everywhere."""
        places = self._places
        count = len(places)
        if len(arguments) < count or (len(arguments) > count and self._rest is None):
            return False
        for fits, argument in zip(places, arguments, strict=False):
            if not fits(argument) and type(argument) is not Variable:
                return False
        rest = self._rest
        return rest is None or all(rest(argument) or type(argument) is Variable for argument in arguments[count:])


def _fits(words: str) -> Fits:
    kinds = [KINDS[word.removesuffix("?")] for word in words.split("|")]
    if "?" in words:
        kinds.append(KINDS["null"])
    if len(kinds) == 1:
        return kinds[0]
    return lambda value: any(fits(value) for fits in kinds)
