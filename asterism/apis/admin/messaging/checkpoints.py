"""The positions of consumer groups, as clients keep them: blobs in a container of our own blob door.

The clients' checkpoint stores write `host/hub/group/checkpoint/partition` with the metadata `sequencenumber` and
`offset`, and `host/hub/group/ownership/partition` with the metadata `ownerid`; all names are in lower case.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

from asterism.models.blobs.calls import ListQuery
from asterism.models.blobs.container import Container
from asterism.models.blobs.record import BlobRecord
from asterism.values.ticks import TICKS_PER_SECOND

# Of a container: more names than hosts of a namespace, or consumer groups of a hub, are of some other program.
HOSTS_MAX: Final = 100
GROUPS_MAX: Final = 200
# Of a group: as many as a hub has partitions at most, and as many owners.
_BLOBS_PER_GROUP_MAX: Final = 4096
_PAGE_BLOBS: Final = 1000
_NO_POSITION: Final = -1
_TICKS_PER_MILLISECOND: Final = TICKS_PER_SECOND // 1000


@dataclass(slots=True)
class PartitionPosition:
    """The place that a group has reached in a partition."""

    # -1 if the group has not stored a place yet.
    sequence: int = _NO_POSITION
    offset: str | None = None
    stored_ms: int | None = None
    # The client that reads the partition, by the id that it chose; and when it said so last.
    owner: str | None = None
    owner_seen_ms: int | None = None


@dataclass(slots=True)
class GroupPositions:
    """The positions of a consumer group under a host name of the namespace."""

    host: str
    group: str
    by_partition: dict[int, PartitionPosition] = field(default_factory=dict)

    def of(self, partition: int) -> PartitionPosition:
        return self.by_partition.setdefault(partition, PartitionPosition())


async def read_positions(container: Container, hub: str, *, group: str | None = None) -> list[GroupPositions]:
    """Read the positions of the groups of a hub, or of a single one, under every host name."""
    found = []
    for host in await _names(container, "", HOSTS_MAX):
        prefix = f"{host}/{hub.lower()}/"
        groups = [group.lower()] if group is not None else await _names(container, prefix, GROUPS_MAX)
        for name in groups:
            positions = GroupPositions(host, name)
            await _read_group(container, f"{prefix}{name}/", positions)
            if positions.by_partition:
                found.append(positions)
    return found


async def _names(container: Container, prefix: str, limit: int) -> list[str]:
    """Return the next parts of the names below a prefix."""
    page = await container.list(ListQuery(prefix, delimiter="/", limit=limit))
    return [entry.removeprefix(prefix).rstrip("/") for entry in page.entries if isinstance(entry, str)]


async def _read_group(container: Container, prefix: str, positions: GroupPositions) -> None:
    async for record in _blobs(container, f"{prefix}checkpoint/"):
        partition = _partition_of(record)
        if partition is not None:
            position = positions.of(partition)
            position.sequence = _sequence_of(record)
            position.offset = record.metadata.get("offset")
            position.stored_ms = record.modified_at // _TICKS_PER_MILLISECOND
    async for record in _blobs(container, f"{prefix}ownership/"):
        partition = _partition_of(record)
        if partition is not None:
            position = positions.of(partition)
            # An owner that has given its partition back has left an empty id.
            position.owner = record.metadata.get("ownerid") or None
            position.owner_seen_ms = record.modified_at // _TICKS_PER_MILLISECOND


async def _blobs(container: Container, prefix: str) -> AsyncIterator[BlobRecord]:
    after, left = None, _BLOBS_PER_GROUP_MAX
    while left > 0:
        page = await container.list(ListQuery(prefix, after=after, limit=min(left, _PAGE_BLOBS)))
        for entry in page.entries:
            if isinstance(entry, BlobRecord):
                yield entry
        left -= len(page.entries)
        after = page.next
        if after is None:
            return


def _partition_of(record: BlobRecord) -> int | None:
    text = record.name.rpartition("/")[2]
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else None


def _sequence_of(record: BlobRecord) -> int:
    text = record.metadata.get("sequencenumber") or ""
    is_number = text.isascii() and text.isdigit() and len(text) <= 18
    return int(text) if is_number else _NO_POSITION
