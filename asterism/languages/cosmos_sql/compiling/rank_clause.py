"""The clause ORDER BY RANK: one score, or several that RRF fuses, each with its weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql.compiling.grouping import has_aggregates
from asterism.languages.cosmos_sql.compiling.semantics import is_number
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.tree import Expression

TEXT_SCORE: Final = "FULLTEXTSCORE"
_VECTOR_SCORE: Final = "VECTORDISTANCE"
_FUSION: Final = "RRF"

_SORT_ORDER_REASON = "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed."
_GROUPS_REASON = "ORDER BY RANK is not supported with GROUP BY or aggregates."
NO_SCORE: Final = "SC2221"
NO_SCORE_REASON: Final = (
    "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call."
)
_WEIGHTS: Final = "SC2229"
_WEIGHTS_REASON: Final = (
    "The last parameter of the RRF function is an optional array of weights. When present, it must be a literal array "
    "of numbers, one for each of the component scores used for the RRF function. The length of this array must be the "
    "same as the number of the component scores."
)


def scores_and_weights(
    query: tree.Query, order_by: tree.OrderBy, parameters: Mapping[str, object]
) -> tuple[list[tree.Call], tuple[float, ...]]:
    """Return the calls of the scores, and their weights; no weights if all count the same.

    Raises MalformedQuery or MalformedRequest for an order that is not a rank.
    """
    if len(order_by.items) != 1 or order_by.items[0].is_explicit:
        raise MalformedRequest(reason=_SORT_ORDER_REASON)
    if query.group_by is not None or has_aggregates(query):
        raise MalformedRequest(reason=_GROUPS_REASON)
    expression = order_by.items[0].expression
    if not isinstance(expression, tree.Call) or expression.is_udf:
        raise MalformedQuery(NO_SCORE, NO_SCORE_REASON, order_by.span.start, order_by.span.end)
    arguments = expression.arguments if expression.name == _FUSION else (expression,)
    calls = [score for score in arguments if isinstance(score, tree.Call) and score.name in (TEXT_SCORE, _VECTOR_SCORE)]
    rest = arguments[len(calls) :]
    if not calls or any(len(call.arguments) < 2 for call in calls) or len(rest) > 1:
        raise MalformedQuery(NO_SCORE, NO_SCORE_REASON, order_by.span.start, order_by.span.end)
    weights = _weights(rest[0], len(calls), parameters) if rest else ()
    if weights is None:
        raise MalformedQuery(_WEIGHTS, _WEIGHTS_REASON, order_by.span.start, order_by.span.end)
    return calls, weights


def terms_of(score: tree.Call) -> tuple[Expression, ...]:
    """Return the terms of a FullTextScore, which are arguments or a list."""
    terms = score.arguments[1:]
    return terms[0].items if len(terms) == 1 and isinstance(terms[0], tree.ArrayLiteral) else terms


def _weights(node: Expression, count: int, parameters: Mapping[str, object]) -> tuple[float, ...] | None:
    values: object = None
    if isinstance(node, tree.Parameter):
        values = parameters.get(node.name)
    elif isinstance(node, tree.ArrayLiteral):
        values = [_number(item) for item in node.items]
    if not isinstance(values, list) or len(values) != count or not all(map(is_number, values)):
        return None
    return tuple(map(float, values))


def _number(node: Expression) -> object:
    match node:
        case tree.Literal(value=value):
            return value
        case tree.Unary(operator="-", operand=tree.Literal(value=int() | float() as value)):
            return -value
        case _:
            return None
