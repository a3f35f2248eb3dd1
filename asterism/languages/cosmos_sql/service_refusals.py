"""Queries that run here and that the service refuses, with its codes and sentences.

A program whose tests pass against this server must not fail in production. `asterism serve --lenient-sql` leaves these
checks out, and the queries are answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql.compiling.constant_steps import is_item_free, with_constant_steps
from asterism.languages.cosmos_sql.compiling.distance import DISTANCE_CALLS, orders_by_score
from asterism.languages.cosmos_sql.compiling.grouping import (
    COMPOSED_AGGREGATES_REASON,
    has_aggregates,
    holds_aggregate,
    is_aggregate,
    selected_expressions,
)
from asterism.languages.cosmos_sql.compiling.rank_clause import NO_SCORE, NO_SCORE_REASON, scores_and_weights
from asterism.languages.cosmos_sql.compiling.scope import inferred_alias
from asterism.languages.cosmos_sql.compiling.semantics import is_number
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.parser import PARSED_QUERIES_KEPT, parse_query
from asterism.languages.cosmos_sql.syntax.select_names import names_of_select_items
from asterism.languages.cosmos_sql.syntax.tree import Expression, Node, Span

NO_ORDER_PATH: Final = "2206"
NO_ORDER_PATH_REASON: Final = (
    "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path."
)
ORDERED_GROUPS_REASON: Final = "'ORDER BY' is not supported in presence of GROUP BY."

_ORDER_IN_SUBQUERY: Final = ("SC2202", "'ORDER BY' is not supported in subqueries.")
_TOP_IN_SUBQUERY: Final = ("SC2203", "'TOP' is not supported in subqueries.")
_OFFSET_IN_SUBQUERY: Final = ("SC2204", "'OFFSET LIMIT' clause is not supported in subqueries.")
_LIST_SIZE: Final = "SC2213"
_RANK_WITH_IN: Final = (
    "SC2223",
    "The FROM clause with the IN operator is not allowed with the ORDER BY RANK clause.",
)
_RANK_WITH_JOIN: Final = ("SC2224", "The JOIN operator is not allowed with the ORDER BY RANK clause.")
_RANK_WITH_SUBQUERY: Final = (
    "SC2225",
    "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.",
)
_RANK_IN_SUBQUERY: Final = ("SC2228", "The ORDER BY RANK clause is not supported in subqueries.")
_MEMBER_INDEXER: Final = (
    "SC2990",
    "The specified query includes 'member indexer' which is currently not supported.",
)
_LIST_SIZE_OPTION: Final = "searchListSizeMultiplier"
_LIST_SIZE_MAX: Final = 100
_OPTIONS_POSITION: Final = 3
# A query without any of these is never refused here.
_CHECKED_KINDS: Final[frozenset[type[Node]]] = frozenset(
    {tree.Call, tree.Member, tree.Subquery, tree.SubqueryCollection, tree.OrderBy, tree.GroupBy}
)


def check_as_service(query: tree.Query, parameters: Mapping[str, object]) -> None:
    """Raise MalformedQuery or MalformedRequest for a query that compiles and that the service refuses."""
    nodes = list(tree.descendants(query))
    kinds = set(map(type, nodes))
    if _CHECKED_KINDS.isdisjoint(kinds):
        return
    if tree.Member in kinds:
        query = with_constant_steps(query, parameters)
        nodes = list(tree.descendants(query))
    faults = list(_faults_of_rank(query, parameters))
    # An inner subquery ends before the subquery around it.
    for node in sorted(nodes, key=lambda node: node.span.end):
        if type(node) in _CHECKED_KINDS:
            faults.extend(_faults_of_node(node, parameters))
    if faults:
        first, *more = faults
        raise replace(first, more=tuple(more))
    _check_aggregates(query)
    if query.order_by is not None and not query.order_by.by_rank:
        _check_order(query, query.order_by)


def check_text_as_service(text: str, parameters: Mapping[str, object]) -> None:
    """Do the same for a query's text, which is checked only once if its parameters make no difference."""
    if not _passes_with_any_parameters(text):
        check_as_service(parse_query(text), parameters)


