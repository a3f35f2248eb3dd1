"""The documents of a stored graph by place, by key, by conditions, or all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from asterism.errors import AsterismError
from asterism.keyspaces.routing.families import id_key
from asterism.languages.gremlin.graph.contract import Lookup
from asterism.languages.gremlin.graph.elements import KeyValue
from asterism.languages.gremlin.graph.items import Document, ItemReads
from asterism.languages.gremlin.graph.profile import Ledger
from asterism.languages.gremlin.graph.routing import index_route, places_of
from asterism.models.documents.container import Container, DocumentServices
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.partitioning.partition_key import SYSTEM_KEY, PartitionKey

GET_VERTICES: Final = "GetVertices"
GET_EDGES: Final = "GetEdges"
GET_NEIGHBORS: Final = "GetNeighborVertices"

# A logical partition with no more items than this is read as a whole: its physical partition's index may have many
# entries of others.
_SCANNED_ITEMS_MAX: Final = 500
# Callers that need no more than this ask one partition after the other.
_FEW: Final = 32


class GraphReads:
    """The reads of one traversal, of what is in the store."""

    __slots__ = ("_container", "_definition", "items", "key_name")

    def __init__(self, container: Container, services: DocumentServices, ledger: Ledger) -> None:
        self._container = container
        self._definition = container.record.definition
        self.items = ItemReads(container, services, ledger)
        # None for a graph without partitions.
        self.key_name = self._definition.only_property

    # --- places -----------------------------------------------------------------------------------------------------

    def partition_key(self, key: KeyValue) -> PartitionKey:
        return SYSTEM_KEY if self.key_name is None else (key,)

    def point(self, key: KeyValue) -> bytes:
        return storage_point(self._definition, self.partition_key(key))

    def reference(self, key: KeyValue, element_id: str) -> bytes:
        """Return the place of an element in the store: its point and its id."""
        return self.point(key) + id_key(element_id.encode())

    async def read_places(self, places: Sequence[tuple[KeyValue, str]], kind: str) -> list[Document | None]:
        """Return the documents with these keys and ids; None for one that is not there."""
        references: list[bytes | None] = []
        for key, element_id in places:
            try:
                references.append(self.reference(key, element_id))
            except (AsterismError, UnicodeEncodeError):
                # A key or an id that no element can have.
                references.append(None)
        sound = [reference for reference in references if reference is not None]
        if not sound:
            return [None] * len(places)
        found = iter(await self.items.read_points(sound, kind))
        return [None if reference is None else next(found) for reference in references]

    # --- lookups ----------------------------------------------------------------------------------------------------

    async def named_documents(self, lookup: Lookup, *, is_edge: bool) -> list[Document] | None:
        """Return the documents of a lookup that names its items, by point reads; None for any other lookup."""
        places = places_of(lookup, self.key_name)
        if not places:
            return None if places is None else []
        found = await self.read_places(places, GET_EDGES if is_edge else GET_VERTICES)
        return [document for document in found if document is not None]

    async def documents(self, lookup: Lookup, *, is_edge: bool) -> AsyncIterator[list[Document]]:
        """Yield documents among which all elements of a lookup are that does not name them, in batches; the caller
        checks them."""
        kind = GET_EDGES if is_edge else GET_VERTICES
        intervals = [FULL] if lookup.keys is None or self.key_name is None else self._logical_intervals(lookup.keys)
        route = index_route(lookup, self._container.rules, is_edge=is_edge)
        if route is not None and lookup.keys is not None and self.key_name is not None:
            for interval in intervals:
                if await self.items.count_items(interval) <= _SCANNED_ITEMS_MAX:
                    async for batch in self.items.scan(interval, kind):
                        yield batch
                else:
                    async for batch in self.items.look_up(route, [interval], kind):
                        yield batch
        elif route is not None:
            is_few = lookup.limit is not None and lookup.limit <= _FEW
            async for batch in self.items.look_up(route, intervals, kind, one_by_one=is_few):
                yield batch
        else:
            for interval in intervals:
                async for batch in self.items.scan(interval, kind):
                    yield batch

    def _logical_intervals(self, keys: Sequence[KeyValue]) -> list[KeyRange]:
        intervals: dict[bytes, KeyRange] = {}
        for key in keys:
            try:
                interval = self.logical_interval(key)
            except AsterismError:
                # No element can have such a key.
                continue
            intervals[interval.start] = interval
        return list(intervals.values())

    def logical_interval(self, key: KeyValue) -> KeyRange:
        """Return the interval of the line that one logical partition is."""
        scope = self._container.logical_scope(self.partition_key(key))
        return KeyRange(scope.start, scope.end)
