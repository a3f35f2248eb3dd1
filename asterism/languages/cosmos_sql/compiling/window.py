"""TOP and OFFSET LIMIT, read from the tree."""

from __future__ import annotations

from typing import cast

from asterism.languages.cosmos_sql.compiling.scope import Scope
from asterism.languages.cosmos_sql.compiling.semantics import is_number
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax import tree
from asterism.reading.limits import COUNT_MAX
from asterism.reading.window import Window

_TOP, _LIMIT, _OFFSET = "SC2060", "SC2061", "SC2062"


def window_of(query: tree.Query, scope: Scope) -> Window:
    """Return the window of a query. Raises MalformedQuery for a count that is not a whole number, or too large."""
    top = query.select.top
    offset_limit = query.offset_limit
    return Window(
        top=None if top is None else _top(top, scope),
        offset=0 if offset_limit is None else _count(offset_limit.offset, scope, name="OFFSET", code=_OFFSET),
        limit=None if offset_limit is None else _count(offset_limit.limit, scope, name="LIMIT", code=_LIMIT),
    )


def _top(node: tree.Expression, scope: Scope) -> int:
    value = _value(node, scope)
    if not _is_whole(value) or not 0 <= cast(float, value) <= COUNT_MAX:
        reason = "The count value provided for a TOP clause must be an integer."
        raise MalformedQuery(_TOP, reason, node.span.start, node.span.end)
    return int(cast(float, value))


def _count(node: tree.Expression, scope: Scope, *, name: str, code: str) -> int:
    value = _value(node, scope)
    if not _is_whole(value) or cast(float, value) < 0:
        reason = f"The {name} count value must be a non-negative integer."
        raise MalformedQuery(code, reason, node.span.start, node.span.end)
    if cast(float, value) > COUNT_MAX:
        reason = f"The {name} count value exceeds the maximum allowed value."
        raise MalformedQuery(code, reason, node.span.start, node.span.end)
    return int(cast(float, value))


def _value(node: tree.Expression, scope: Scope) -> object:
    return scope.parameter(node) if isinstance(node, tree.Parameter) else cast(tree.Literal, node).value


def _is_whole(value: object) -> bool:
    return is_number(value) and cast(float, value) % 1 == 0
