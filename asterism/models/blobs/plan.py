"""The batch of one change of one blob, with the sizes that it changes and the entries that follow from its records.

Sizes count the bytes of roots, of records in VERSIONS, of data and of pages; items are roots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from asterism.models.blobs.garbage import pack_released_content, pack_released_data
from asterism.models.blobs.layout import (
    BLOCKS,
    block_count_key,
    garbage_key,
    retention_entry,
    root_key,
    span_of,
    uncommitted_key,
    version_key,
)
from asterism.models.blobs.record import BlobRecord, Role, pack_blob
from asterism.models.blobs.tags_index import plan_tags
from asterism.storage.contract import LSN_BYTES, Batch, Expectation

# Ids of data in one entry of GARBAGE.
_RELEASED_MAX = 1_000


class BlobChange:
    """A change in the making. It expects the root as it was found, and is applied as a whole."""

    __slots__ = (
        "_discards_blocks",
        "_garbage",
        "_moment",
        "_next_ticks",
        "batch",
        "bytes_delta",
        "bytes_written",
        "items_delta",
        "now",
        "planned_under",
        "point",
        "root",
        "stored_root",
    )

    def __init__(
        self,
        point: bytes,
        stored_root: bytes | None,
        root: BlobRecord | None,
        next_ticks: Callable[[], int],
        planned_under: Mapping[str, Any] | None,
    ) -> None:
        self.point = point
        self.stored_root = stored_root
        self.root = root
        self.now = next_ticks()
        self._next_ticks = next_ticks
        self._moment: int | None = self.now
        self.planned_under = planned_under
        self.batch = Batch()
        self.bytes_delta = self.items_delta = self.bytes_written = 0
        self._discards_blocks = False
        self._garbage = 0
        version = None if stored_root is None else stored_root[:LSN_BYTES]
        self.batch.expectations.append(Expectation(root_key(point), version))

    def next_etag(self) -> int:
        """Return the etag of the blob after the change: a clock that was set back must not give it an older one."""
        return self.now if self.root is None else max(self.now, self.root.etag + 1)

    def next_moment(self) -> int:
        """Return a place in VERSIONS for a record, now or once the blob is replaced: another with each call."""
        moment, self._moment = self._moment, None
        return self._next_ticks() if moment is None else moment

    def count_data(self, bytes_delta: int) -> None:
        """Count data or pages that the batch adds or removes."""
        self.bytes_delta += bytes_delta
        self.bytes_written += max(bytes_delta, 0)

    # --- the root ---------------------------------------------------------------------------------------------------

    def put_root(self, record: BlobRecord, *, has_blocks: bool = False) -> None:
        """Write the root, or delete it if nothing is left of the blob: neither records nor, as the caller says,
        uncommitted blocks. Call it once, after all else is planned."""
        key, before = root_key(self.point), self.root
        before_bytes = 0 if self.stored_root is None else len(self.stored_root) - LSN_BYTES
        has_records = record.exists or record.snapshots_kept or record.versions_kept or record.deleted_kept
        self._plan_retention(None if before is None else before.expires_at, record.expires_at, 0)
        plan_tags(self.batch, self.point, _visible(before), _visible(record))
        if not (has_records or has_blocks):
            if before is not None:
                if not self._discards_blocks:
                    # Put Block does not write the root: a block may have come since they were looked for.
                    self.batch.expectations.append(Expectation(uncommitted_key(self.point), None))
                self.batch.deletes.append(key)
                self.bytes_delta -= before_bytes
                self.items_delta -= 1
            return
        packed = pack_blob(record)
        self.batch.versioned_puts.append((key, packed))
        self.bytes_delta += len(packed) - before_bytes
        self.bytes_written += len(packed)
        self.items_delta += before is None

    # --- snapshots and versions -------------------------------------------------------------------------------------

    def add_version(self, record: BlobRecord, moment: int) -> None:
        """Keep a record as a snapshot, a previous version or a deleted blob."""
        key = version_key(self.point, moment)
        self.batch.expectations.append(Expectation(key, None))
        packed = pack_blob(record)
        self.batch.versioned_puts.append((key, packed))
        self.bytes_delta += len(packed)
        self.bytes_written += len(packed)
        self._plan_retention(None, record.retained_until, moment)

    def replace_version(self, stored: bytes, before: BlobRecord, after: BlobRecord, moment: int) -> None:
        key = version_key(self.point, moment)
        self.batch.expectations.append(Expectation(key, stored[:LSN_BYTES]))
        packed = pack_blob(after)
        self.batch.versioned_puts.append((key, packed))
        self.bytes_delta += len(packed) - len(stored) + LSN_BYTES
        self.bytes_written += len(packed)
        self._plan_retention(before.retained_until, after.retained_until, moment)

    def remove_version(self, stored: bytes, record: BlobRecord, moment: int, *, keeps_content: bool = False) -> None:
        """Remove a record of VERSIONS; its content is released, unless another record takes it over."""
        key = version_key(self.point, moment)
        self.batch.expectations.append(Expectation(key, stored[:LSN_BYTES]))
        self.batch.deletes.append(key)
        self.bytes_delta -= len(stored) - LSN_BYTES
        self._plan_retention(record.retained_until, None, moment)
        if not keeps_content:
            self.release(record)

    def _plan_retention(self, before: int | None, after: int | None, moment: int) -> None:
        if before == after:
            return
        if before is not None:
            self.batch.deletes.append(retention_entry(before, self.point, moment)[0])
        if after is not None:
            self.batch.puts.append(retention_entry(after, self.point, moment))

    # --- what is given up -------------------------------------------------------------------------------------------

    def release(self, record: BlobRecord) -> None:
        """List the content of a record that goes as garbage: upkeep removes what no other record refers to."""
        released = pack_released_content(record)
        if released is not None:
            self._add_garbage(released)

    def release_data(self, data: Iterable[tuple[bytes, int]]) -> None:
        """List data of blocks, by id and size, as garbage."""
        rest = list(data)
        for start in range(0, len(rest), _RELEASED_MAX):
            self._add_garbage(pack_released_data(rest[start : start + _RELEASED_MAX]))

    def _add_garbage(self, released: bytes) -> None:
        self.batch.puts.append((garbage_key(self.point, self.now, self._garbage), released))
        self._garbage += 1

    def discard_blocks(self, uncommitted: bytes | None, data: Iterable[tuple[bytes, int]]) -> None:
        """Remove the uncommitted blocks; `uncommitted` is the entry that says when the latest was put, None if there
        are none, and `data` are those that the change does not take over."""
        self._discards_blocks = True
        key = uncommitted_key(self.point)
        if uncommitted is None:
            self.batch.expectations.append(Expectation(key, None))
            return
        self.batch.expectations.append(Expectation(key, uncommitted[:LSN_BYTES]))
        self.batch.range_deletes.append(span_of(BLOCKS, self.point))
        self.batch.deletes += [key, block_count_key(self.point)]
        self.release_data(data)


def _visible(record: BlobRecord | None) -> BlobRecord | None:
    """Return a record if it is a blob that searches find."""
    return record if record is not None and record.exists and record.role is Role.CURRENT else None
