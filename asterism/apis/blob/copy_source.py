"""The blob that a request copies from: found by its URL on this server, if the sender may read it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from asterism.apis.blob.context import BlobCall, check_granted
from asterism.apis.blob.encryption import key_digest, read_source_key
from asterism.apis.blob.errors import checksum_mismatch, refusal_of
from asterism.apis.blob.etags import read_moment
from asterism.apis.blob.ranges import ByteSpan, parse_range
from asterism.apis.blob.record_headers import base64_text
from asterism.apis.blob.request_headers import (
    CONTENT_CRC64,
    CONTENT_MD5,
    CRC64_BYTES,
    MD5_BYTES,
    read_digest,
    read_prefixed_conditions,
)
from asterism.apis.blob.source_url import COPY_SOURCE, cannot_verify_source, check_source_url, foreign_source
from asterism.apis.storage.call import SourceOfCopy
from asterism.apis.storage.refusals import (
    Refusal,
    body_too_large,
    invalid_header_value,
    invalid_range,
    md5_mismatch,
    missing_header,
    no_credentials,
    not_authenticated,
    permission_mismatch,
)
from asterism.apis.transports.chunks import close_chunks
from asterism.apis.transports.http import HeaderList, Headers
from asterism.errors import Forbidden, Unauthorized
from asterism.models.blobs.calls import CURRENT, Key, Snapshot, Version, Which
from asterism.models.blobs.container import Container
from asterism.models.blobs.copy_job import CopySource
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.record import BlobRecord
from asterism.models.blobs.tiers import ARCHIVE
from asterism.models.blobs.uploads import Upload
from asterism.values.crc64 import crc64, crc64_bytes

SOURCE_AUTHORIZATION: Final = "x-ms-copy-source-authorization"
SOURCE_RANGE: Final = "x-ms-source-range"
SOURCE_MD5: Final = "x-ms-source-content-md5"
SOURCE_CRC64: Final = "x-ms-source-content-crc64"
TAG_OPTION: Final = "x-ms-copy-source-tag-option"
_COPY_TAGS: Final = "copy"
_TAG_OPTIONS: Final = frozenset({"replace", _COPY_TAGS})
_SOURCE_CONDITIONS: Final = "x-ms-source-"
_BEARER: Final = "Bearer "
_READ: Final = "r"
_TAGS: Final = "t"
_OBJECTS: Final = "o"
_PUBLIC: Final = frozenset({"blob", "container"})


async def open_source(call: BlobCall, *, is_copy: bool = False) -> CopySource:
    """Find the source of a request. `is_copy`: for Copy Blob the key of the account, with which the request itself is
    signed, permits to read the account's other blobs."""
    text = call.headers.get(COPY_SOURCE)
    if not text:
        raise missing_header(COPY_SOURCE)
    url = check_source_url(text)
    if call.context.store.is_shared:
        # Another process may have changed a moment ago what decides: a container, its public access, its policies.
        await call.context.store.catch_up()
    found = await _find(call, text)
    name = found.resource
    container = call.context.store.find_container(found.account.name, name.container)
    may_read = _may_read(call, found, container, is_copy=is_copy)
    if may_read and copies_tags(call.headers):
        check_granted(call, _TAGS)
        may_read = _may_read_tags(call, found, is_copy=is_copy)
    if not may_read:
        raise cannot_verify_source(no_credentials() if found.sender.is_anonymous else permission_mismatch())
    if container is None:
        raise cannot_verify_source(refusal_of(BlobFailure.CONTAINER_NOT_FOUND))
    which = _which(found.query)
    conditions = read_prefixed_conditions(call.headers, _SOURCE_CONDITIONS)
    key = Key(key_digest(read_source_key(call.headers)))
    try:
        record = await container.find(name.name, which, conditions, key)
    except BlobRefused as refused:
        raise _source_refusal(refused.failure, is_copy=is_copy) from None
    if record.tier == ARCHIVE and not is_copy:
        raise cannot_verify_source(refusal_of(BlobFailure.ARCHIVED))
    return CopySource(container, which, record, url)


async def _find(call: BlobCall, url: str) -> SourceOfCopy:
    authorization = call.headers.get(SOURCE_AUTHORIZATION)
    if authorization is not None and not authorization.startswith(_BEARER):
        raise invalid_header_value(SOURCE_AUTHORIZATION, "", "Only a bearer token authorizes to read a copy source.")
    try:
        found = await call.door.find_source(url, within=call, authorization=authorization)
    except Refusal as refusal:
        raise cannot_verify_source(refusal) from None
    except (Unauthorized, Forbidden) as error:
        raise cannot_verify_source(not_authenticated(error.sentence)) from None
    if found is None:
        raise foreign_source()
    if not found.resource.name:
        raise invalid_header_value(COPY_SOURCE, check_source_url(url), "The copy source is not the URL of a blob.")
    return found


def _which(query: Mapping[str, str]) -> Which:
    snapshot, version = query.get("snapshot"), query.get("versionid")
    if not snapshot and not version:
        return CURRENT
    ticks = read_moment(snapshot or version or "")
    if ticks is None:
        raise invalid_header_value(COPY_SOURCE, "", "The snapshot or version of the copy source is not a time.")
    return Snapshot(ticks) if snapshot else Version(ticks)


