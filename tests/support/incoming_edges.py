"""Edges and their entries at the sinks, compared as the store has them."""

from __future__ import annotations

from typing import Any

from asterism.keyspaces.routing.families import INCOMING_EDGES, ITEMS
from asterism.models.documents.container import Container
from asterism.models.documents.cosmos.edges import sink_rule
from asterism.models.documents.incoming.entries import entry_of, reference_in
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.item_record import unpack_item
from asterism.values.json.text import loads
from tests.support.world import World


def edge(
    edge_id: str = "e", *, pk: str = "p", sink: str = "v", sink_pk: Any = "q", label: str = "knows", **more: Any
) -> dict[str, Any]:
    return {
        "id": edge_id,
        "label": label,
        "pk": pk,
        "_isEdge": True,
        "_vertexId": "u",
        "_vertexLabel": "person",
        "_sink": sink,
        "_sinkLabel": "person",
        "_sinkPartition": sink_pk,
        **more,
    }


async def false_entries(world: World, container: Container) -> int:
    """Check that every edge has its entry, in the partition of its sink (D11); return how many entries have no edge."""
    needed: dict[bytes, bytes] = {}
    stored: dict[bytes, bytes] = {}
    sink_of = sink_rule(container.record.definition)
    for partition in container.keyspace.record.map.ranges:
        for key, value in await world.everything(partition.partition, ITEMS):
            item = unpack_item(value)
            item_key = ItemKey(b"", b"", key, key[1:])
            entry = entry_of(sink_of(loads(item.body)), item_key, item.number)
            if entry is not None:
                needed[entry.key] = entry.reference
        for key, value in await world.everything(partition.partition, INCOMING_EDGES):
            assert partition.range.contains(key[1:]), "an entry is outside the range of its partition"
            stored[key] = reference_in(value)
    missing = {key: reference for key, reference in needed.items() if stored.get(key) != reference}
    assert not missing
    return len(stored) - len(needed)
