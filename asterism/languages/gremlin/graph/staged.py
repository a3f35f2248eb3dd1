"""Changes of a traversal that are not written yet, and the graph as it looks with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from asterism.languages.gremlin.graph.contract import Lookup
from asterism.languages.gremlin.graph.elements import Edge, KeyValue, Vertex
from asterism.languages.gremlin.graph.routing import same_key


@dataclass(slots=True)
class StagedItem:
    """The document that is to be at a place; None if it is to be removed."""

    key: KeyValue
    element_id: str
    document: dict[str, Any] | None
    # True for an element of this traversal, which must not be in the store yet.
    is_new: bool
    is_edge: bool
    # The version that the change was decided on; None if the store was not read.
    etag: str | None = None


class StagedItems:
    """The staged changes by the places of their documents, in the order of the first change of each."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: dict[bytes, StagedItem] = {}

    def __bool__(self) -> bool:
        return bool(self._items)

    @property
    def is_one_new_item(self) -> bool:
        """True if all there is to do is to add one element."""
        return len(self._items) == 1 and next(iter(self._items.values())).is_new

    def __contains__(self, reference: bytes) -> bool:
        return reference in self._items

    def __iter__(self) -> Iterator[tuple[bytes, StagedItem]]:
        return iter(self._items.items())

    def references(self) -> frozenset[bytes]:
        return frozenset(self._items)

    def get(self, reference: bytes) -> StagedItem | None:
        return self._items.get(reference)

    def put(self, reference: bytes, item: StagedItem) -> None:
        self._items[reference] = item

    def forget(self, reference: bytes) -> None:
        """Drop a change: an element that was added and removed by the same traversal."""
        self._items.pop(reference, None)

    def documents(self, *, are_edges: bool) -> list[Mapping[str, Any]]:
        """Return the documents of staged vertices or edges that will exist."""
        return [
            item.document for item in self._items.values() if item.is_edge is are_edges and item.document is not None
        ]


def fits(element: Vertex | Edge, lookup: Lookup) -> bool:
    """Return whether an element has the ids, places, keys and labels of a lookup."""
    if lookup.labels is not None and element.label not in lookup.labels:
        return False
    if lookup.ids is not None and element.id not in lookup.ids:
        return False
    keys = None if element.key_name is None else lookup.keys
    if keys is not None and not any(same_key(element.key, key) for key in keys):
        return False
    return lookup.places is None or any(
        element_id == element.id and same_key(key, element.key) for key, element_id in lookup.places
    )
