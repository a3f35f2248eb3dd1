"""Index filters: the indexes that the planner may choose for queries of a shape. They last as long as the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from asterism.languages.mongo.query_shapes import plan_shape
from asterism.models.collections.records import CollectionRecord
from asterism.values.bson.order import equal
from asterism.values.bson.types import Document


@dataclass(frozen=True, slots=True)
class IndexFilter:
    query: Document
    sort: Document
    projection: Document
    collation: Document | None
    # Names and key patterns.
    indexes: Sequence[Any]

    def as_document(self) -> Document:
        shown: Document = {"query": self.query, "sort": self.sort, "projection": self.projection}
        if self.collation:
            shown["collation"] = self.collation
        return {**shown, "indexes": list(self.indexes)}

    def names(self, record: CollectionRecord) -> frozenset[str]:
        """Return the indexes of a collection that the filter allows."""
        return frozenset(
            index.name
            for index in record.indexes
            if any(index.name == allowed or equal(index.key, allowed) for allowed in self.indexes)
        )


@dataclass(slots=True)
class IndexFilters:
    """The filters of a process, by the UUID of the collection and the shape of the plan."""

    _filters: dict[bytes, dict[str, IndexFilter]] = field(default_factory=dict)

    def set(self, record: CollectionRecord, shape: str, filter: IndexFilter) -> None:
        self._filters.setdefault(record.uuid, {})[shape] = filter

    def clear(self, record: CollectionRecord, shape: str | None = None) -> None:
        """Forget the filter of a shape, or all of a collection."""
        if shape is None:
            self._filters.pop(record.uuid, None)
        else:
            self._filters.get(record.uuid, {}).pop(shape, None)

    def list(self, record: CollectionRecord) -> list[IndexFilter]:
        return list(self._filters.get(record.uuid, {}).values())

    def allowed(
        self,
        record: CollectionRecord,
        filter: Mapping[str, Any],
        sort: Mapping[str, Any] | None = None,
        projection: Mapping[str, Any] | None = None,
        collation: Mapping[str, Any] | None = None,
    ) -> frozenset[str] | None:
        """Return the names of the indexes that a query may use; None for all of them."""
        filters = self._filters.get(record.uuid) if self._filters else None
        if not filters:
            return None
        found = filters.get(plan_shape(filter, sort, projection, collation))
        return None if found is None else found.names(record)
