"""The small documents that a storage service keeps about an account, such as its properties."""

from __future__ import annotations

from typing import Final, Protocol

PROPERTIES_DOCUMENT: Final = "properties"


class AccountDocuments(Protocol):
    """The store of a model. A document is durable when it was replaced."""

    async def get_account_document(self, account: str, name: str) -> bytes | None: ...

    async def replace_account_document(self, account: str, name: str, content: bytes, *, before: bytes | None) -> bool:
        """Store a document in place of `before`, or as the first one; False if another was stored since."""
        ...