def _may_read(call: BlobCall, found: SourceOfCopy, container: Container | None, *, is_copy: bool) -> bool:
    sender = found.sender
    grant = sender.grant
    if grant is not None:
        return grant.has(_READ) and (grant.resource_types is None or _OBJECTS in grant.resource_types)
    if not sender.is_anonymous:
        return True
    if container is not None and container.state.public_access in _PUBLIC:
        return True
    return is_copy and _is_owner(call, found)


def _may_read_tags(call: BlobCall, found: SourceOfCopy, *, is_copy: bool) -> bool:
    """Return True if the tags of a source may be read, which may be read itself. Tags are never public."""
    if found.sender.grant is not None:
        return found.sender.grant.has(_TAGS)
    return not found.sender.is_anonymous or (is_copy and _is_owner(call, found))


def _is_owner(call: BlobCall, found: SourceOfCopy) -> bool:
    """Return True if the sender may do everything in the account of the source."""
    return call.grant is None and not call.sender.is_anonymous and found.account.name == call.account.name


def copies_tags(headers: Headers) -> bool:
    """Return whether a new blob has the tags of its source; otherwise it has those of the request."""
    option = headers.get(TAG_OPTION)
    if option is not None and option.lower() not in _TAG_OPTIONS:
        raise invalid_header_value(TAG_OPTION, option)
    return option is not None and option.lower() == _COPY_TAGS


_CONDITIONS: Final = frozenset({BlobFailure.CONDITION_NOT_MET, BlobFailure.NOT_MODIFIED})


def _source_refusal(failure: BlobFailure, *, is_copy: bool) -> Refusal:
    """Return the refusal of a source that cannot be read. A condition of Copy Blob has a code of its own; for blocks,
    pages and whole blobs from a URL the source is a request of the server's, which failed."""
    if failure in _CONDITIONS:
        refusal = refusal_of(BlobFailure.CONDITION_NOT_MET)
        return refusal if is_copy else cannot_verify_source(refusal)
    return cannot_verify_source(refusal_of(failure))


# --- its data -------------------------------------------------------------------------------------------------------


def read_source_range(headers: Headers, record: BlobRecord) -> ByteSpan:
    """Return the bytes of the source that a request names: all without a range."""
    text = headers.get(SOURCE_RANGE)
    if not text:
        return ByteSpan(0, record.size)
    found = parse_range(text)
    if found is None:
        raise invalid_header_value(SOURCE_RANGE, text)
    end = record.size if found.last is None else found.last + 1
    if found.first >= record.size or end > record.size:
        raise invalid_range()
    return ByteSpan(found.first, end)


@dataclass(slots=True)
class SourceData:
    """The bytes of a source, with the checksums that the request has for them."""

    source: CopySource
    span: ByteSpan
    expected_md5: bytes | None
    expected_crc64: bytes | None
    computes_md5: bool
    # Of the bytes, once they were read; None if it was not asked for.
    md5: bytes | None = field(default=None, init=False)
    crc64: bytes = field(default=b"", init=False)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the bytes; at their end, refuse those that do not fit their checksums."""
        hasher = hashlib.md5(usedforsecurity=False) if self.computes_md5 else None
        checksum = 0
        pieces = self.source.container.read(self.source.record, *self.span)
        try:
            async for piece in pieces:
                if hasher is not None:
                    hasher.update(piece)
                checksum = crc64(piece, checksum)
                yield piece
        finally:
            await close_chunks(pieces)
        self.crc64 = crc64_bytes(checksum)
        if hasher is not None:
            self.md5 = hasher.digest()
        if self.expected_md5 is not None and self.expected_md5 != self.md5:
            raise md5_mismatch()
        if self.expected_crc64 is not None and self.expected_crc64 != self.crc64:
            raise checksum_mismatch()

    async def write_to(self, upload: Upload) -> None:
        pieces = self.pieces()
        try:
            async for piece in pieces:
                await upload.write(piece)
        finally:
            await close_chunks(pieces)

    def answer_headers(self) -> HeaderList:
        answer: HeaderList = [(CONTENT_CRC64, base64_text(self.crc64))]
        if self.md5 is not None:
            answer.append((CONTENT_MD5, base64_text(self.md5)))
        return answer


async def open_source_data(call: BlobCall, *, bytes_max: int, computes_md5: bool = False) -> SourceData:
    """Find the source of a request that takes data from a URL."""
    headers = call.headers
    if int(headers.get("content-length") or 0):
        raise invalid_header_value("content-length", headers.get("content-length") or "", "The data come from a URL.")
    expected_md5 = read_digest(headers, SOURCE_MD5, MD5_BYTES)
    expected_crc64 = read_digest(headers, SOURCE_CRC64, CRC64_BYTES)
    source = await open_source(call)
    span = read_source_range(headers, source.record)
    if span.length > bytes_max:
        raise body_too_large(bytes_max)
    return SourceData(source, span, expected_md5, expected_crc64, computes_md5 or expected_md5 is not None)
