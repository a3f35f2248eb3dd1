"""VectorDistance: its distance function, and the direction of an order by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql.compiling.scope import Scope, property_path
from asterism.languages.cosmos_sql.functions.distances import COSINE, DISTANCE_FUNCTIONS, EUCLIDEAN
from asterism.languages.cosmos_sql.syntax import tree
from asterism.reading.conditions import PropertyPath
from asterism.reading.row_source import Row
from asterism.values.undefined import UNDEFINED

# The container's distance function for the vectors at a path; None if its policy has no such path.
DistanceFunctionOf = Callable[[PropertyPath], str | None]

# Plans of a search spell the first as the second, which may have a sort direction.
_DISTANCE: Final = "VECTORDISTANCE"
_SCORE: Final = "_VECTORSCORE"
DISTANCE_CALLS: Final = (_DISTANCE, _SCORE)
_TEXT_SCORE: Final = "_FULLTEXTSCORE"
# The number in plans for rows without a distance.
FARTHEST: Final = 1.79769e308
_OPTION: Final = "distanceFunction"
_OPTIONS_POSITION: Final = 3


def no_distance_function(_path: PropertyPath) -> str | None:
    return None


def vector_order(order_by: tree.OrderBy) -> tree.Call | None:
    """Return the distance by which rows are ordered, nearest first, or None for other orders.

    Raises MalformedRequest for a distance beside other items, or with a direction.
    """
    for item in order_by.items:
        expression = item.expression
        if isinstance(expression, tree.Call) and expression.name in DISTANCE_CALLS and not expression.is_udf:
            if expression.name == _SCORE and item.is_explicit:
                continue
            _check_alone(order_by, item)
            return expression
    return None


def orders_by_score(order_by: tree.OrderBy) -> bool:
    """Return whether rows are ordered by a distance, or by the score of a text as plans spell it."""
    return any(
        isinstance(item.expression, tree.Call)
        and not item.expression.is_udf
        and item.expression.name in (*DISTANCE_CALLS, _TEXT_SCORE)
        for item in order_by.items
    )


def is_score_of_plan(order_by: tree.OrderBy) -> bool:
    """Return whether rows are ordered only by a distance that is a score of a search."""
    only = order_by.items[0].expression if len(order_by.items) == 1 else None
    return isinstance(only, tree.Call) and not only.is_udf and only.name == _SCORE


def missing_as_farthest(distance: Callable[[Row], object]) -> Callable[[Row], object]:
    """Return `distance` with the largest number for a row without a distance.

    A client fetches the first rows of each score. Undefined is below every number, so rows without a vector would
    otherwise displace the nearest.
    """
    return lambda row: FARTHEST if (found := distance(row)) is UNDEFINED else found


def _check_alone(order_by: tree.OrderBy, item: tree.OrderItem) -> None:
    if item.is_explicit:
        reason = "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported."
        raise MalformedRequest(reason=reason)
    if len(order_by.items) > 1:
        raise MalformedRequest(reason="VectorDistance must be the only item of its ORDER BY clause.")


def is_descending(distance: tree.Call, scope: Scope, distance_function_of: DistanceFunctionOf) -> bool:
    """Return whether the nearest vectors have the largest numbers."""
    return distance_name(distance, scope, distance_function_of) != EUCLIDEAN


def distance_name(distance: tree.Call, scope: Scope, distance_function_of: DistanceFunctionOf) -> str:
    """Return the function that the call or the container names, in lower case. Raises MalformedRequest if unknown."""
    named = _named_in_call(distance, scope) or _named_by_container(distance, scope, distance_function_of)
    name = COSINE if named is None else named.lower()
    if name not in DISTANCE_FUNCTIONS:
        reason = f"The distance function of VectorDistance must be one of {', '.join(DISTANCE_FUNCTIONS)}."
        raise MalformedRequest(reason=reason)
    return name


def _named_in_call(distance: tree.Call, scope: Scope) -> str | None:
    for options in distance.arguments[_OPTIONS_POSITION:]:
        values = _value(options, scope)
        name = values.get(_OPTION) if isinstance(values, dict) else None
        if isinstance(name, str):
            return name
    return None


def _value(node: tree.Expression, scope: Scope) -> object:
    """Return the value of constant options, or None for any other expression."""
    match node:
        case tree.Literal(value=value):
            return value
        case tree.Parameter(name=name):
            return scope.parameters.get(name)
        case tree.ObjectLiteral(properties=properties):
            return {name: _value(value, scope) for name, value in properties}
        case _:
            return None


def _named_by_container(distance: tree.Call, scope: Scope, distance_function_of: DistanceFunctionOf) -> str | None:
    for argument in distance.arguments[:2]:
        path = property_path(scope, argument) if isinstance(argument, tree.Path) else None
        name = None if path is None else distance_function_of(path)
        if name is not None:
            return name
    return None
