"""Subqueries as expressions: the value that each kind makes of a subquery's results for a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from asterism.languages.cosmos_sql.compiling.environment import Environment
from asterism.languages.cosmos_sql.compiling.scope import Scope
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.token_stream import SYNTAX_ERROR
from asterism.languages.cosmos_sql.syntax.tree import Span, SubqueryKind
from asterism.reading.limits import BYTES_PER_STEP, QueryMeter, rough_bytes
from asterism.reading.row_source import Evaluator
from asterism.values.undefined import UNDEFINED

# A growing array is counted in portions of this size.
_BYTES_BETWEEN_COUNTS: Final = 4096


def compile_subquery_expression(node: tree.Subquery, scope: Scope, environment: Environment) -> Evaluator:
    if node.kind is SubqueryKind.ALL:
        return _all(node, scope, environment)
    results = environment.results_of(node.query, scope)
    if node.kind is SubqueryKind.SCALAR:
        span = node.span
        return lambda row: _only(results(row), span)
    if node.kind is SubqueryKind.ARRAY:
        meter = environment.meter
        return lambda row: _array(results(row), meter)
    reduce_results = _REDUCTIONS[node.kind]
    return lambda row: reduce_results(results(row))


def _all(node: tree.Subquery, scope: Scope, environment: Environment) -> Evaluator:
    """Return a test that is true if the subquery has no result for rows whose filter is false; undefined passes."""
    where = node.query.where
    if where is None:
        # Compiled for the errors in it.
        environment.results_of(node.query, scope)
        return lambda _row: True
    failing = replace(node.query, where=tree.Unary("NOT", where, span=where.span))
    results = environment.results_of(failing, scope)
    return lambda row: next(results(row), UNDEFINED) is UNDEFINED


def _only(results: Iterator[object], span: Span) -> object:
    found = next(results, UNDEFINED)
    if next(results, UNDEFINED) is not UNDEFINED:
        reason = "The cardinality of a scalar subquery result set cannot be greater than one."
        raise MalformedQuery(SYNTAX_ERROR, reason, span.start, span.end)
    return found


def _array(results: Iterator[object], meter: QueryMeter) -> list[object]:
    """Return all results, counted while the array grows: memory that a row has built is released with the row."""
    account, found = meter.account, []
    held_bytes = uncounted_bytes = 0
    try:
        for result in results:
            found.append(result)
            uncounted_bytes += rough_bytes(result, account.bytes_left)
            if uncounted_bytes > _BYTES_BETWEEN_COUNTS:
                held_bytes += uncounted_bytes
                account.take(uncounted_bytes)
                meter.spend(uncounted_bytes // BYTES_PER_STEP)
                uncounted_bytes = 0
    finally:
        account.give_back(held_bytes)
    # From now on the row around holds it.
    meter.build(held_bytes + uncounted_bytes)
    return found


def _last(results: Iterator[object]) -> object:
    found: object = UNDEFINED
    for found in results:  # noqa: B007 - the last result is the value
        pass
    return found


def _first(results: Iterator[object]) -> object:
    return next(results, UNDEFINED)


def _exists(results: Iterator[object]) -> object:
    return next(results, UNDEFINED) is not UNDEFINED


_REDUCTIONS: Final[dict[SubqueryKind, Callable[[Iterator[object]], object]]] = {
    SubqueryKind.EXISTS: _exists,
    SubqueryKind.FIRST: _first,
    SubqueryKind.LAST: _last,
}
