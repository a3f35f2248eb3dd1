"""The properties of an item that mean something to the service: its name, and those that the server writes."""

from __future__ import annotations

from typing import Final

ID: Final = "id"
RID: Final = "_rid"
SELF: Final = "_self"
ETAG: Final = "_etag"
ATTACHMENTS: Final = "_attachments"
TIMESTAMP: Final = "_ts"
TTL: Final = "ttl"
# Of vertices and edges.
LABEL: Final = "label"
# In rows of the change feed.
LSN: Final = "_lsn"

# In the order in which they follow the client's own properties. The timestamp is the last, where `changed_at_seconds`
# finds it without parsing.
SYSTEM_PROPERTIES: Final = (RID, SELF, ETAG, ATTACHMENTS, TIMESTAMP)
# The server writes them, or they name the item: a patch or a computed property cannot.
RESERVED_PROPERTIES: Final = frozenset({ID, *SYSTEM_PROPERTIES})
# Different in every item, or not a property of the item: no query looks for an item by them.
NEVER_INDEXED: Final = (RID, SELF, ETAG, ATTACHMENTS)
# The service finds items by id, and changes by time, under every policy but "none".
ALWAYS_INDEXED: Final = (ID, TIMESTAMP)
