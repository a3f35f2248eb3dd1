"""The codec of the service's items: JSON text that ends with the system properties.

The bodies are what clients are answered with, so a point read parses nothing. `_ts` is the last property, so that the
time of the last change is found in the text.
"""

from __future__ import annotations

from typing import Final, cast

from asterism.models.documents.changes.item_version import ItemVersion
from asterism.models.documents.codec import Document, Stamped
from asterism.models.documents.cosmos.feed_rows import latest_row, version_row
from asterism.models.documents.cosmos.properties import (
    ATTACHMENTS,
    ETAG,
    ID,
    RID,
    SELF,
    SYSTEM_PROPERTIES,
    TIMESTAMP,
    TTL,
)
from asterism.models.documents.cosmos.time_to_live import FOR_EVER, check_item_ttl
from asterism.models.documents.item_record import JSON_FORMAT
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.values.identifiers import Lsn
from asterism.values.item import validate_item_id
from asterism.values.json.text import NotJson, dumps, dumps_parsed, loads_stored, parse_stored, unreadable
from asterism.values.json.value_order import JSON_ORDER
from asterism.values.resource_ids import DocumentLinks
from asterism.values.value_order import ValueOrder

_ATTACHMENTS_LINK: Final = "attachments/"
_SYSTEM: Final = frozenset(SYSTEM_PROPERTIES)
# The names as they stand in the text.
_TIMESTAMP_NAME: Final = f'"{TIMESTAMP}":'.encode()
_TTL_NAME: Final = f'"{TTL}":'.encode()


class CosmosCodec:
    """The codec of one container. Only the links in `_rid` and `_self` differ from one container to the next."""

    __slots__ = ("_links",)

    record_format: Final = JSON_FORMAT
    order: Final[ValueOrder] = JSON_ORDER

    def __init__(self, container_rid: bytes) -> None:
        self._links = DocumentLinks(container_rid)

    # --- names ------------------------------------------------------------------------------------------------------

    def id_of(self, document: Document) -> bytes:
        return validate_item_id(document.get(ID)).encode()

    def stored_id(self, document: Document) -> bytes:
        return cast(str, document[ID]).encode()

    def id_text(self, item_id: bytes) -> str:
        return item_id.decode(errors="replace")

    # --- bodies -----------------------------------------------------------------------------------------------------

    def decode(self, body: bytes, *, key: bytes = b"") -> Document:
        return cast(Document, loads_stored(body, key=key.hex()))

    parse = staticmethod(parse_stored)
    parse_error: Final = NotJson

    def stamp(self, document: Document, *, number: int, tag: bytes, changed_at_seconds: int) -> Stamped:
        if TTL in document:
            check_item_ttl(document[TTL])
        # Most new items have none of them.
        if _SYSTEM.isdisjoint(document):
            stamped = document.copy()
        else:
            stamped = {name: value for name, value in document.items() if name not in _SYSTEM}
        links = self._links
        stamped[RID] = rid = links.rid_text(number)
        stamped[SELF] = links.self_link(rid)
        stamped[ETAG] = etag = self.etag(tag)
        stamped[ATTACHMENTS] = _ATTACHMENTS_LINK
        stamped[TIMESTAMP] = changed_at_seconds
        return Stamped(stamped, dumps_parsed(stamped), etag)

    def contents(self, document: Document) -> bytes:
        return dumps({name: value for name, value in document.items() if name not in _SYSTEM})

    # --- versions ---------------------------------------------------------------------------------------------------

    def etag(self, tag: bytes) -> str:
        """Return a version tag as the service writes etags: a GUID between quotation marks."""
        text = tag.hex()
        return f'"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"'

    def changed_at_seconds(self, body: bytes) -> int:
        try:
            return int(body[body.rindex(_TIMESTAMP_NAME) + len(_TIMESTAMP_NAME) : -1])
        except ValueError:
            raise unreadable(body) from None

    def expires_at_seconds(self, body: bytes, *, default_ttl_seconds: int) -> int | None:
        seconds = default_ttl_seconds
        if _TTL_NAME in body:
            own = cast(Document, loads_stored(body)).get(TTL)
            # A property of that name may also stand deeper in the item, where it says nothing.
            if isinstance(own, int | float):
                seconds = int(own)
        return None if seconds == FOR_EVER else self.changed_at_seconds(body) + seconds

    # --- change feeds -----------------------------------------------------------------------------------------------

    def latest_row(self, body: bytes, lsn: Lsn) -> bytes:
        return latest_row(body, lsn)

    def version_row(self, version: ItemVersion, definition: PartitionKeyDefinition) -> bytes:
        return version_row(version, definition)
