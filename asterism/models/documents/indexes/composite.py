"""An order by several paths, as an index.

An item has one term in it: the encodings of the paths, one after the other, those that descend with every bit inverted,
so that bytes sort as the index does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asterism.keyspaces.routing.families import INDEX
from asterism.models.documents.indexes.paths import parse_property_path, path_token, value_at
from asterism.models.documents.indexes.terms import Term
from asterism.values.value_order import ValueOrder

# Bytes of all of a composite index's paths together.
COMPOSITE_BYTES_MAX = 400
# Every bit inverted: bytes that sorted first sort last.
INVERTED = bytes(255 - byte for byte in range(256))


@dataclass(frozen=True, slots=True)
class CompositeIndex:
    """An order by several paths, each ascending or descending, that the container keeps as an index."""

    token: bytes
    paths: tuple[tuple[tuple[str, ...], bool], ...]
    order: ValueOrder

    @property
    def component_bytes_max(self) -> int:
        return COMPOSITE_BYTES_MAX // len(self.paths)

    def term(self, item: Mapping[str, Any]) -> Term:
        return INDEX + self.token + self.encode([value_at(item, names) for names, _ in self.paths])

    def encode(self, values: Sequence[object]) -> bytes:
        parts = []
        encode, bytes_max = self.order.encode, self.component_bytes_max
        for value, (_, descending) in zip(values, self.paths, strict=True):
            encoded = encode(value, bytes_max=bytes_max)
            parts.append(encoded.translate(INVERTED) if descending else encoded)
        return b"".join(parts)


def composite_index(
    policy_paths: Sequence[Mapping[str, Any]], order: ValueOrder, *, is_turned: bool = True
) -> CompositeIndex:
    """Return a composite index of an indexing policy. Its values are in this order.

    An index that descends by its first path is kept turned round, with every direction reversed, and read backwards:
    entries with equal values are in the order of item numbers, and answers to ORDER BY have them in the direction of
    the first path. Without `is_turned` it is kept as the policy writes it, as versions did that did not yet keep items
    in the order of creation.
    """
    paths = []
    for entry in policy_paths:
        names = tuple(segment for segment in parse_property_path(entry["path"]) if isinstance(segment, str))
        paths.append((names, str(entry.get("order", "ascending")).lower() == "descending"))
    if is_turned and paths[0][1]:
        paths = [(names, not descending) for names, descending in paths]
    token = path_token([f"{'-' if descending else '+'}/{'/'.join(names)}" for names, descending in paths])
    return CompositeIndex(token, tuple(paths), order)