@lru_cache(maxsize=PARSED_QUERIES_KEPT)
def _passes_with_any_parameters(text: str) -> bool:
    query = parse_query(text)
    if any(_depends_on_parameters(node) for node in tree.descendants(query)):
        return False
    try:
        check_as_service(query, {})
    except (MalformedQuery, MalformedRequest):
        return False
    return True


def _depends_on_parameters(node: Node) -> bool:
    match node:
        case tree.Member() | tree.OrderBy(by_rank=True):
            return True
        case tree.Call(name=name):
            return name in DISTANCE_CALLS
        case _:
            return False


def _fault(refusal: tuple[str, str], span: Span) -> MalformedQuery:
    code, reason = refusal
    return MalformedQuery(code, reason, span.start, span.end)


# --- anywhere -------------------------------------------------------------------------------------------------------


def _faults_of_node(node: Node, parameters: Mapping[str, object]) -> Iterator[MalformedQuery]:
    match node:
        case tree.Subquery(query=query) | tree.SubqueryCollection(query=query):
            yield from _faults_of_subquery(query)
        case tree.Member(step=step) if not is_item_free(step):
            yield _fault(_MEMBER_INDEXER, node.span)
        case tree.Call(name=name, arguments=arguments, is_udf=False) if name in DISTANCE_CALLS:
            for options in arguments[_OPTIONS_POSITION:]:
                yield from _faults_of_list_size(options, parameters)
        case _:
            pass


def _faults_of_subquery(query: tree.Query) -> Iterator[MalformedQuery]:
    if query.order_by is not None:
        yield _fault(_RANK_IN_SUBQUERY if query.order_by.by_rank else _ORDER_IN_SUBQUERY, query.order_by.span)
    if query.select.top is not None:
        start = query.select.top_start
        end = query.select.top.span.end
        yield _fault(_TOP_IN_SUBQUERY, Span(query.select.top.span.start if start is None else start, end))
    if query.offset_limit is not None:
        yield _fault(_OFFSET_IN_SUBQUERY, query.offset_limit.span)


def _faults_of_list_size(options: Expression, parameters: Mapping[str, object]) -> Iterator[MalformedQuery]:
    size = _option(options, _LIST_SIZE_OPTION, parameters)
    if is_number(size) and not 1 <= size <= _LIST_SIZE_MAX:  # type: ignore[operator]  # is_number has checked it
        reason = (
            f"The '{_LIST_SIZE_OPTION}' value {size} specified in the VectorDistance function is outside the supported "
            f"range. The value must be between 1 and {_LIST_SIZE_MAX}."
        )
        yield _fault((_LIST_SIZE, reason), options.span)


def _option(options: Expression, name: str, parameters: Mapping[str, object]) -> object:
    """Return the value of an option, or None if it is missing or not a plain value."""
    match options:
        case tree.Parameter():
            value = parameters.get(options.name)
            return value.get(name) if isinstance(value, dict) else None
        case tree.ObjectLiteral(properties=properties):
            return _plain_value(dict(properties).get(name), parameters)
        case _:
            return None


def _plain_value(node: Expression | None, parameters: Mapping[str, object]) -> object:
    match node:
        case tree.Literal(value=value):
            return value
        case tree.Parameter():
            return parameters.get(node.name)
        case tree.Unary(operator="-", operand=tree.Literal(value=int() | float() as value)):
            return -value
        case _:
            return None


# --- aggregates -----------------------------------------------------------------------------------------------------


