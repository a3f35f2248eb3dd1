"""Unique keys: values that at most one item of a logical partition may have.

Every item holds one entry for each of the container's unique keys; two items that would hold the same entry cannot
both exist. An absent value counts as null, as in the service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asterism.keyspaces.routing.families import unique_key
from asterism.models.documents.indexes.paths import Segment, parse_property_path
from asterism.values.value_order import ValueOrder


@dataclass(frozen=True, slots=True)
class UniqueKeys:
    """The unique keys of a container, compiled: the paths as clients wrote them, and their segments."""

    order: ValueOrder
    keys: tuple[tuple[tuple[str, ...], tuple[tuple[Segment, ...], ...]], ...]

    @classmethod
    def of_paths(cls, order: ValueOrder, keys: Sequence[Sequence[str]]) -> UniqueKeys | None:
        """Compile the paths of each key; None if there is no key."""
        if not keys:
            return None
        return cls(order, tuple((tuple(paths), tuple(map(parse_property_path, paths))) for paths in keys))

    def entries(self, point: bytes, document: Mapping[str, object]) -> dict[bytes, tuple[str, ...]]:
        """Return the entries that a document holds in its logical partition, each with the paths it stands for."""
        encode = self.order.encode
        held: dict[bytes, tuple[str, ...]] = {}
        for number, (paths, parsed) in enumerate(self.keys):
            values = b"".join(encode(_value_at(document, segments), bytes_max=None) for segments in parsed)
            held[unique_key(point, bytes([number]) + values)] = paths
        return held


def _value_at(document: Mapping[str, object], segments: tuple[Segment, ...]) -> object:
    value: object = document
    for segment in segments:
        if not isinstance(value, dict) or segment not in value:
            return None
        value = value[segment]
    return value
