"""Unique keys: values that at most one item of a logical partition may have.

Every item holds one entry for each of the container's unique keys; two items that would hold the same entry cannot be.
A value that is not there counts as null, as in the service.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from asterism.documents.index_paths import Segment, parse_property_path
from asterism.keyspaces.layout import unique_key
from asterism.values.key_bytes import encode


@dataclass(frozen=True, slots=True)
class UniqueKeys:
    """A container's unique keys, compiled: the paths as they were written, and their segments."""

    keys: tuple[tuple[tuple[str, ...], tuple[tuple[Segment, ...], ...]], ...]

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> UniqueKeys | None:
        policy = cast("Mapping[str, Any]", settings.get("uniqueKeyPolicy") or {})
        paths = [tuple(key["paths"]) for key in policy.get("uniqueKeys", ())]
        if not paths:
            return None
        return cls(tuple((told, tuple(map(parse_property_path, told))) for told in paths))

    def entries(self, point: bytes, item: Mapping[str, object]) -> dict[bytes, tuple[str, ...]]:
        """The entries `item` holds in its logical partition, each with the paths it stands for."""
        held: dict[bytes, tuple[str, ...]] = {}
        for number, (told, paths) in enumerate(self.keys):
            values = b"".join(encode(_value_at(item, segments), bytes_max=None) for segments in paths)
            held[unique_key(point, bytes([number]) + values)] = told
        return held


def _value_at(item: Mapping[str, object], segments: tuple[Segment, ...]) -> object:
    value: object = item
    for segment in segments:
        if not isinstance(value, dict) or segment not in value:
            return None
        value = value[segment]
    return value