def _check_aggregates(query: tree.Query) -> None:
    """Refuse operators and calls around aggregates; plans do rewrite aggregates in objects and in lists."""
    if query.group_by is not None and query.order_by is not None:
        raise MalformedRequest(reason=ORDERED_GROUPS_REASON)
    parts = [part for selected in selected_expressions(query) for part in _parts(selected)]
    if any(not is_aggregate(part) and holds_aggregate(part) for part in parts):
        raise MalformedRequest(reason=COMPOSED_AGGREGATES_REASON)


def _parts(node: Expression) -> Iterator[Expression]:
    """Yield the expressions that objects and lists are made of."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        match current:
            case tree.ArrayLiteral(items=items):
                waiting.extend(items)
            case tree.ObjectLiteral(properties=properties):
                waiting.extend(value for _, value in properties)
            case _:
                yield current


# --- ORDER BY -------------------------------------------------------------------------------------------------------


def _check_order(query: tree.Query, order_by: tree.OrderBy) -> None:
    if orders_by_score(order_by) or query.from_clause is None:
        return
    for item in order_by.items:
        if not _is_document_path(item.expression, query.from_clause):
            raise MalformedQuery(NO_ORDER_PATH, NO_ORDER_PATH_REASON, item.span.start, item.span.end)


def _is_document_path(expression: Expression | None, from_clause: tree.From | None) -> bool:
    """Return whether the expression is a path in the item, directly or as the result of a subquery in FROM."""
    while isinstance(expression, tree.Path) and from_clause is not None:
        sources = (from_clause.source, *from_clause.joins)
        source = next((source for source in sources if _alias(source) == expression.alias), None)
        if source is None or isinstance(source.collection, tree.Path):
            return True
        inner = source.collection.query
        if source.is_iterator or inner.group_by is not None or has_aggregates(inner):
            return False
        expression, from_clause = _selected_path(inner, expression.steps), inner.from_clause
    return isinstance(expression, tree.Path)


def _alias(source: tree.Source) -> str | None:
    if source.alias is not None or isinstance(source.collection, tree.SubqueryCollection):
        return source.alias
    return inferred_alias(source.collection)


def _selected_path(query: tree.Query, steps: tuple[str | int, ...]) -> Expression | None:
    """Return the path that `steps` lead to below a result of the subquery; None if the subquery computes it."""
    match query.select.selection:
        case tree.SelectStar() if query.from_clause is not None:
            alias = _alias(query.from_clause.source)
            return None if alias is None else tree.Path(alias, steps, span=query.span)
        case tree.SelectValue(expression=selected):
            return _below(selected, steps)
        case tree.SelectList(items=items) if steps:
            named = dict(zip(names_of_select_items(items), (item.expression for item in items), strict=True))
            return _below(named.get(str(steps[0])), steps[1:])
        case _:
            return None


def _below(node: Expression | None, steps: tuple[str | int, ...]) -> Expression | None:
    while steps and isinstance(node, tree.ObjectLiteral):
        node, steps = dict(node.properties).get(str(steps[0])), steps[1:]
    if not isinstance(node, tree.Path):
        return None
    return tree.Path(node.alias, (*node.steps, *steps), span=node.span)


def _faults_of_rank(query: tree.Query, parameters: Mapping[str, object]) -> Iterator[MalformedQuery]:
    clause, order_by = query.from_clause, query.order_by
    if clause is None or order_by is None or not order_by.by_rank:
        return
    if clause.joins:
        yield _fault(_RANK_WITH_JOIN, Span(clause.source.span.start, clause.span.end))
    for source in (clause.source, *clause.joins):
        if source.is_iterator:
            yield _fault(_RANK_WITH_IN, source.span)
        if isinstance(source.collection, tree.SubqueryCollection):
            yield _fault(_RANK_WITH_SUBQUERY, source.collection.span)
    calls, _ = scores_and_weights(query, order_by, parameters)
    # A single score has nothing to be fused with.
    if len(calls) == 1 and order_by.items[0].expression is not calls[0]:
        yield _fault((NO_SCORE, NO_SCORE_REASON), order_by.span)
