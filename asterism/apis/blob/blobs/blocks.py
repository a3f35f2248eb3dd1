"""Blocks of block blobs: put, committed as a list, and listed."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from asterism.access.sas_grants import ResourceType
from asterism.apis.blob import block_list_xml
from asterism.apis.blob.blobs.new_blobs import read_new_blob, write_conditions
from asterism.apis.blob.block_list_xml import ListedBlock, block_list_pieces, check_block_id, read_block_list
from asterism.apis.blob.context import (
    BlobCall,
    blob_container_of,
    key_for_write,
    unauthorized_overwrite,
    which_of,
)
from asterism.apis.blob.encryption import encryption_headers
from asterism.apis.blob.errors import checksum_mismatch
from asterism.apis.blob.receiving import receive
from asterism.apis.blob.record_headers import base64_text, change_headers, written_headers
from asterism.apis.blob.request_headers import (
    CONTENT_CRC64,
    CONTENT_MD5,
    CRC64_BYTES,
    MD5_BYTES,
    read_conditions,
    read_digest,
    read_lease_id,
)
from asterism.apis.storage.refusals import invalid_query_parameter, md5_mismatch, missing_query_parameter
from asterism.apis.storage.routes import Needs
from asterism.apis.transports.http import HeaderList, Response
from asterism.models.blobs.calls import Block, BlockEntry, BlockSource
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.record import BlobKind
from asterism.values.crc64 import crc64, crc64_bytes

_SOURCES: Final = {
    block_list_xml.BlockSource.LATEST: BlockSource.LATEST,
    block_list_xml.BlockSource.COMMITTED: BlockSource.COMMITTED,
    block_list_xml.BlockSource.UNCOMMITTED: BlockSource.UNCOMMITTED,
}
# As the route needs it; but public access is to what is committed.
_UNCOMMITTED: Final = Needs(ResourceType.OBJECT, "r", "r")
_LISTS: Final = {"committed": (True, False), "uncommitted": (False, True), "all": (True, True)}


async def put_block(call: BlobCall) -> Response:
    container = blob_container_of(call)
    block_id = block_id_of(call)
    key = key_for_write(call, container)
    async with container.begin_upload(call.resource.name) as upload:
        received = await receive(call, upload, bytes_max=call.context.settings.blob_block_bytes_max)
        await container.put_block(call.resource.name, block_id, upload, lease_id=read_lease_id(call.headers), key=key)
    return Response(201, received.headers + encryption_headers(key.sha256, key.scope, is_write=True))


def block_id_of(call: BlobCall) -> bytes:
    text = call.query.get("blockid")
    if not text:
        raise missing_query_parameter("blockid")
    check_block_id(text)
    return base64.b64decode(text)


async def put_block_list(call: BlobCall) -> Response:
    container = blob_container_of(call)
    body = call.request.body
    checksums = _check_body(call, body)
    entries = [BlockEntry(_SOURCES[entry.source], base64.b64decode(entry.block_id)) for entry in read_block_list(body)]
    # The headers of the request are about the list, not about the blob.
    new = read_new_blob(call, container, BlobKind.BLOCK, is_body_of_blob=False)
    conditions, may_overwrite = write_conditions(call)
    rules = await call.context.rule_book.rules_of(call.account.name)
    try:
        record = await container.commit_blocks(call.resource.name, entries, new, conditions, rules)
    except BlobRefused as refused:
        if refused.failure is BlobFailure.EXISTS and not may_overwrite:
            raise unauthorized_overwrite() from None
        raise
    return Response(201, written_headers(record) + checksums)


def _check_body(call: BlobCall, body: bytes) -> HeaderList:
    """Refuse a list that does not fit its checksum; return the checksums of its answer."""
    expected_md5 = read_digest(call.headers, CONTENT_MD5, MD5_BYTES)
    expected_crc64 = read_digest(call.headers, CONTENT_CRC64, CRC64_BYTES)
    if expected_md5 is not None:
        md5 = hashlib.md5(body, usedforsecurity=False).digest()
        if md5 != expected_md5:
            raise md5_mismatch()
        return [(CONTENT_MD5, base64_text(md5))]
    checksum = crc64_bytes(crc64(body))
    if expected_crc64 is not None and checksum != expected_crc64:
        raise checksum_mismatch()
    return [(CONTENT_CRC64, base64_text(checksum))]


async def get_block_list(call: BlobCall) -> Response:
    container = blob_container_of(call)
    asked = call.query.get("blocklisttype") or "committed"
    wanted = _LISTS.get(asked.lower())
    if wanted is None:
        raise invalid_query_parameter("blocklisttype", asked, "Use committed, uncommitted or all.")
    committed, uncommitted = wanted
    if uncommitted:
        call.allow(_UNCOMMITTED)
    lists = await container.block_list(
        call.resource.name,
        which_of(call),
        read_conditions(call.headers),
        committed=committed,
        uncommitted=uncommitted,
    )
    body = "".join(
        block_list_pieces(
            committed=map(_listed, lists.committed) if committed else None,
            uncommitted=map(_listed, lists.uncommitted) if uncommitted else None,
        )
    )
    answer: HeaderList = [("content-type", "application/xml")]
    if lists.record is not None:
        record = lists.record
        answer += change_headers(record.etag, record.modified_at)
        answer.append(("x-ms-blob-content-length", str(record.size)))
    return Response(200, answer, body.encode())


def _listed(block: Block) -> ListedBlock:
    return ListedBlock(base64_text(block.block_id), block.size)
