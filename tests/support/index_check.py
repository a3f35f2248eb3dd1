"""Check of every index entry of a container against its items and its policy."""

from __future__ import annotations

from asterism.keyspaces.routing.families import INDEX, ITEMS
from asterism.models.documents.container import Container
from asterism.models.documents.item_record import unpack_item
from asterism.values.json.text import loads
from tests.support.world import World


async def check_index(world: World, container: Container) -> None:
    record = container.keyspace.record
    rules = container.rules
    assert not rules.earlier, "the index does not follow the policy yet"
    for partition_range in record.map.ranges:
        found = await world.everything(partition_range.partition, INDEX)
        expected = {}
        for key, stored in await world.everything(partition_range.partition, ITEMS):
            item = unpack_item(stored)
            body = loads(item.body)
            assert isinstance(body, dict)
            for term in rules.terms(body) if item.is_indexed else ():
                expected[term + item.number.to_bytes(8, "big")] = key[1:]
        assert dict(found).keys() - expected.keys() == set(), "entries that should not exist"
        assert expected.keys() - dict(found).keys() == set(), "entries that are missing"
        assert dict(found) == expected
