"""Where a query must look: in the logical partitions its filter pins, or in all it was asked of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from asterism.documents.answers import Scope
from asterism.documents.container import Container
from asterism.partitioning.partition_key import PartitionKey
from asterism.query.compile import CompiledQuery
from asterism.values.undefined import UNDEFINED


def scopes_of(container: Container, query: CompiledQuery, scope: Scope) -> list[Scope]:
    """Where in `scope` the query must look: the logical partitions its filter names, or all of it."""
    keys = pinned_keys(container, query)
    if keys is None:
        return [scope]
    pinned = [container.logical_scope(key) for key in keys]
    narrowed = [Scope(max(one.start, scope.start), min(one.end, scope.end)) for one in pinned]
    return sorted((one for one in narrowed if one.start < one.end), key=lambda one: one.start)


def pinned_keys(container: Container, query: CompiledQuery) -> list[PartitionKey] | None:
    """The partition keys (or prefixes of hierarchical ones) that matching items can have; None if any."""
    definition = container.record.definition
    if definition.system_key or not query.reads_items:
        return None
    keys = query.pinned_partition_keys(definition.segments)
    if keys is None or not all(_is_key(key) for key in keys):
        return None
    return [cast(PartitionKey, key) for key in keys]


def _is_key(key: Sequence[object]) -> bool:
    return all(part is None or part is UNDEFINED or isinstance(part, str | int | float) for part in key)
