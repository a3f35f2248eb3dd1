"""Capped collections: the oldest documents make room for new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.collection import Collection
from asterism.models.collections.layout import DocumentKey
from asterism.models.collections.results import Change
from asterism.models.collections.scans import ScanQuery

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call


def check_capped_write(call: Call, collection: Collection) -> None:
    """Refuse a transaction that writes to a capped collection: its oldest documents are deleted outside of it."""
    if call.unit is not None and collection.record.options.get("capped"):
        raise MongoFailure(263, f"Cannot write to a capped collection in a transaction: {collection.record.namespace}")


async def trim(call: Call, collection: Collection) -> int:
    """Delete the oldest documents of a capped collection until it is within its bounds; return how many."""
    options = collection.record.options
    if not options.get("capped"):
        return 0
    bytes_max, documents_max = int(options["size"]), int(options.get("max") or 0)
    size = await collection.size()
    excess_bytes = size.bytes - bytes_max
    excess_documents = size.items - documents_max if documents_max else 0
    if excess_bytes <= 0 and excess_documents <= 0:
        return 0
    removed = 0
    # The newest document stays, also if it is larger than the collection may be.
    left = size.items - 1
    # Inserts that arrive meanwhile look after themselves.
    scan = await collection.open_scan(ScanQuery(hint="$natural"), spent=call.spent)
    candidates = scan.batches()
    try:
        async for found in candidates:
            oldest: list[DocumentKey] = []
            for document in found:
                if not left or (excess_bytes <= 0 and excess_documents <= 0):
                    break
                left -= 1
                oldest.append(document.key)
                excess_bytes -= len(document.body)
                excess_documents -= 1
            if not oldest:
                break
            await collection.change(oldest, _delete, spent=call.spent)
            removed += len(oldest)
    finally:
        await candidates.aclose()
    return removed


def _delete(_: DocumentKey, body: bytes | None) -> Change:
    return Change.keep() if body is None else Change.delete()
