"""Blobs that a request makes: their properties, and whether the sender may replace an existing one."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from asterism.apis.blob.context import BlobCall, check_granted, key_for_write, now_ticks, unauthorized_overwrite
from asterism.apis.blob.holds import check_permits_holds
from asterism.apis.blob.request_headers import (
    read_conditions,
    read_http_properties,
    read_immutability,
    read_tier,
)
from asterism.apis.blob.tags import tags_from_header
from asterism.apis.storage.metadata import read_metadata
from asterism.apis.transports.http import Headers
from asterism.models.blobs.calls import NewBlob
from asterism.models.blobs.conditions import Conditions
from asterism.models.blobs.container import Container
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.uploads import Upload

BLOB_TYPE: Final = "x-ms-blob-type"
_TAG_NEEDS: Final = "t"
_HOLD_NEEDS: Final = "i"


async def store_blob(call: BlobCall, container: Container, upload: Upload | None, new: NewBlob) -> BlobRecord:
    """Make a blob; a sender that may only create blobs gets no existing one replaced."""
    conditions, may_overwrite = write_conditions(call)
    rules = await call.context.rule_book.rules_of(call.account.name)
    try:
        return await container.put_blob(call.resource.name, upload, new, conditions, rules)
    except BlobRefused as refused:
        if refused.failure is BlobFailure.EXISTS and not may_overwrite:
            raise unauthorized_overwrite() from None
        raise


def write_conditions(call: BlobCall) -> tuple[Conditions, bool]:
    """Return the conditions of a request that makes a blob, and whether its sender may replace one."""
    conditions = read_conditions(call.headers)
    if conditions.if_none_match == ("*",) and conditions.lease_id is not None:
        # The holder of a lease knows that the blob exists; the service as well lets it replace the blob.
        conditions = replace(conditions, if_none_match=None)
    if call.grant is None or "w" in call.grant.permissions:
        return conditions, True
    return replace(conditions, if_none_match=("*",)), False


def read_new_blob(call: BlobCall, container: Container, kind: BlobKind, *, is_body_of_blob: bool) -> NewBlob:
    """Return the properties that a request gives to the blob it makes."""
    headers = call.headers
    properties = read_http_properties(headers, is_body_of_blob=is_body_of_blob)
    immutability = read_immutability(headers, now=now_ticks(call))
    if immutability.until is not None or immutability.has_legal_hold:
        check_granted(call, _HOLD_NEEDS)
        check_permits_holds(container)
    return NewBlob(
        kind=kind,
        content_type=properties.content_type,
        content_encoding=properties.content_encoding,
        content_language=properties.content_language,
        content_disposition=properties.content_disposition,
        cache_control=properties.cache_control,
        content_md5=properties.content_md5,
        metadata=read_metadata(headers),
        tags=read_new_tags(call, headers),
        tier=None if kind is BlobKind.APPEND else read_tier(headers, is_page=kind is BlobKind.PAGE),
        key=key_for_write(call, container),
        immutable_until=immutability.until,
        immutability_mode=immutability.mode,
        has_legal_hold=immutability.has_legal_hold,
    )


def read_new_tags(call: BlobCall, headers: Headers) -> dict[str, str]:
    """Return the tags of a new blob; a shared access signature must permit them."""
    text = headers.get("x-ms-tags")
    if not text:
        return {}
    check_granted(call, _TAG_NEEDS)
    return tags_from_header(text)
