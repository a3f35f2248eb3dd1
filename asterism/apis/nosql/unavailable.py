"""Features of the service that this version does not have, in one table, with the message for each.

The status is 400: clients do not retry it, as they would a 5xx, and users see the message.
"""

from __future__ import annotations

from typing import Final

# (path of the feed, the message): the answer to every method on the feed and on its members.
FEEDS: Final[tuple[tuple[str, str], ...]] = (
    (
        "dbs/{database}/clientencryptionkeys",
        "Client encryption keys are not available in this version of Asterism.",
    ),
    (
        "dbs/{database}/colls/{container}/docs/{item}/attachments",
        "Attachments are not available in Asterism; the service has retired them too.",
    ),
)

# (method, path, the message): single operations.
OPERATIONS: Final[tuple[tuple[str, str, str], ...]] = ()
