"""Block blobs: blocks that are put, and lists of them that are committed.

Blocks of one blob are put side by side: they do not write the root, they only expect that it stays as it was found. A
commit expects that no block was put since it read them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

from asterism.errors import LogicalPartitionFull, StoredDamage, TooMuchContention
from asterism.models.blobs.calls import (
    NO_KEY,
    Block,
    BlockEntry,
    BlockLists,
    BlockSource,
    Current,
    Key,
    NewBlob,
    Which,
)
from asterism.models.blobs.changes import check_key
from asterism.models.blobs.conditions import Conditions, check_write
from asterism.models.blobs.content import NO_CONTENT, Content, Segment, pack_content, pack_segments, total_bytes
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.finding import find_record
from asterism.models.blobs.layout import (
    BLOCKS,
    COMMITTED_BLOCKS_MAX,
    CONTENT_ID_BYTES,
    DATA_ID_BYTES,
    INLINE_SEGMENTS_MAX,
    MANIFEST_SEGMENTS_MAX,
    UNCOMMITTED_BLOCKS_MAX,
    block_count_key,
    block_key,
    manifest_key,
    point_of,
    span_of,
    uncommitted_key,
)
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.reading import all_segments
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.replacing import check_replaceable, empty_root, new_record, put_in_place
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.space import BlobSpace
from asterism.models.blobs.tiers import ARCHIVE
from asterism.models.blobs.uploads import Upload
from asterism.storage.contract import LSN_BYTES, Add, Expectation

# Data id, size, and the digest of the key that the block was put with.
_BLOCK = struct.Struct(f">{DATA_ID_BYTES}sQ")
# Moment of the latest Put Block, and the length of the ids.
_UNCOMMITTED = struct.Struct(">QB")
_UNCOMMITTED_AT_LSN = struct.Struct(f">{LSN_BYTES}xQB")


class UncommittedBlock(NamedTuple):
    data_id: bytes
    size: int
    key: Key


# --- putting --------------------------------------------------------------------------------------------------------


async def put_block(
    space: BlobSpace, name: str, block_id: bytes, upload: Upload, *, lease_id: str | None, key: Key
) -> None:
    point = upload.point
    own_key, uncommitted = block_key(point, block_id), uncommitted_key(point)
    # It queues for the block alone: blocks of a blob do not wait for each other.
    async for attempt in space.attempts(point, own_key):
        with attempt:
            found, (before, latest) = await space.read_with_root(point, own_key, uncommitted)
            change = space.begin_change(found)
            _check_put(found.current, block_id, latest, lease_id, change.now)
            if found.root is None:
                change.put_root(empty_root(name, change), has_blocks=True)
            batch = change.batch
            if latest is None:
                # The first block sets the length of the ids.
                batch.expectations.append(Expectation(uncommitted, None))
            if before is None:
                batch.adds.append(Add(block_count_key(point), (1,), UNCOMMITTED_BLOCKS_MAX))
            else:
                data_id, size, _ = unpack_block(before)
                change.release_data([(data_id, size)])
            batch.expectations.append(Expectation(own_key, before))
            batch.puts.append((own_key, _pack_block(upload, key)))
            batch.versioned_puts.append((uncommitted, _UNCOMMITTED.pack(change.now, len(block_id))))
            change.count_data(upload.plan(batch))
            try:
                await space.commit(change, upload)
            except LogicalPartitionFull:
                raise BlobRefused(BlobFailure.TOO_MANY_UNCOMMITTED_BLOCKS) from None
            return
    raise TooMuchContention


def _check_put(
    current: BlobRecord | None, block_id: bytes, latest: bytes | None, lease_id: str | None, now: int
) -> None:
    if current is not None:
        check_write(Conditions(lease_id=lease_id), current, now)
        if current.kind is not BlobKind.BLOCK:
            raise BlobRefused(BlobFailure.WRONG_KIND)
    elif lease_id is not None:
        raise BlobRefused(BlobFailure.LEASE_NOT_PRESENT)
    if latest is not None and _unpack_uncommitted(latest)[1] != len(block_id):
        raise BlobRefused(BlobFailure.INVALID_BLOB_OR_BLOCK)


def latest_put(stored: bytes) -> int:
    """Return the moment of the latest Put Block from an entry of UNCOMMITTED, the LSN first."""
    return _unpack_uncommitted(stored)[0]


def _unpack_uncommitted(stored: bytes) -> tuple[int, int]:
    try:
        moment, id_bytes = _UNCOMMITTED_AT_LSN.unpack(stored)
    except struct.error:
        raise StoredDamage(what="uncommitted blocks") from None
    return moment, id_bytes


def _pack_block(upload: Upload, key: Key) -> bytes:
    mark = b"" if key == NO_KEY else f"{key.sha256 or ''}\n{key.scope or ''}".encode()
    return _BLOCK.pack(upload.data_id, upload.size) + mark


def unpack_block(stored: bytes) -> UncommittedBlock:
    try:
        data_id, size = _BLOCK.unpack_from(stored)
    except struct.error:
        raise StoredDamage(what="uncommitted block") from None
    if len(stored) == _BLOCK.size:
        return UncommittedBlock(data_id, size, NO_KEY)
    sha256, _, scope = stored[_BLOCK.size :].decode().partition("\n")
    return UncommittedBlock(data_id, size, Key(sha256 or None, scope or None))


async def uncommitted_blocks(space: BlobSpace, point: bytes) -> dict[bytes, UncommittedBlock]:
    """Return the uncommitted blocks of a blob by their ids, in the order of the ids."""
    id_at = 1 + len(point)
    blocks: dict[bytes, UncommittedBlock] = {}
    async for entries in space.slices(point, span_of(BLOCKS, point)):
        for key, stored in entries:
            blocks[key[id_at:]] = unpack_block(stored)
    return blocks


async def discard_blocks(
    space: BlobSpace, change: BlobChange, uncommitted: bytes | None, taken: frozenset[bytes] = frozenset()
) -> None:
    """Plan the removal of uncommitted blocks, but for the data that the change has `taken` over."""
    blocks = {} if uncommitted is None else await uncommitted_blocks(space, change.point)
    _discard(change, uncommitted, blocks, taken)


def _discard(
    change: BlobChange, uncommitted: bytes | None, blocks: dict[bytes, UncommittedBlock], taken: frozenset[bytes]
) -> None:
    left = [(block.data_id, block.size) for block in blocks.values() if block.data_id not in taken]
    change.discard_blocks(uncommitted, left)


# --- committing -----------------------------------------------------------------------------------------------------


async def commit_blocks(
    space: BlobSpace,
    name: str,
    entries: Sequence[BlockEntry],
    properties: NewBlob,
    conditions: Conditions,
    rules: AccountRules,
) -> BlobRecord:
    if len(entries) > COMMITTED_BLOCKS_MAX:
        raise BlobRefused(BlobFailure.TOO_MANY_BLOCKS)
    point = point_of(name)
    queues, is_overtaken = space.services.writer_queues, False
    async for attempt in space.attempts(point):
        # A commit of many blocks takes long: puts of further ones wait for the second attempt.
        with attempt, queues.lock_out(space.keyspace, point) if is_overtaken else nullcontext():
            is_overtaken = True
            found, (uncommitted,) = await space.read_with_root(point, uncommitted_key(point))
            change, current = space.begin_change(found), found.current
            _check_commit(current, conditions, rules, change.now)
            blocks = {} if uncommitted is None else await uncommitted_blocks(space, point)
            segments = await _resolve(space, point, current, entries, blocks, properties.key)
            record = new_record(name, properties, change, current)
            record.size = total_bytes(segments)
            record.stored_content = plan_content(space, change, segments)
            _discard(change, uncommitted, blocks, frozenset([segment.data_id for segment in segments]))
            put_in_place(change, record, current, rules)
            await space.commit(change)
            return record
    raise TooMuchContention


def _check_commit(current: BlobRecord | None, conditions: Conditions, rules: AccountRules, now: int) -> None:
    check_write(conditions, current, now, None if current is None else current.tags)
    if current is None:
        return
    if current.kind is not BlobKind.BLOCK:
        raise BlobRefused(BlobFailure.WRONG_KIND)
    if current.tier == ARCHIVE:
        raise BlobRefused(BlobFailure.ARCHIVED)
    check_replaceable(current, rules, now)


async def _resolve(
    space: BlobSpace,
    point: bytes,
    current: BlobRecord | None,
    entries: Sequence[BlockEntry],
    blocks: dict[bytes, UncommittedBlock],
    key: Key,
) -> list[Segment]:
    """Return the segments that a list names; INVALID_BLOCK_LIST if it names a block that there is not."""
    committed: dict[bytes, Segment] = {}
    if current is not None and any(source is not BlockSource.UNCOMMITTED for source, _ in entries):
        committed = {
            segment.block_id: segment
            for segment in await all_segments(space, point, current.content)
            if segment.block_id
        }
        if committed and any(source is BlockSource.COMMITTED for source, _ in entries):
            check_key(current, key)
    segments: list[Segment] = []
    for source, block_id in entries:
        block = None if source is BlockSource.COMMITTED else blocks.get(block_id)
        if block is not None:
            if block.key != key:
                raise BlobRefused(BlobFailure.KEY_MISMATCH)
            segments.append(Segment(block.data_id, block.size, block_id))
            continue
        segment = None if source is BlockSource.UNCOMMITTED else committed.get(block_id)
        if segment is None:
            raise BlobRefused(BlobFailure.INVALID_BLOCK_LIST)
        segments.append(segment)
    return segments


def plan_content(space: BlobSpace, change: BlobChange, segments: list[Segment]) -> bytes:
    """Add the manifests of a long list to the change; return the content for the record."""
    if not segments:
        return NO_CONTENT
    content_id = space.services.random_bytes(CONTENT_ID_BYTES)
    if len(segments) <= INLINE_SEGMENTS_MAX:
        return pack_content(Content(content_id, tail=tuple(segments)))
    pages: list[int] = []
    offset = 0
    for start in range(0, len(segments), MANIFEST_SEGMENTS_MAX):
        listed = segments[start : start + MANIFEST_SEGMENTS_MAX]
        change.batch.puts.append((manifest_key(change.point, content_id, len(pages)), pack_segments(listed)))
        pages.append(offset)
        offset += total_bytes(listed)
    return pack_content(Content(content_id, pages=tuple(pages), tail_at=offset))


# --- listing --------------------------------------------------------------------------------------------------------


async def block_lists(
    space: BlobSpace, name: str, which: Which, conditions: Conditions, *, committed: bool, uncommitted: bool
) -> BlockLists:
    point = point_of(name)
    blocks: list[Block] = []
    if uncommitted and isinstance(which, Current):
        blocks = [Block(block_id, block.size) for block_id, block in (await uncommitted_blocks(space, point)).items()]
    try:
        record = await find_record(space, name, which, conditions)
    except BlobRefused as refused:
        if (
            refused.failure is not BlobFailure.NOT_FOUND
            or not isinstance(which, Current)
            or not await has_uncommitted(space, point)
        ):
            raise
        return BlockLists(None, [], blocks)
    if record.kind is not BlobKind.BLOCK:
        raise BlobRefused(BlobFailure.WRONG_KIND)
    listed: list[Block] = []
    if committed:
        segments = await all_segments(space, point, record.content)
        listed = [Block(segment.block_id, segment.size) for segment in segments if segment.block_id]
    return BlockLists(record, listed, blocks)


async def has_uncommitted(space: BlobSpace, point: bytes) -> bool:
    (stored,) = await space.read(point, (uncommitted_key(point),))
    return stored is not None
