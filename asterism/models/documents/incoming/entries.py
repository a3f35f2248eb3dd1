"""The entries of incoming edges: for every edge, one at the place of the vertex that it leads to, its *sink*.

An edge lies with its source, so that the edges of a sink are all over the line. With this family (by choice for a
container) they are found where the sink is:

    family, sink's point, sink's id, 00, label, 00, number of the edge -> LSN, reference of the edge

The number is the edge's item number and not its id: an edge that is created again under the id of a deleted one has
another entry, which no late removal of the old one can meet (D11).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from asterism.keyspaces.routing.families import INCOMING_EDGES, number_bytes
from asterism.models.documents.codec import Document
from asterism.models.documents.item_key import ItemKey
from asterism.storage.contract import LSN_BYTES

# With the longest point, of about 130 bytes, keys stay below those that a store accepts.
_ID_BYTES_MAX: Final = 255
_LABEL_BYTES_MAX: Final = 64
# No text in UTF-8 has this byte.
_DIGEST_MARK: Final = b"\xff"
_DIGEST_BYTES: Final = 32
_END: Final = b"\x00"


class Sink(NamedTuple):
    """The vertex that an edge leads to, and the label of the edge."""

    point: bytes
    item_id: bytes
    label: bytes


# Returns the sink of a document that is an edge, and None for every other.
SinkRule = Callable[[Document], Sink | None]


class Entry(NamedTuple):
    """The entry of an edge. `point` is the sink's, by which it is routed; `reference` is the edge's."""

    point: bytes
    key: bytes
    reference: bytes


@dataclass(slots=True)
class EntryChanges:
    """The entries that a unit of work needs and those that it leaves behind. A key is in one list at most."""

    puts: list[Entry] = field(default_factory=list)
    removes: list[Entry] = field(default_factory=list)

    def add(self, before: Entry | None, after: Entry | None, *, is_complete: bool) -> None:
        """Add the change of one item. `is_complete`: every stored edge has its entry, so that one that stays need not
        be written again."""
        if before == after and (is_complete or before is None):
            return
        if before is not None and before != after:
            self.removes.append(before)
        if after is not None:
            self.puts.append(after)

    def __bool__(self) -> bool:
        return bool(self.puts or self.removes)


def sink_prefix(point: bytes, item_id: bytes) -> bytes:
    """Return what the keys of all entries of a vertex begin with."""
    return INCOMING_EDGES + point + _key_part(item_id, _ID_BYTES_MAX) + _END


def label_prefix(point: bytes, item_id: bytes, label: bytes) -> bytes:
    """Return what the keys of the entries of a vertex begin with that are of edges with one label."""
    return sink_prefix(point, item_id) + _key_part(label, _LABEL_BYTES_MAX) + _END


def entry_of(sink: Sink | None, edge: ItemKey, number: int) -> Entry | None:
    """Return the entry of an edge with this item number; None if the item names no sink."""
    if sink is None:
        return None
    point, item_id, label = sink
    return Entry(point, label_prefix(point, item_id, label) + number_bytes(number), edge.reference)


def reference_in(stored: bytes) -> bytes:
    """Return the reference of the edge from the stored value of an entry."""
    return stored[LSN_BYTES:]


def distinct_references(stored: Iterable[bytes]) -> list[bytes]:
    """Return the references of stored values. An entry that a crash left behind may name an edge a second time."""
    return list(dict.fromkeys(value[LSN_BYTES:] for value in stored))


def _key_part(text: bytes, bytes_max: int) -> bytes:
    """Return a text as it stands in keys, or a digest for one that is long or has the byte that ends it."""
    if len(text) <= bytes_max and _END not in text:
        return text
    return _DIGEST_MARK + hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()
