"""The catalog's partitions, from one node to another: sealed, copied, opened there. Small, so all of it under the seal.

The moment of the hand-over is when partition 0 is opened on the target: before it the source holds the catalog (sealed
or not), from it on the target does. Whatever a crash interrupts is done again from its beginning, by anyone, also by
several at once: the source is sealed, so that all copy the same, page by page in place of what was there; and only a
target that was prepared for this very hand-over is opened, once.

A catalog that goes to another node of the same fleet is sealed with a fence that says where to. Who finds it sealed
knows where to look, and no two can send it to different nodes.
"""

from __future__ import annotations

from dataclasses import replace

from asterism.storage.contract import Engine, EngineFailed, EpochFenced, Fence, FenceChanged, PartitionUnknown, Span
from asterism.storage.node_identity import IDENTITY_PARTITION
from asterism.values.identifiers import Epoch, Lsn, NodeNumber, PartitionNumber

CATALOG_PARTITION = PartitionNumber(0)
# A sealed fence with this bit in its epoch says where the catalog goes: above the node's number is the epoch it had.
_TOWARDS = 1 << 62
_NODE_BITS = 31
_PAGE_ENTRIES = 1000
_PAGE_BYTES = 1 << 20


async def hand_over(source: Engine, target: Engine, towards: NodeNumber | None = None) -> None:
    """`towards` is the target's number, for those who will look for the catalog on the source."""
    if await is_open(target, CATALOG_PARTITION):
        if await is_open(source, CATALOG_PARTITION):
            raise EngineFailed("both nodes have a catalog")
        return
    of_source = await source.partitions()
    own = sorted(number for number in of_source if number < IDENTITY_PARTITION)
    lsns = {number: await _seal(source, number, of_source[number][0], towards) for number in own}
    # The catalog itself is the last, because to open it is to hand over.
    for number in reversed(own):
        await _copy(source, target, number, _epoch_of(of_source[number][0]), lsns[number])


async def _seal(source: Engine, number: PartitionNumber, fence: Fence, towards: NodeNumber | None) -> Lsn:
    if number != CATALOG_PARTITION or towards is None:
        return await source.set_fence(number, replace(fence, sealed=True))
    sealed = Fence(Epoch(_TOWARDS | _epoch_of(fence) << _NODE_BITS | towards), sealed=True)
    if fence != sealed and fence.sealed:
        raise EngineFailed("the catalog is on its way to another node")
    try:
        return await source.set_fence(number, sealed, expected=fence)
    except FenceChanged:
        raise EngineFailed("the catalog is on its way to another node") from None


def _epoch_of(fence: Fence) -> Epoch:
    """The epoch by which a partition of the catalog is read and written while it is open."""
    return Epoch((fence.epoch ^ _TOWARDS) >> _NODE_BITS) if fence.epoch & _TOWARDS else fence.epoch


async def is_open(engine: Engine, partition: PartitionNumber) -> bool:
    try:
        fence, _ = await engine.read_fence(partition)
    except PartitionUnknown:
        return False
    return not fence.sealed


async def read_place(engine: Engine) -> NodeNumber | None:
    """To which node the catalog of this one went or goes; None if it stays, or is not there."""
    try:
        fence, _ = await engine.read_fence(CATALOG_PARTITION)
    except PartitionUnknown:
        return None
    if not fence.sealed or not fence.epoch & _TOWARDS:
        return None
    return NodeNumber(fence.epoch & ((1 << _NODE_BITS) - 1))


async def has_arrived(source: Engine, target: Engine) -> bool:
    """Whether the target has the catalog that the source sends there, or has had it and passed it on."""
    try:
        fence, lsn = await target.read_fence(CATALOG_PARTITION)
    except PartitionUnknown:
        return False
    _, sent = await source.read_fence(CATALOG_PARTITION)
    # One that passed it on before the source had it knows less than the source.
    return not fence.sealed or (bool(fence.epoch & _TOWARDS) and lsn > sent)


async def _copy(source: Engine, target: Engine, number: PartitionNumber, epoch: Epoch, lsn: Lsn) -> None:
    # The LSN names this hand-over: the source gives none while it is sealed, and every later one has a higher.
    receiving = Fence(Epoch(lsn), sealed=True)
    try:
        if not await _prepare(target, number, receiving):
            return
        span: Span | None = Span()
        while span is not None:
            page = await source.scan_unfenced(number, span, limit=_PAGE_ENTRIES, bytes_max=_PAGE_BYTES)
            rest = Span(page.entries[-1][0] + b"\x00", None) if page.more else None
            # An earlier life of the target may have left something between.
            covered = Span(span.start, None if rest is None else rest.start)
            await target.write_copied(number, receiving.epoch, range_deletes=[covered], puts=page.entries)
            span = rest
        await _open(target, number, Fence(epoch), lsn, receiving)
    except (EpochFenced, FenceChanged):
        # Somebody else was faster, or this was overtaken by a later hand-over.
        if not await is_open(target, number):
            raise EngineFailed("another hand-over of the catalog is under way") from None


async def _prepare(target: Engine, number: PartitionNumber, receiving: Fence) -> bool:
    """False if the target is open already; FenceChanged if it knows of a later hand-over."""
    try:
        fence, lsn = await target.read_fence(number)
    except PartitionUnknown:
        try:
            await target.create_partition(number, receiving, announced=number == CATALOG_PARTITION)
        except EngineFailed:
            # Another process may have made it in this moment; otherwise this fails for the same reason.
            await target.read_fence(number)
            return await _prepare(target, number, receiving)
        return True
    if not fence.sealed:
        return False
    # The other partitions are made anew now and then, and what they hold is of the moment.
    if number == CATALOG_PARTITION and lsn > receiving.epoch:
        raise FenceChanged(number)
    if fence == receiving:
        return True
    try:
        await target.set_fence(number, receiving, expected=fence)
    except FenceChanged:
        # By another process, which may be doing the same.
        return await _prepare(target, number, receiving)
    return True


async def _open(target: Engine, number: PartitionNumber, fence: Fence, lsn: Lsn, receiving: Fence) -> None:
    await target.set_fence(number, fence, lsn=lsn, expected=receiving)
