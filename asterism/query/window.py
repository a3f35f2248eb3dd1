"""TOP and OFFSET LIMIT: how many of the results are wanted, and from where on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import cast

from asterism.errors import MalformedQuery
from asterism.query import tree
from asterism.query.limits import COUNT_MAX
from asterism.query.scope import Scope
from asterism.query.semantics import is_number

_TOP, _LIMIT, _OFFSET = "SC2060", "SC2061", "SC2062"


@dataclass(frozen=True, slots=True)
class Window:
    """TOP counts first, then OFFSET LIMIT."""

    top: int | None = None
    offset: int = 0
    limit: int | None = None

    @property
    def results_max(self) -> int | None:
        """How many results are enough, those that OFFSET passes over counted in; None if all are wanted."""
        to_limit = None if self.limit is None else self.offset + self.limit
        given = [count for count in (self.top, to_limit) if count is not None]
        return min(given, default=None)

    def cut(self, results: Iterable[object]) -> Iterator[object]:
        """The results within the window."""
        return islice(results, self.offset, self.results_max)


def window_of(query: tree.Query, scope: Scope) -> Window:
    """Raises MalformedQuery for a count that is none, or too large."""
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
