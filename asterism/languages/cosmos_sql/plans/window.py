"""TOP and OFFSET LIMIT, divided between the client and the partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from asterism.languages.cosmos_sql.plans.rewrite import NOWHERE
from asterism.languages.cosmos_sql.syntax import tree
from asterism.reading.limits import COUNT_MAX
from asterism.reading.window import Window


@dataclass(frozen=True, slots=True)
class ClientWindow:
    """The window that the client applies after it has merged the partitions."""

    top: int | None = None
    offset: int | None = None
    limit: int | None = None


NO_WINDOW: Final = ClientWindow()


def client_window(query: tree.Query, window: Window) -> ClientWindow:
    if query.offset_limit is None or window.limit is None:
        return ClientWindow(top=window.top)
    if window.top is None:
        return ClientWindow(offset=window.offset, limit=window.limit)
    # Clients skip before they count TOP; the service counts TOP first. Expressed as a limit alone, both agree.
    return ClientWindow(offset=window.offset, limit=min(window.limit, max(window.top - window.offset, 0)))


def without_window(query: tree.Query) -> tree.Query:
    """Return the query without its window, for rows that are merged into others: no partition may leave one out."""
    return replace(query, select=replace(query.select, top=None), offset_limit=None)


def with_partition_window(query: tree.Query, window: ClientWindow) -> tree.Query:
    """Return the query with the window of a partition, which may have all rows of the result, also those to skip."""
    if window.offset is None or window.limit is None:
        return query
    rows_max = min(window.offset + window.limit, COUNT_MAX)
    offset, limit = tree.Literal(0, span=NOWHERE), tree.Literal(rows_max, span=NOWHERE)
    return replace(without_window(query), offset_limit=tree.OffsetLimit(offset, limit, span=NOWHERE))
