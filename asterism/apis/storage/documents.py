"""The small documents that a storage service keeps about an account, such as its properties."""

from __future__ import annotations

from typing import Final, Protocol

PROPERTIES_DOCUMENT: Final = "properties"


class AccountDocuments(Protocol):
    """The store of a model. A document is durable when `put_account_document` returns; the last one wins."""

    async def get_account_document(self, account: str, name: str) -> bytes | None: ...

    async def put_account_document(self, account: str, name: str, content: bytes) -> None: ...
