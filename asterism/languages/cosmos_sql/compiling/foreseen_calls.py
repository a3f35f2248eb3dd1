"""Calls of users' functions made ahead: calls that a query makes for every item, for many items at once.

A single call is an exchange with another process, and most of its time is spent on the way. Only results are kept: a
call that fails is made again when its item is evaluated, and its error is raised then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol, runtime_checkable

from asterism.errors import AsterismError
from asterism.languages.cosmos_sql.compiling.certain_calls import certain_calls
from asterism.languages.cosmos_sql.syntax import tree
from asterism.reading.row_source import Evaluator

Item = dict[str, object]

# A page with room for few results begins with few calls, for it may be full before the others are needed.
_ITEMS_MIN: Final = 8
# The number of items in a slice of a scan.
_ITEMS_MAX: Final = 128
# Items that are read ahead are in memory at the same time.
_BODIES_BYTES_MAX: Final = 256 * 1024

_NOT_FORESEEN: Final = object()


@runtime_checkable
class ForeseeingFunction(Protocol):
    """A user's function that can be called many times at once."""

    def results_ahead(self, calls: Iterable[tuple[object, ...]]) -> Sequence[object]:
        """Return the results of the first of these calls, as many as could be found and kept. Raises nothing."""


class _Site:
    """A call in the query's text, with the results that were made ahead."""

    def __init__(self, function: ForeseeingFunction, arguments: list[Evaluator]) -> None:
        self._function = function
        self._arguments = arguments
        # By the identity of the item, which lives as long as the results.
        self.results: dict[int, object] = {}

    def foresee(self, items: list[Item]) -> None:
        found = self._function.results_ahead(self._calls(items))
        self.results.clear()
        self.results.update(zip(map(id, items), found, strict=False))

    def _calls(self, items: list[Item]) -> Iterator[tuple[object, ...]]:
        arguments = self._arguments
        try:
            for item in items:
                yield tuple([argument(item) for argument in arguments])
        except AsterismError:
            # The error is raised when the item itself is evaluated.
            return


class ForeseenCalls:
    """The calls of one query whose rows are items."""

    def __init__(self, certain: Sequence[tree.Call]) -> None:
        self._certain = frozenset(map(id, certain))
        # Kept alive, for the identities above are theirs.
        self._nodes = certain
        self._sites: list[_Site] = []
        self._items: list[Item] = []
        self._items_ahead = 0

    @classmethod
    def of(cls, query: tree.Query) -> ForeseenCalls | None:
        """Return the calls that a query makes for every item, or None."""
        expressions = _evaluated_for_every_item(query)
        certain = [call for expression in expressions for call in certain_calls(expression)]
        return cls(certain) if certain else None

    @property
    def has_calls(self) -> bool:
        return bool(self._sites)

    def register(
        self, node: tree.Call, function: Callable[..., object], arguments: list[Evaluator], call: Evaluator
    ) -> Evaluator:
        """Return `call`, preceded by a lookup of results made ahead if the call is certain."""
        if id(node) not in self._certain or not isinstance(function, ForeseeingFunction):
            return call
        site = _Site(function, arguments)
        self._sites.append(site)
        results = site.results

        def evaluate(item: Item) -> object:
            result = results.pop(id(item), _NOT_FORESEEN)
            return call(item) if result is _NOT_FORESEEN else result

        return evaluate

    def reader(
        self, entries: Sequence[tuple[bytes, bytes]], item_of: Callable[[bytes], Item], wanted: int
    ) -> Callable[[bytes], Item]:
        """Return `item_of` for the bodies of these entries, which are read in their order, with their calls made ahead.

        `wanted` is the number of results that the page has room for.
        """
        self._items_ahead = max(self._items_ahead, _ITEMS_MIN, min(wanted, _ITEMS_MAX))
        items = self._items_of([body for _, body in entries], item_of)
        return lambda _body: next(items)

    def _items_of(self, bodies: list[bytes], item_of: Callable[[bytes], Item]) -> Iterator[Item]:
        try:
            while bodies:
                items = self._items = _read(bodies[: self._items_ahead], item_of)
                for site in self._sites:
                    site.foresee(items)
                self._items_ahead = min(2 * self._items_ahead, _ITEMS_MAX)
                yield from items
                del bodies[: len(items)]
        finally:
            self._forget()

    def _forget(self) -> None:
        for site in self._sites:
            site.results.clear()
        self._items = []


def _evaluated_for_every_item(query: tree.Query) -> list[tree.Expression]:
    """Return the filter, or the selection if there is no filter, no order and no groups before it."""
    source = query.from_clause.source.collection if query.from_clause is not None else None
    is_of_whole_items = isinstance(source, tree.Path) and not source.steps
    if not is_of_whole_items or (query.order_by is not None and query.order_by.by_rank):
        return []
    if query.where is not None:
        return [query.where]
    if query.group_by is not None or query.order_by is not None:
        return []
    match query.select.selection:
        case tree.SelectValue(expression=expression):
            return [expression]
        case tree.SelectList(items=items):
            return [item.expression for item in items]
        case _:
            return []


def _read(bodies: list[bytes], item_of: Callable[[bytes], Item]) -> list[Item]:
    """Return the first items, at least one, as many as may be in memory at the same time."""
    items: list[Item] = []
    total_bytes = 0
    for body in bodies:
        total_bytes += len(body)
        if items and total_bytes > _BODIES_BYTES_MAX:
            break
        try:
            items.append(item_of(body))
        except AsterismError:
            # The error is raised when this item is the first.
            if items:
                break
            raise
    return items
