"""The entries of a container: how the calls on blobs read and commit them. One per container, behind `Container`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from asterism.clock import Clock
from asterism.errors import OwnerNotFound
from asterism.keyspaces.reshaping.load_watch import LoadWatch
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.commit import Committer
from asterism.keyspaces.routing.contention import Attempts, WriterQueues
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.scan import Entry
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.limits import KIB, MIB, Limits
from asterism.models.blobs.layout import CHUNK_BYTES, DATA_ID_BYTES, root_key
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.record import BlobRecord, unpack_blob
from asterism.models.blobs.state import ContainerState
from asterism.models.blobs.tiers import settle_tier
from asterism.models.blobs.uploads import Upload
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Batch, ExpectationFailed, Span
from asterism.throughput import charge

# A record and a small content, which cost as much as an entity of a table.
_FULL_PRICE_BYTES: Final = 16 * KIB
# Entries of one blob: blocks, versions, manifests.
ENTRIES: Final = SliceSize(1_000, MIB)


class OpenReads:
    """The reads of contents that are under way in this process: what they read is kept until they have finished."""

    def __init__(self) -> None:
        # By keyspace and point: the moments at which reads began, each under a token of its own.
        self._begun: dict[tuple[bytes, bytes], dict[object, int]] = {}

    @contextmanager
    def reading(self, rid: bytes, point: bytes, *, now: int) -> Iterator[None]:
        key, token = (rid, point), object()
        self._begun.setdefault(key, {})[token] = now
        try:
            yield
        finally:
            begun = self._begun[key]
            del begun[token]
            if not begun:
                del self._begun[key]

    def oldest(self, rid: bytes, point: bytes) -> int | None:
        """Return the moment at which the oldest read of a blob began; None if there are no reads."""
        begun = self._begun.get((rid, point))
        return None if begun is None else min(begun.values())


@dataclass(frozen=True, slots=True)
class BlobServices:
    """The parts of the program that blobs need."""

    router: PartitionRouter
    reshaper: Reshaper
    load: LoadWatch
    limits: Limits
    clock: Clock
    next_ticks: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    writer_queues: WriterQueues = field(default_factory=WriterQueues)
    open_reads: OpenReads = field(default_factory=OpenReads)


class Found(NamedTuple):
    """All that a name has: the root as it is stored and decoded, and the blob, if it exists and has not expired."""

    point: bytes
    stored: bytes | None
    root: BlobRecord | None
    current: BlobRecord | None


class BlobSpace:
    """The entries of a container. `keyspace` is read through each time: its record may be replaced."""

    __slots__ = ("_committer", "_settings", "_state", "account", "keyspace", "name", "services")

    def __init__(self, account: str, name: str, keyspace: Keyspace, services: BlobServices) -> None:
        self.account = account
        self.name = name
        self.keyspace = keyspace
        self.services = services
        self._settings = keyspace.record.settings
        self._state = ContainerState.from_settings(self._settings)
        # A partition is split when it is large, while writes go on; a blob may be as large as the disk.
        self._committer = Committer(
            keyspace, services.router, services.reshaper, logical_bytes_max=None, physical_bytes_max=None
        )

    @property
    def state(self) -> ContainerState:
        """The state of the container that is in force now."""
        settings = self.keyspace.record.settings
        if settings is not self._settings:
            self._settings, self._state = settings, ContainerState.from_settings(settings)
        return self._state

    def new_id(self) -> bytes:
        return self.services.random_bytes(DATA_ID_BYTES)

    def begin_upload(self, point: bytes) -> Upload:
        return Upload(point, self.new_id(), self.store_part, self.services.next_ticks)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def read(self, point: bytes, keys: Sequence[bytes]) -> list[bytes | None]:
        _, _, values = await self.services.router.read(self.keyspace, point, keys)
        return values

    async def read_with_root(self, point: bytes, *keys: bytes) -> tuple[Found, list[bytes | None]]:
        """Return the root of a blob and further values of one moment, and count the cost of a read."""
        partition, _, values = await self.services.router.read(self.keyspace, point, (root_key(point), *keys))
        stored = values[0]
        self.spend(partition, charge.MISS if stored is None else charge.point_read(len(stored)), point)
        return self._found(point, stored), values[1:]

    async def read_root(self, point: bytes) -> Found:
        found, _ = await self.read_with_root(point)
        return found

    def _found(self, point: bytes, stored: bytes | None) -> Found:
        if stored is None:
            return Found(point, None, None, None)
        root = unpack_blob(stored)
        now = self.now()
        return Found(point, stored, root, settle_tier(root, now) if root.exists and not root.is_expired(now) else None)

    def now(self) -> int:
        return self.services.next_ticks()

    async def slices(self, point: bytes, span: Span, size: SliceSize = ENTRIES) -> AsyncIterator[list[Entry]]:
        """Yield the entries of a span of the keys of a blob, in slices; other requests run between them."""
        rest: Span | None = span
        while rest is not None:
            record = self.keyspace.record
            partition = record.map.find(point)
            page = await self.services.router.scan(
                self.keyspace, record, partition, rest, limit=size.entries, bytes_max=size.bytes
            )
            if page is None:
                continue
            if page.entries:
                yield page.entries
            rest = page.rest(rest)
            if rest is not None:
                await asyncio.sleep(0)

    # --- writing ----------------------------------------------------------------------------------------------------

    def attempts(self, point: bytes, key: bytes | None = None) -> Attempts:
        """The attempts of a change: see `Attempts`. With a key, it queues for that alone."""
        return self.services.writer_queues.attempts(self.keyspace, point, key)

    def begin_change(self, found: Found) -> BlobChange:
        """Begin a change of the blob that was found, inside an attempt; OwnerNotFound if the container is deleted."""
        if self.state.is_deleted:
            raise OwnerNotFound(kind="container", name=self.name)
        return BlobChange(found.point, found.stored, found.root, self.services.next_ticks, self._settings)

    async def commit(self, change: BlobChange, upload: Upload | None = None) -> None:
        """Apply a change; `upload` is consumed by it. ExpectationFailed if another writer was faster."""
        try:
            await self._committer.commit(
                change.point,
                change.batch,
                bytes_delta=change.bytes_delta,
                items_delta=change.items_delta,
                cost=_write_cost(change.bytes_written),
                planned_under=change.planned_under,
            )
        except ExpectationFailed as failed:
            if upload is not None:
                upload.check_lost(failed.key)
            raise
        if upload is not None:
            upload.consumed()
        self._wake_load_watch()

    async def store_part(self, point: bytes, batch: Batch, bytes_delta: int) -> None:
        """Apply a batch of data that no record refers to."""
        with self.keyspace.in_flight:
            await self._committer.commit(
                point, batch, bytes_delta=bytes_delta, items_delta=0, cost=_write_cost(max(bytes_delta, 0))
            )
        self._wake_load_watch()

    def spend(self, partition: PartitionRange, cost: float, point: bytes) -> None:
        self.keyspace.spend(partition, cost, point)
        self._wake_load_watch()

    def _wake_load_watch(self) -> None:
        load = self.services.load
        if load.is_asleep:
            load.wake()


def _write_cost(bytes_written: int) -> float:
    """Return the cost of a batch. Ranges are divided by load: data count by the chunk there, as a division does not
    help a stream, and would copy all that it has brought."""
    return charge.write(min(bytes_written, _FULL_PRICE_BYTES), 0) + bytes_written / CHUNK_BYTES
