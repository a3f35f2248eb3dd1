"""ORDER BY VectorDistance: the nearest first, which no index gives a row at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from asterism.errors import MalformedRequest
from asterism.query import tree
from asterism.query.partition_filter import PropertyPath, property_path
from asterism.query.scope import Scope

# The container's distance function for the vectors at a path; None where its policy names none.
DistanceFunctionOf = Callable[[PropertyPath], str | None]

_DISTANCE: Final = "VECTORDISTANCE"
# The one function by which near vectors have small numbers; by the others they have large ones.
_EUCLIDEAN: Final = "euclidean"
_OPTIONS_POSITION: Final = 3


def vector_order(order_by: tree.OrderBy) -> tree.Call | None:
    """The distance by which rows are ordered, if that is the order."""
    for item in order_by.items:
        expression = item.expression
        if isinstance(expression, tree.Call) and expression.name == _DISTANCE and not expression.is_udf:
            _check_alone(order_by, item)
            return expression
    return None


def _check_alone(order_by: tree.OrderBy, item: tree.OrderItem) -> None:
    if item.is_explicit:
        reason = "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported."
        raise MalformedRequest(reason=reason)
    if len(order_by.items) > 1:
        raise MalformedRequest(reason="VectorDistance must be the only item of its ORDER BY clause.")


def is_descending(distance: tree.Call, scope: Scope, distance_function_of: DistanceFunctionOf) -> bool:
    """Whether the nearest vectors have the largest numbers."""
    name = _named_in_call(distance) or _named_by_container(distance, scope, distance_function_of)
    return name is None or name.lower() != _EUCLIDEAN


def _named_in_call(distance: tree.Call) -> str | None:
    options = distance.arguments[_OPTIONS_POSITION:]
    for option in options:
        properties = option.properties if isinstance(option, tree.ObjectLiteral) else ()
        for name, value in properties:
            if name == "distanceFunction" and isinstance(value, tree.Literal) and isinstance(value.value, str):
                return value.value
    return None


def _named_by_container(distance: tree.Call, scope: Scope, distance_function_of: DistanceFunctionOf) -> str | None:
    for argument in distance.arguments[:2]:
        path = property_path(scope, argument) if isinstance(argument, tree.Path) else None
        name = None if path is None else distance_function_of(path)
        if name is not None:
            return name
    return None
