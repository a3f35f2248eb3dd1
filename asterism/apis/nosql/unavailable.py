"""What this version knows of and does not do, in one table, with the words clients are told.

The answer is 400: clients do not repeat it, as they would a 5xx, and users see the sentence.
"""

from __future__ import annotations

from typing import Final

# (path of the feed, the sentence): every method on the feed and on one of its members is answered with it.
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

# (method, path, type that requests sign, the sentence): single operations.
OPERATIONS: Final[tuple[tuple[str, str, str, str], ...]] = ()
