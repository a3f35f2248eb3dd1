"""The key of an item: its logical partition and its id, as the bytes under which it is stored."""

from __future__ import annotations

from typing import NamedTuple

from asterism.keyspaces.routing.families import ITEMS, id_key


class ItemKey(NamedTuple):
    """`reference` is the stored key without its family: the value of index and change-log entries, which are routed by
    it. `item_id` is for messages; of a key made from a reference it is the id as it stands there, cut if it is long."""

    point: bytes
    item_id: bytes
    key: bytes
    reference: bytes

    @classmethod
    def at(cls, point: bytes, item_id: bytes) -> ItemKey:
        """The key of the item `item_id` of the logical partition at `point`."""
        reference = point + id_key(item_id)
        return cls(point, item_id, ITEMS + reference, reference)

    @classmethod
    def of_reference(cls, point: bytes, reference: bytes) -> ItemKey:
        assert reference.startswith(point), "a reference begins with the point of its logical partition (D1)"
        return cls(point, reference[len(point) :], ITEMS + reference, reference)
