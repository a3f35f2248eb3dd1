"""Rewrites of a query so that a client can merge the answers of its partitions.

A partition then returns with each row the values that the merge needs: those that rows are ordered by or grouped by,
and aggregates in parts that can be added up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from asterism.languages.cosmos_sql.compiling.grouping import is_aggregate
from asterism.languages.cosmos_sql.compiling.scope import inferred_alias
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.select_names import names_of_select_items
from asterism.languages.cosmos_sql.syntax.tree import Expression, Span

# Clients put their own filter here: `true`, or the condition that resumes after a continuation.
FILTER_PLACEHOLDER: Final = "{documentdb-formattableorderbyquery-filter}"

AGGREGATE_OPERATORS: Final = {
    "AVG": "Average",
    "COUNT": "Count",
    "COUNTIF": "CountIf",
    "MAKELIST": "MakeList",
    "MAKESET": "MakeSet",
    "MAX": "Max",
    "MIN": "Min",
    "SUM": "Sum",
}

# Nodes that the plan adds have no place in the client's text.
NOWHERE: Final = Span(0, 0)
# For a source without an alias, like an element of an array.
_ADDED_ALIAS = "_source"


def aggregate_operator(expression: Expression) -> str | None:
    """Return the clients' name of an aggregate, or None if the expression is something else."""
    if isinstance(expression, tree.Call) and is_aggregate(expression):
        return AGGREGATE_OPERATORS[expression.name]
    return None


def select_names(selection: tree.Selection) -> tuple[str, ...]:
    return tuple(names_of_select_items(selection.items)) if isinstance(selection, tree.SelectList) else ()


# --- the three rewrites ---------------------------------------------------------------------------------------------


def rewrite_aggregates(query: tree.Query) -> tree.Query:
    """Select the parts of all aggregates in one row, without GROUP BY. An ORDER BY has no effect and stays."""
    selection: tree.Selection
    if isinstance(query.select.selection, tree.SelectValue):
        selection = tree.SelectValue(_payload(query.select.selection), span=NOWHERE)
    else:
        selection = _select_list(payload=_payload(query.select.selection))
    return _with_selection(query, selection)


def rewrite_groups(query: tree.Query, group_by: tree.GroupBy) -> tree.Query:
    """Select each group with its keys, and parts in the place of aggregates."""
    keys = _items(group_by.expressions)
    return _with_selection(query, _select_list(groupByItems=keys, payload=_payload(query.select.selection)))


def rewrite_order(query: tree.Query, order_by: tree.OrderBy) -> tree.Query:
    """Select each row with its order keys, and leave a place for the client's filter."""
    query, payload = with_payload(query)
    rows = ordered_rows(query, order_by, payload)
    if rows.where is None or not isinstance(query.select.selection, tree.SelectValue):
        return rows
    # A row without a payload would still have its other properties.
    return replace(rows, where=_both(rows.where, call("IS_DEFINED", query.select.selection.expression)))


def ordered_rows(query: tree.Query, order_by: tree.OrderBy, payload: Expression) -> tree.Query:
    """Do the same with another payload; the first source of FROM must have an alias."""
    rid = tree.SelectItem(tree.Path(first_alias(query) or "", ("_rid",), span=NOWHERE), None, span=NOWHERE)
    order_by_items = _items(tuple(item.expression for item in order_by.items))
    rest = _select_list(orderByItems=order_by_items, payload=payload)
    where: Expression = tree.Parameter(f"({FILTER_PLACEHOLDER})", span=NOWHERE)
    if query.where is not None:
        where = _both(query.where, where)
    rows = _with_selection(query, tree.SelectList((rid, *rest.items), span=NOWHERE))
    return replace(rows, where=where, order_by=order_by)


# --- parts ----------------------------------------------------------------------------------------------------------


def _payload(selection: tree.Selection) -> Expression:
    if isinstance(selection, tree.SelectValue):
        part = _part(selection.expression)
        return selection.expression if part is None else tree.ArrayLiteral((part,), span=NOWHERE)
    # A star is refused beside GROUP BY and has no aggregates.
    assert isinstance(selection, tree.SelectList)
    properties = [
        (name, _part(item.expression) or item.expression)
        for name, item in zip(select_names(selection), selection.items, strict=True)
    ]
    return tree.ObjectLiteral(tuple(properties), span=NOWHERE)


def _part(expression: Expression) -> tree.ObjectLiteral | None:
    """Return the parts of an aggregate that one partition answers; None for any other expression."""
    if not isinstance(expression, tree.Call) or not is_aggregate(expression):
        return None
    argument = expression.arguments[0]
    count = call("COUNT", argument)
    if expression.name == "AVG":
        return _object(item=_object(sum=call("SUM", argument), count=count))
    if expression.name in ("MIN", "MAX"):
        # Older clients read `item`; `item2` has the number of values as well.
        counted = _object(**{expression.name.lower(): expression}, count=count)
        return _object(item=expression, item2=counted)
    return _object(item=expression)


def _items(expressions: tuple[Expression, ...]) -> tree.ArrayLiteral:
    """Return each expression in an object of its own, so that an undefined value keeps its place."""
    return tree.ArrayLiteral(tuple(_object(item=expression) for expression in expressions), span=NOWHERE)


def with_payload(query: tree.Query) -> tuple[tree.Query, Expression]:
    """Return the query with an alias for the first source of FROM, and the expression of a row's payload."""
    query, alias = _with_alias(query)
    selection = query.select.selection
    is_star = isinstance(selection, tree.SelectStar)
    return query, tree.Path(alias, span=NOWHERE) if is_star else _payload(selection)


def first_alias(query: tree.Query) -> str | None:
    source = query.from_clause.source if query.from_clause else None
    if source is None or source.alias is not None or isinstance(source.collection, tree.SubqueryCollection):
        return None if source is None else source.alias
    return inferred_alias(source.collection)


def _with_alias(query: tree.Query) -> tuple[tree.Query, str]:
    alias = first_alias(query)
    if alias is not None or query.from_clause is None:
        return query, alias or ""
    source = replace(query.from_clause.source, alias=_ADDED_ALIAS)
    return replace(query, from_clause=replace(query.from_clause, source=source)), _ADDED_ALIAS


def _with_selection(query: tree.Query, selection: tree.Selection) -> tree.Query:
    """Return the query with another selection, and DISTINCT left to the client: no two rows with keys are equal."""
    return replace(query, select=tree.Select(selection, top=query.select.top, span=NOWHERE))


def _select_list(**expressions: Expression) -> tree.SelectList:
    items = [tree.SelectItem(expression, alias, span=NOWHERE) for alias, expression in expressions.items()]
    return tree.SelectList(tuple(items), span=NOWHERE)


def _object(**properties: Expression) -> tree.ObjectLiteral:
    return tree.ObjectLiteral(tuple(properties.items()), span=NOWHERE)


def call(name: str, *arguments: Expression) -> tree.Call:
    return tree.Call(name, arguments, False, NOWHERE, span=NOWHERE)


def _both(left: Expression, right: Expression) -> tree.And:
    return tree.And((left, right), span=NOWHERE)
