"""Every index entry of a container, held against what its items and its policy say there should be."""

from __future__ import annotations

from asterism.documents.container import Container
from asterism.documents.item_record import unpack_item
from asterism.documents.planning import rules_of
from asterism.keyspaces.layout import INDEX, ITEMS
from asterism.values.json_text import loads
from tests.support.world import World


async def check_index(world: World, container: Container) -> None:
    record = container.keyspace.record
    rules = rules_of(record)
    assert not rules.earlier, "the index is still being brought to the policy"
    for one in record.map.ranges:
        found = await world.everything(one.partition, INDEX)
        expected = {}
        for key, stored in await world.everything(one.partition, ITEMS):
            item = unpack_item(stored)
            body = loads(item.body)
            assert isinstance(body, dict)
            for term in rules.terms(body) if item.is_indexed else ():
                expected[term + item.number.to_bytes(8, "big")] = key[1:]
        assert dict(found).keys() - expected.keys() == set(), "entries that should not be there"
        assert expected.keys() - dict(found).keys() == set(), "entries that are missing"
        assert dict(found) == expected
