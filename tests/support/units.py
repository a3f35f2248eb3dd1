"""Operations of a unit of work by the ids and documents of a test: the transaction's own take keys."""

from __future__ import annotations

from asterism.models.documents.codec import Document
from asterism.models.documents.transaction import Outcome, Transaction


async def read(work: Transaction, item_id: str) -> Outcome:
    return await work.read(work.item_key(item_id.encode()))


async def create(work: Transaction, document: Document) -> Outcome:
    return await work.create(work.key_of(document), document)


async def upsert(work: Transaction, document: Document) -> Outcome:
    return await work.upsert(work.key_of(document), document)


async def replace(work: Transaction, item_id: str, document: Document) -> Outcome:
    return await work.replace(work.item_key(item_id.encode()), work.key_of(document), document)


async def delete(work: Transaction, item_id: str) -> Outcome:
    return await work.delete(work.item_key(item_id.encode()))
