"""Files on their way into blobs and back: in blocks, with their MD5."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Mapping
from typing import BinaryIO, Final

from asterism.cli.failure import CommandFailed
from asterism.cli.storage_client import StorageClient, StorageRefused

# The unit of one request, both ways: so much of a file is in memory for each connection. The service has an MD5 of a
# range up to this size.
BLOCK_BYTES: Final = 4 * 1024 * 1024
# The service's limit of blocks in a blob.
_BLOCKS_MAX: Final = 50_000
# Of an id: no two uploads at once of one blob share their blocks.
_UPLOAD_ID_BYTES: Final = 8
_NOT_FOUND: Final = 404
_EXISTS: Final = (409, 412)

# Gets the number of bytes that were moved since the last call; may raise to stop.
Advance = Callable[[int], None]


class TargetExists(CommandFailed):
    """The file or blob to be written exists, and may not be replaced."""


class TargetImpossible(CommandFailed):
    """No file can have the name of the blob in that folder."""


def upload_file(
    client: StorageClient,
    path: str,
    source: BinaryIO,
    *,
    size: int | None,
    headers: Mapping[str, str],
    may_replace: bool,
    advance: Advance,
) -> int:
    """Write a blob of all that a source has; return its size. `path` is CONTAINER/BLOB, `size` the expected one."""
    sent = dict(headers)
    if not may_replace:
        sent["if-none-match"] = "*"
    block_bytes = max(BLOCK_BYTES, -(-(size or 0) // _BLOCKS_MAX))
    first = source.read(block_bytes)
    try:
        if len(first) < block_bytes:
            client.ask(
                "PUT", path, first, headers={**sent, "x-ms-blob-type": "BlockBlob", "content-md5": _md5_text(first)}
            )
            advance(len(first))
            return len(first)
        if not may_replace and _exists(client, path):
            raise TargetExists(f"{path} exists")
        return _upload_blocks(client, path, first, source, sent, advance)
    except StorageRefused as refusal:
        if not may_replace and refusal.status in _EXISTS and refusal.code in ("BlobAlreadyExists", "ConditionNotMet"):
            raise TargetExists(f"{path} exists") from None
        raise


def _upload_blocks(
    client: StorageClient, path: str, first: bytes, source: BinaryIO, headers: Mapping[str, str], advance: Advance
) -> int:
    whole, size = hashlib.md5(usedforsecurity=False), 0
    upload_id = os.urandom(_UPLOAD_ID_BYTES)
    block_ids: list[str] = []
    block, block_bytes = first, len(first)
    while block:
        block_id = base64.b64encode(upload_id + len(block_ids).to_bytes(4)).decode()
        query = {"comp": "block", "blockid": block_id}
        client.ask("PUT", path, block, query=query, headers={"content-md5": _md5_text(block)})
        whole.update(block)
        size += len(block)
        block_ids.append(block_id)
        advance(len(block))
        block = source.read(block_bytes)
    listed = "".join(f"<Latest>{block_id}</Latest>" for block_id in block_ids)
    digest = base64.b64encode(whole.digest()).decode()
    client.ask(
        "PUT",
        path,
        f"<BlockList>{listed}</BlockList>".encode(),
        query={"comp": "blocklist"},
        headers={**headers, "x-ms-blob-content-md5": digest},
    )
    return size


def download_file(client: StorageClient, path: str, target: BinaryIO, *, advance: Advance) -> int:
    """Write what a blob has to a target, checked against the MD5 of each range and of the blob; return its size."""
    found = find_blob(client, path)
    if found is None:
        raise CommandFailed(f"{path} does not exist")
    size, whole = int(found["content-length"]), hashlib.md5(usedforsecurity=False)
    # The same state of the blob for all of its ranges.
    headers = {"if-match": found["etag"], "x-ms-range-get-content-md5": "true"}
    for start in range(0, size, BLOCK_BYTES):
        end = min(start + BLOCK_BYTES, size)
        reply = client.ask("GET", path, headers={**headers, "range": f"bytes={start}-{end - 1}"})
        if len(reply.body) != end - start or reply.headers.get("content-md5", "") != _md5_text(reply.body):
            raise CommandFailed(f"{path} did not arrive as it was sent; try again")
        whole.update(reply.body)
        target.write(reply.body)
        advance(len(reply.body))
    if found.get("content-md5") not in (None, base64.b64encode(whole.digest()).decode()):
        raise CommandFailed(f"{path} does not have the MD5 that its properties name: it was uploaded wrongly")
    return size


def find_blob(client: StorageClient, path: str) -> Mapping[str, str] | None:
    """Return the headers of a blob; None if it does not exist."""
    try:
        return client.ask("HEAD", path).headers
    except StorageRefused as refusal:
        if refusal.status == _NOT_FOUND:
            return None
        raise


def _exists(client: StorageClient, path: str) -> bool:
    return find_blob(client, path) is not None


def _md5_text(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
