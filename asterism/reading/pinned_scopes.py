"""The scopes of a query: the logical partitions that its filter pins, or the whole scope of the request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from asterism.models.documents.container import Container
from asterism.models.documents.results import Scope
from asterism.partitioning.computed_key import keys_pinned
from asterism.partitioning.partition_key import PartitionKey
from asterism.reading.conditions import bounds_of
from asterism.reading.runnable import Runnable
from asterism.values.undefined import UNDEFINED


def scopes_of(container: Container, query: Runnable, scope: Scope) -> list[Scope]:
    """Return the parts of `scope` that the query must read: the logical partitions its filter names, or all of it."""
    keys = pinned_keys(container, query)
    if keys is None:
        return [scope]
    pinned = [container.logical_scope(key) for key in keys]
    narrowed = [Scope(max(each.start, scope.start), min(each.end, scope.end)) for each in pinned]
    return sorted((each for each in narrowed if each.start < each.end), key=lambda each: each.start)


def logical_partition_count(container: Container, scopes: Sequence[Scope]) -> int | None:
    """Return how many logical partitions the scopes of a query are; None if there is one of many partitions."""
    return len(scopes) if all(map(container.is_one_key, scopes)) else None


def pinned_keys(container: Container, query: Runnable) -> list[PartitionKey] | None:
    """Return the partition keys (or prefixes of hierarchical ones) that matching items can have; None for any key."""
    definition = container.record.definition
    if definition.system_key or not query.reads_items:
        return None
    keys = keys_pinned(
        definition.segments,
        container.computed_key,
        query.pinned_partition_keys,
        lambda: bounds_of(query.index_conditions()),
    )
    if keys is None or not all(_is_key(key) for key in keys):
        return None
    return [cast(PartitionKey, key) for key in keys]


def _is_key(key: Sequence[object]) -> bool:
    return all(part is None or part is UNDEFINED or isinstance(part, str | int | float) for part in key)
