"""The promise of a compiled query to the executor, in whatever language it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Protocol

from asterism.models.documents.codec import Document
from asterism.reading.collectors import Collector, OrderedCollector
from asterism.reading.conditions import Condition, PropertyPath
from asterism.reading.index_use import IndexUse
from asterism.reading.limits import QueryMeter
from asterism.reading.order_plan import OrderPosition, RowOrder
from asterism.reading.window import Window


class Kind(Enum):
    """The kind of a query, by what must be known before its first result: nothing, the results so far, or all rows."""

    STREAMING = "streaming"
    DISTINCT = "distinct"
    ORDERED = "ordered"
    RANKED = "ranked"
    AGGREGATE = "aggregate"
    GROUPED = "grouped"


class ForeseenWork(Protocol):
    """Work that every document needs, done for many of them at once."""

    def reader(
        self, entries: Sequence[tuple[bytes, bytes]], decode: Callable[[bytes], Document], wanted: int
    ) -> Callable[[bytes], Document]:
        """Return `decode` for the bodies of these entries, to be called in their order, with their work done ahead.
        `wanted` is the number of results that there is room for."""
        ...


class Runnable(Protocol):
    """A query with its parameters in place. Its state between documents is in the collectors it makes.

    A query that reads no documents has one row: it is given one empty document. A STREAMING query is run with `rows`,
    document by document; any other with a collector, or, when ORDERED, also along an index that has its order.
    """

    @property
    def kind(self) -> Kind: ...

    @property
    def is_distinct(self) -> bool: ...

    @property
    def window(self) -> Window:
        """The window of the results. Collectors apply it; callers of `rows` must do so themselves."""
        ...

    @property
    def reads_items(self) -> bool: ...

    # --- the filter -------------------------------------------------------------------------------------------------

    @property
    def has_filter(self) -> bool: ...

    def index_conditions(self) -> Condition:
        """Return the part of the filter that an index can use: every matching document meets it."""
        ...

    def exact_conditions(self) -> Condition | None:
        """Return conditions that matching documents meet and no others; None if conditions cannot express the filter,
        or if a document is not one row."""
        ...

    def pinned_partition_keys(self, paths: tuple[PropertyPath, ...]) -> list[tuple[object, ...]] | None:
        """Return the partition keys at `paths` that matching documents can have, or prefixes of them; None if the
        filter does not fix them, an empty list if nothing can match."""
        ...

    # --- documents one by one ---------------------------------------------------------------------------------------

    @property
    def is_plain(self) -> bool:
        """True if a document has at most one row, so that `matches` and `project` are enough; others need `rows`."""
        ...

    @property
    def answers_whole(self) -> bool:
        """True if `project` returns the document as it is stored, so that its bytes are the result."""
        ...

    @property
    def matches(self) -> Callable[[Document], bool]: ...

    @property
    def project(self) -> Callable[[Document], object]:
        """The evaluator of a matching document's result; UNDEFINED is left out of the results."""
        ...

    def rows(self, item: Document, /) -> Iterable[object]:
        """Return the results of one document, before order and window; not for queries with aggregates."""
        ...

    @property
    def foreseen(self) -> ForeseenWork | None: ...

    # --- all documents ----------------------------------------------------------------------------------------------

    @property
    def takes_items_in_any_order(self) -> bool:
        """True if the results do not depend on the order in which documents are fed to a collector."""
        ...

    def new_collector(self) -> Collector: ...

    def ordered_collector(self, order: RowOrder | None, after: OrderPosition | None) -> OrderedCollector:
        """Return the collector of an ORDERED query whose results begin behind a position."""
        ...

    def adds_nothing(self, item: Document, /) -> bool:
        """Return True if a document adds nothing to groups or distinct results."""
        ...

    # --- indexes ----------------------------------------------------------------------------------------------------

    @property
    def index_use(self) -> IndexUse: ...

    @property
    def directions(self) -> Sequence[bool]:
        """For each expression that rows are ordered by, True if it descends; empty for groups, which their collector
        sorts."""
        ...

    @property
    def unindexed_order_refusal(self) -> str | None:
        """The reason for refusing an order that no index has; None if its rows are sorted instead."""
        ...

    # --- work and memory --------------------------------------------------------------------------------------------

    @property
    def meter(self) -> QueryMeter: ...

    @property
    def is_metered(self) -> bool:
        """True if a document may take long or need much memory, so that it has to be evaluated in turns."""
        ...
