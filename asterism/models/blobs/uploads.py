"""Data on their way into a blob: a bounded buffer, and durable parts of what does not fit in it.

Parts lie under a data id of their own, which nothing refers to until the batch that ends the upload. An upload that is
cut off leaves its parts and a mark; upkeep removes both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Final

from asterism.errors import AsterismError, StorageFull
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.layout import CHUNK_BYTES, UPLOAD_BUFFER_BYTES, data_key, pack_moment, span_of, upload_key
from asterism.models.blobs.layout import DATA as DATA_FAMILY
from asterism.storage.contract import Batch, Expectation, StorageRefusal

# Stores a batch of a blob at its point, and counts the bytes that it adds.
StorePart = Callable[[bytes, Batch, int], Awaitable[None]]

_PRESENT: Final = b""


class Upload:
    """The data of one Put Blob, Put Block, or Append Block. It is written by one task, and consumed by one call, which
    may try its batch several times. Leaving the `async with` discards what no call has consumed."""

    __slots__ = (
        "_buffer",
        "_buffered",
        "_is_consumed",
        "_is_known",
        "_next_ticks",
        "_store_part",
        "_stored",
        "data_id",
        "point",
    )

    def __init__(self, point: bytes, data_id: bytes, store_part: StorePart, next_ticks: Callable[[], int]) -> None:
        self.point = point
        self.data_id = data_id
        self._store_part = store_part
        self._next_ticks = next_ticks
        self._buffer: list[bytes] = []
        self._buffered = 0
        # Bytes in parts: a multiple of CHUNK_BYTES.
        self._stored = 0
        self._is_consumed = False
        # False if a part was being stored when the task was canceled or the store failed: it may be stored or not.
        self._is_known = True

    @property
    def size(self) -> int:
        return self._stored + self._buffered

    @property
    def has_parts(self) -> bool:
        """Return whether some of the data are stored already."""
        return self._stored > 0

    async def write(self, piece: bytes) -> None:
        """Take a piece of any size; return when there is room for the next."""
        if not piece:
            return
        self._buffer.append(piece)
        self._buffered += len(piece)
        if self._buffered > UPLOAD_BUFFER_BYTES:
            await self._store_full_chunks()

    async def _store_full_chunks(self) -> None:
        data = b"".join(self._buffer)
        # At least a byte stays, so that the batch that ends the upload has data to store.
        whole = (len(data) - 1) // CHUNK_BYTES * CHUNK_BYTES
        view = memoryview(data)
        for start in range(0, whole, UPLOAD_BUFFER_BYTES):
            end = min(start + UPLOAD_BUFFER_BYTES, whole)
            batch = Batch(puts=[(upload_key(self.point, self.data_id), pack_moment(self._next_ticks()))])
            if self._stored:
                batch.expectations.append(Expectation(upload_key(self.point, self.data_id), _PRESENT))
            for at in range(start, end, CHUNK_BYTES):
                key = data_key(self.point, self.data_id, self._stored + at - start)
                batch.puts.append((key, bytes(view[at : at + CHUNK_BYTES])))
            await self._store_known(batch, end - start)
        self._buffer = [bytes(view[whole:])]
        self._buffered = len(data) - whole

    async def _store_known(self, batch: Batch, size: int) -> None:
        """Store a part, and note whether it is known what is stored after it."""
        self._is_known = False
        try:
            await self._store_part(self.point, batch, size)
        except StorageFull:
            self._is_known = True
            raise
        self._stored += size
        self._is_known = True

    # --- for the call that consumes it --------------------------------------------------------------------------------

    def buffered(self) -> bytes:
        """Return the data that are not stored in parts: all of a small upload."""
        if len(self._buffer) > 1:
            self._buffer = [b"".join(self._buffer)]
        return self._buffer[0] if self._buffer else b""

    def plan(self, batch: Batch) -> int:
        """Add the rest of the data to the batch that refers to them; return the bytes that it adds."""
        data, at = self.buffered(), self._stored
        for start in range(0, len(data), CHUNK_BYTES):
            key = data_key(self.point, self.data_id, at + start)
            batch.puts.append((key, data[start : start + CHUNK_BYTES]))
        if self._stored:
            mark = upload_key(self.point, self.data_id)
            batch.expectations.append(Expectation(mark, _PRESENT))
            batch.deletes.append(mark)
        return len(data)

    def check_lost(self, failed_key: bytes) -> None:
        """Raise if a batch failed because upkeep has removed the parts."""
        if self._stored and failed_key == upload_key(self.point, self.data_id):
            raise BlobRefused(BlobFailure.UPLOAD_EXPIRED)

    def consumed(self) -> None:
        """Note that a record refers to the data now."""
        self._is_consumed = True

    async def abandon(self) -> None:
        """Remove what was stored, unless it was consumed. A part that may be stored or not leaves all of it to upkeep,
        which measures what it removes."""
        self._buffer, self._buffered = [], 0
        if self._stored and self._is_known and not self._is_consumed:
            stored, self._stored = self._stored, 0
            mark = upload_key(self.point, self.data_id)
            batch = Batch(
                expectations=[Expectation(mark, _PRESENT)],
                range_deletes=[span_of(DATA_FAMILY, self.point, self.data_id)],
                deletes=[mark],
                may_use_reserve=True,
            )
            # Upkeep removes it otherwise, in an hour.
            with suppress(AsterismError, StorageRefusal):
                await self._store_part(self.point, batch, -stored)

    async def __aenter__(self) -> Upload:
        return self

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.abandon()
