"""Finding of blobs, snapshots and versions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

from asterism.keyspaces.routing.scan import scan_line
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.models.blobs.calls import Current, Key, Version, Which
from asterism.models.blobs.changes import check_read_key
from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions, check_read
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.layout import ROOTS, VERSIONS, moment_of, point_of, span_of, version_key
from asterism.models.blobs.record import BlobRecord, Role, unpack_blob
from asterism.models.blobs.space import ENTRIES, BlobSpace, Found
from asterism.models.blobs.tiers import settle_tier
from asterism.partitioning.key_range import FULL
from asterism.storage.contract import Span


class KeptRecord(NamedTuple):
    """A record of VERSIONS, as it is stored and decoded."""

    moment: int
    stored: bytes
    record: BlobRecord


async def find_record(
    space: BlobSpace, name: str, which: Which, conditions: Conditions, key: Key | None = None
) -> BlobRecord:
    """Return a record that is not deleted, and permit it to be read; see `Container.find`."""
    found, kept = await find_which(space, point_of(name), which)
    record = found.current if kept is None else kept.record
    if record is None or record.is_deleted:
        raise BlobRefused(BlobFailure.NOT_FOUND)
    if conditions is not NO_CONDITIONS:
        # Few reads have any, and the present moment costs more than this comparison.
        check_read(conditions, record, space.now(), record.tags)
    if key is not None:
        check_read_key(record, key)
    return record


async def find_which(space: BlobSpace, point: bytes, which: Which) -> tuple[Found, KeptRecord | None]:
    """Return the root of a blob, and the record of VERSIONS that is meant; NOT_FOUND without such a record. The current
    version is the root."""
    if isinstance(which, Current):
        return await space.read_root(point), None
    key = version_key(point, which.ticks)
    found, (stored,) = await space.read_with_root(point, key)
    if isinstance(which, Version) and found.current is not None and found.current.version == which.ticks:
        return found, None
    if stored is None:
        raise BlobRefused(BlobFailure.NOT_FOUND)
    record = unpack_blob(stored)
    if record.role is not (Role.VERSION if isinstance(which, Version) else Role.SNAPSHOT):
        raise BlobRefused(BlobFailure.NOT_FOUND)
    return found, KeptRecord(which.ticks, stored, settle_tier(record, space.now()))


async def kept_records(space: BlobSpace, point: bytes) -> list[KeptRecord]:
    """Return all records of VERSIONS of a blob, the oldest first."""
    return [kept async for found in kept_slices(space, point) for kept in found]


async def kept_slices(
    space: BlobSpace, point: bytes, first_moment: int = 0, size: SliceSize = ENTRIES
) -> AsyncIterator[list[KeptRecord]]:
    """Yield the records of VERSIONS of a blob from a moment on, the oldest first, in slices."""
    span = Span(version_key(point, first_moment), span_of(VERSIONS, point).end)
    async for entries in space.slices(point, span, size):
        yield [KeptRecord(moment_of(key), stored, unpack_blob(stored)) for key, stored in entries]


async def has_blobs(space: BlobSpace) -> bool:
    """Return True if a container has a blob, a snapshot, a version or a deleted record, whatever its name."""
    async for found in scan_line(space.services.router, space.keyspace, ROOTS, FULL, ENTRIES):
        for _, stored in found.entries:
            root = unpack_blob(stored)
            if root.exists or root.snapshots_kept or root.versions_kept or root.deleted_kept:
                return True
    return False
