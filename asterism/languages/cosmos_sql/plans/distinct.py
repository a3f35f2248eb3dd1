"""DISTINCT over several partitions."""

from __future__ import annotations

from typing import Final

from asterism.languages.cosmos_sql.compiling.grouping import has_aggregates, selected_expressions
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.printer import to_text
from asterism.languages.cosmos_sql.syntax.select_names import names_of_select_items
from asterism.values.undefined import UNDEFINED

NOT_DISTINCT: Final = "None"
# Equal results are adjacent: the client compares each with its predecessor.
ORDERED: Final = "Ordered"
# The client has to remember every result.
UNORDERED: Final = "Unordered"


def distinct_type(query: tree.Query) -> str:
    if not query.select.distinct:
        return NOT_DISTINCT
    if query.order_by is None or query.group_by is not None or has_aggregates(query):
        return UNORDERED
    selected = {to_text(expression) for expression in selected_expressions(query)}
    order = [to_text(item.expression) for item in query.order_by.items]
    return ORDERED if selected and set(order[: len(selected)]) == selected else UNORDERED


def counted_distinct(query: tree.Query) -> tuple[tree.Query, str] | None:
    """Return, for `SELECT COUNT(1) FROM (SELECT DISTINCT …)`, the query whose distinct results the client counts, and
    the property that has the count; an empty name means that the count is the result. None for any other query."""
    name = _name_of_count(query.select.selection)
    has_more = query.where or query.group_by or query.order_by or query.select.distinct
    if name is None or has_more or query.from_clause is None or query.from_clause.joins:
        return None
    collection = query.from_clause.source.collection
    if query.from_clause.source.is_iterator or not isinstance(collection, tree.SubqueryCollection):
        return None
    inner = collection.query
    is_plain = inner.from_clause is not None and not inner.group_by and not has_aggregates(inner)
    return (inner, name) if inner.select.distinct and is_plain and _has_no_window(inner) else None


def _name_of_count(selection: tree.Selection) -> str | None:
    match selection:
        case tree.SelectValue(expression=expression):
            name = ""
        case tree.SelectList(items=(tree.SelectItem(expression=expression),) as items):
            name = names_of_select_items(items)[0]
        case _:
            return None
    return name if _counts_everything(expression) else None


def _counts_everything(expression: tree.Expression) -> bool:
    """Return whether no result is left out: a count of a property leaves out results without it, a constant none."""
    match expression:
        case tree.Call(name="COUNT", arguments=(tree.Literal(value=value),), is_udf=False):
            return value is not UNDEFINED
        case _:
            return False


def _has_no_window(query: tree.Query) -> bool:
    return query.select.top is None and query.offset_limit is None and query.order_by is None
