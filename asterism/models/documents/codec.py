"""The promise of a document codec: how the documents of one container are named, written, read and ordered.

The rest of the room knows items as bytes under keys: an id, a body, a version tag, a number. A codec gives them
meaning. The service's codec is `cosmos/codec.py` (JSON with system properties); another protocol brings its own, and
with it its own ids, types and order of values. A store gets its codecs from its profile (`settings.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from asterism.models.documents.changes.item_version import ItemVersion
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.values.identifiers import Lsn
from asterism.values.value_order import ValueOrder

# A document as the program works on it: names and values, in the types of its codec. A codec's documents are dicts
# because index rules, partition keys and unique keys walk them by name, tens of times for each write.
Document = dict[str, object]

# Bytes of a version tag: random, new with every write of an item, and stored in the header of its record.
TAG_BYTES = 16


class Stamped(NamedTuple):
    """A document as it will be stored, the bytes of its body, and the text of its version tag."""

    document: Document
    body: bytes
    etag: str


class DocumentCodec(Protocol):
    """Made for one container, and used for every write and many reads: its methods must be cheap and hold no state that
    changes."""

    @property
    def order(self) -> ValueOrder: ...

    @property
    def record_format(self) -> int:
        """The format number of stored records with such a body (`item_record.BODY_ENDS`)."""
        ...

    # --- names ------------------------------------------------------------------------------------------------------

    def id_of(self, document: Document, /) -> bytes:
        """Return the id of a document that is to be written; MalformedRequest if it has no sound one."""
        ...

    def stored_id(self, document: Document, /) -> bytes:
        """Return the id of a stored document, which was sound when it was written."""
        ...

    def id_text(self, item_id: bytes, /) -> str:
        """Return an id as messages show it."""
        ...

    # --- bodies -----------------------------------------------------------------------------------------------------

    def decode(self, body: bytes, /, *, key: bytes = b"") -> Document:
        """Return the document of a stored body, new on each call; StoredDamage, naming `key`, if it cannot be read."""
        ...

    @property
    def parse(self) -> Callable[[bytes], Document]:
        """`decode` for loops over many bodies, as directly as it can be called: raises `parse_error` for a body that
        cannot be read, and `decode` then says what is wrong with it."""
        ...

    @property
    def parse_error(self) -> type[Exception]: ...

    def stamp(self, document: Document, /, *, number: int, tag: bytes, changed_at_seconds: int) -> Stamped:
        """Return a document completed with what the server adds to it, and encoded. `number` is the item's, `tag` its
        new version tag. MalformedRequest for a document that cannot be stored.

        The caller's document is not changed, so that a write that was overtaken can be planned again from it; nested
        values may be shared with it, and must not be changed afterwards.
        """
        ...

    def contents(self, document: Document, /) -> bytes:
        """Return the encoding of a document without what the server adds: equal for equal documents of clients."""
        ...

    # --- versions ---------------------------------------------------------------------------------------------------

    def etag(self, tag: bytes, /) -> str:
        """Return a version tag as clients see it, and send it in conditions."""
        ...

    def changed_at_seconds(self, body: bytes, /) -> int:
        """Return the wall-clock second in which the item was changed last."""
        ...

    def expires_at_seconds(self, body: bytes, /, *, default_ttl_seconds: int) -> int | None:
        """Return the second from which an item is expired, or None if it never is. -1 is a default that never ends."""
        ...

    # --- change feeds -----------------------------------------------------------------------------------------------

    def latest_row(self, body: bytes, lsn: Lsn, /) -> bytes:
        """Return the row that the feed of latest versions has for an item that was changed by the batch `lsn`."""
        ...

    def version_row(self, version: ItemVersion, definition: PartitionKeyDefinition, /) -> bytes:
        """Return the row that the feed of all versions and deletes has for a change."""
        ...
