"""The physical partitions below the partitions of hubs and the fragments of queues and topics."""

from __future__ import annotations

from typing import Any

from asterism.apis.admin.services import AdminServices
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.messages.entity import Entity
from asterism.partitioning.partition_key import numbered_point


def describe_point(services: AdminServices, keyspace: Keyspace, number: int) -> dict[str, Any]:
    """Describe the physical partition of a point of a numbered line, and the node that it lies on."""
    found = keyspace.record.map.find(numbered_point(number))
    return {"physical_partition": str(found.id), "node": services.node_name(found.node)}


def closed_fragments(entity: Entity | None) -> frozenset[int]:
    """Return the fragments that an operator has closed."""
    return frozenset() if entity is None else entity.description.closed_fragments
