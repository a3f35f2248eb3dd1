"""What this version knows of and does not do, in one table, with the words clients are told.

The answer is 400: clients do not repeat it, as they would a 5xx, and users see the sentence.
"""

from __future__ import annotations

from typing import Final

CHANGE_FEED: Final = "The change feed is not available in this version of Asterism."
BATCH: Final = "Transactional batches and bulk requests are not available in this version of Asterism."
TRIGGERS: Final = "Triggers are not available in this version of Asterism, so none can be run with a write."

# (path of the feed, the sentence): every method on the feed and on one of its members is answered with it.
FEEDS: Final[tuple[tuple[str, str], ...]] = (
    ("dbs/{database}/users", "Users are not available in this version of Asterism."),
    ("dbs/{database}/users/{user}/permissions", "Permissions are not available in this version of Asterism."),
    (
        "dbs/{database}/clientencryptionkeys",
        "Client encryption keys are not available in this version of Asterism.",
    ),
    (
        "dbs/{database}/colls/{container}/sprocs",
        "Stored procedures are not available in this version of Asterism.",
    ),
    ("dbs/{database}/colls/{container}/triggers", "Triggers are not available in this version of Asterism."),
    (
        "dbs/{database}/colls/{container}/udfs",
        "User-defined functions are not available in this version of Asterism.",
    ),
    (
        "dbs/{database}/colls/{container}/docs/{item}/attachments",
        "Attachments are not available in Asterism; the service has retired them too.",
    ),
)

# (method, path, type that requests sign, the sentence): single operations.
OPERATIONS: Final[tuple[tuple[str, str, str, str], ...]] = (
    (
        "PATCH",
        "dbs/{database}/colls/{container}/docs/{item}",
        "docs",
        "Patching items is not available in this version of Asterism.",
    ),
    (
        "POST",
        "dbs/{database}/colls/{container}/operations/partitionkeydelete",
        "colls",
        "The partition key delete feature is disabled: it is not available in this version of Asterism.",
    ),
)
