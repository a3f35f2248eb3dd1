"""Get Blob Tags and Set Blob Tags."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from asterism.apis.blob.context import BlobCall, blob_container_of, which_of
from asterism.apis.blob.errors import checksum_mismatch
from asterism.apis.blob.request_headers import (
    CONTENT_CRC64,
    CONTENT_MD5,
    CRC64_BYTES,
    MD5_BYTES,
    read_digest,
    read_lease_id,
    read_prefixed_conditions,
    read_tag_condition,
)
from asterism.apis.blob.tags import tags_from_xml, tags_to_xml
from asterism.apis.storage.refusals import md5_mismatch
from asterism.apis.transports.http import Response
from asterism.models.blobs.changes import SetTags
from asterism.models.blobs.conditions import Conditions
from asterism.values.crc64 import crc64, crc64_bytes


async def get_tags(call: BlobCall) -> Response:
    record = await blob_container_of(call).find(call.resource.name, which_of(call), _conditions(call))
    return Response(200, [("content-type", "application/xml")], tags_to_xml(record.tags).encode())


async def set_tags(call: BlobCall) -> Response:
    body = call.request.body
    expected_md5 = read_digest(call.headers, CONTENT_MD5, MD5_BYTES)
    if expected_md5 is not None and hashlib.md5(body, usedforsecurity=False).digest() != expected_md5:
        raise md5_mismatch()
    expected_crc64 = read_digest(call.headers, CONTENT_CRC64, CRC64_BYTES)
    if expected_crc64 is not None and crc64_bytes(crc64(body)) != expected_crc64:
        raise checksum_mismatch()
    change = SetTags(tags_from_xml(body))
    await blob_container_of(call).change(call.resource.name, change, which_of(call), _conditions(call))
    return Response(204, [])


def _conditions(call: BlobCall) -> Conditions:
    """Return the conditions of the request. Those on the blob's etag and time have headers of their own here."""
    return replace(
        read_prefixed_conditions(call.headers, "x-ms-blob-"),
        tags=read_tag_condition("x-ms-if-tags", call.headers.get("x-ms-if-tags")),
        lease_id=read_lease_id(call.headers),
    )
