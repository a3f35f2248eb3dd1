"""The catalog's partitions, from one node to another: sealed, copied, opened there. Small, so all of it under the seal.

The moment of the hand-over is when partition 0 is opened on the target: before it the source holds the catalog (sealed
or not), from it on the target does. Whatever a crash interrupts is done again from its beginning.
"""

from __future__ import annotations

from dataclasses import replace

from asterism.storage.contract import Engine, EngineFailed, Fence, PartitionUnknown, Span
from asterism.storage.node_identity import IDENTITY_PARTITION
from asterism.values.identifiers import Lsn, PartitionNumber

CATALOG_PARTITION = PartitionNumber(0)
_PAGE_ENTRIES = 1000
_PAGE_BYTES = 1 << 20


async def hand_over(source: Engine, target: Engine) -> None:
    if await is_open(target, CATALOG_PARTITION):
        if await is_open(source, CATALOG_PARTITION):
            raise EngineFailed("both nodes have a catalog")
        return
    of_source = await source.partitions()
    own = sorted(number for number in of_source if number < IDENTITY_PARTITION)
    lsns = {number: await source.set_fence(number, replace(of_source[number][0], sealed=True)) for number in own}
    # The catalog itself is the last, because to open it is to hand over.
    for number in reversed(own):
        await _copy(source, target, number, of_source[number][0], lsns[number])


async def is_open(engine: Engine, partition: PartitionNumber) -> bool:
    try:
        fence, _ = await engine.read_fence(partition)
    except PartitionUnknown:
        return False
    return not fence.sealed


async def _copy(source: Engine, target: Engine, number: PartitionNumber, fence: Fence, lsn: Lsn) -> None:
    sealed = Fence(fence.epoch, sealed=True)
    try:
        await target.set_fence(number, sealed)
    except PartitionUnknown:
        await target.create_partition(number, sealed, announced=number == CATALOG_PARTITION)
    # An earlier attempt, or an earlier life of this store, may have left something.
    await target.write_copied(number, range_deletes=[Span()])
    span, more = Span(), True
    while more:
        page = await source.scan_unfenced(number, span, limit=_PAGE_ENTRIES, bytes_max=_PAGE_BYTES)
        await target.write_copied(number, puts=page.entries)
        more = page.more
        if more:
            span = Span(page.entries[-1][0] + b"\x00", None)
    await _open(target, number, Fence(fence.epoch), lsn)


async def _open(target: Engine, number: PartitionNumber, fence: Fence, lsn: Lsn) -> None:
    await target.set_fence(number, fence, lsn=lsn)
