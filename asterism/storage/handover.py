"""Hand-over of the catalog's partitions to another node: sealed, copied under the seal (they are small), and opened.

The hand-over takes effect when partition 0 is opened on the target: before, the source holds the catalog (sealed or
not), after, the target does. After a crash any process restarts it, even several at once: the source is sealed, so all
copy the same entries, page by page over the existing ones; and only a target that was prepared for this hand-over is
opened, once.

A catalog that moves to another node of the same fleet is sealed with a fence that names the node. A process that finds
it sealed follows it there, and two processes cannot send it to different nodes.
"""

from __future__ import annotations

from dataclasses import replace

from asterism.storage.contract import Engine, EngineFailed, EpochFenced, Fence, FenceChanged, PartitionUnknown, Span
from asterism.storage.node_identity import IDENTITY_PARTITION
from asterism.values.identifiers import Epoch, Lsn, NodeNumber, PartitionNumber

CATALOG_PARTITION = PartitionNumber(0)
# A sealed fence with this bit in its epoch names the catalog's new node; its former epoch is above the node's number.
_MOVED = 1 << 62
_NODE_BITS = 31
_PAGE_ENTRIES = 1000
_PAGE_BYTES = 1 << 20


async def hand_over(source: Engine, target: Engine, target_node: NodeNumber | None = None) -> None:
    """Hand the catalog over. `target_node` is written to the source, for processes that look for the catalog there."""
    if await is_open(target, CATALOG_PARTITION):
        if await is_open(source, CATALOG_PARTITION):
            raise EngineFailed("both nodes have a catalog")
        return
    of_source = await source.partitions()
    numbers = sorted(number for number in of_source if number < IDENTITY_PARTITION)
    lsns = {number: await _seal(source, number, of_source[number][0], target_node) for number in numbers}
    # The catalog itself is last, because opening it completes the hand-over.
    for number in reversed(numbers):
        await _copy(source, target, number, _epoch_of(of_source[number][0]), lsns[number])


async def _seal(source: Engine, number: PartitionNumber, fence: Fence, target_node: NodeNumber | None) -> Lsn:
    if number != CATALOG_PARTITION or target_node is None:
        return await source.set_fence(number, replace(fence, sealed=True))
    sealed = Fence(Epoch(_MOVED | _epoch_of(fence) << _NODE_BITS | target_node), sealed=True)
    if fence != sealed and fence.sealed:
        raise EngineFailed("the catalog is already being moved to another node")
    try:
        return await source.set_fence(number, sealed, expected=fence)
    except FenceChanged:
        raise EngineFailed("the catalog is already being moved to another node") from None


def _epoch_of(fence: Fence) -> Epoch:
    """Return the epoch of a catalog partition while it is open."""
    return Epoch((fence.epoch ^ _MOVED) >> _NODE_BITS) if fence.epoch & _MOVED else fence.epoch


async def is_open(engine: Engine, partition: PartitionNumber) -> bool:
    try:
        fence, _ = await engine.read_fence(partition)
    except PartitionUnknown:
        return False
    return not fence.sealed


async def read_catalog_target(engine: Engine) -> NodeNumber | None:
    """Return the node that the catalog of this node moved or moves to; None if it stays, or does not exist."""
    try:
        fence, _ = await engine.read_fence(CATALOG_PARTITION)
    except PartitionUnknown:
        return None
    if not fence.sealed or not fence.epoch & _MOVED:
        return None
    return NodeNumber(fence.epoch & ((1 << _NODE_BITS) - 1))


async def has_arrived(source: Engine, target: Engine) -> bool:
    """Return True if the target has the catalog that the source sends there, or has had it and moved it on."""
    try:
        fence, lsn = await target.read_fence(CATALOG_PARTITION)
    except PartitionUnknown:
        return False
    _, sent = await source.read_fence(CATALOG_PARTITION)
    # A target that moved it on before the source got it has a lower LSN than the source.
    return not fence.sealed or (bool(fence.epoch & _MOVED) and lsn > sent)


async def _copy(source: Engine, target: Engine, number: PartitionNumber, epoch: Epoch, lsn: Lsn) -> None:
    # The LSN identifies this hand-over: a sealed source assigns no LSNs, and later hand-overs have higher ones.
    receiving = Fence(Epoch(lsn), sealed=True)
    try:
        if not await _prepare(target, number, receiving):
            return
        span: Span | None = Span()
        while span is not None:
            page = await source.scan_unfenced(number, span, limit=_PAGE_ENTRIES, bytes_max=_PAGE_BYTES)
            rest = page.rest(span)
            # An earlier use of the target may have left entries in between.
            covered = Span(span.start, None if rest is None else rest.start)
            await target.write_copied(number, receiving.epoch, range_deletes=[covered], puts=page.entries)
            span = rest
        await _open(target, number, Fence(epoch), lsn, receiving)
    except (EpochFenced, FenceChanged):
        # Another process was faster, or this was overtaken by a later hand-over.
        if not await is_open(target, number):
            raise EngineFailed("another hand-over of the catalog is in progress") from None


async def _prepare(target: Engine, number: PartitionNumber, receiving: Fence) -> bool:
    """Prepare the target. Return False if it is open already; FenceChanged if it has seen a later hand-over."""
    try:
        fence, lsn = await target.read_fence(number)
    except PartitionUnknown:
        try:
            await target.create_partition(number, receiving, announced=number == CATALOG_PARTITION)
        except EngineFailed:
            # Another process may have just created it; otherwise this fails for the same reason.
            await target.read_fence(number)
            return await _prepare(target, number, receiving)
        return True
    if not fence.sealed:
        return False
    # The other partitions are recreated now and then, and their data is transient.
    if number == CATALOG_PARTITION and lsn > receiving.epoch:
        raise FenceChanged(number)
    if fence == receiving:
        return True
    try:
        await target.set_fence(number, receiving, expected=fence)
    except FenceChanged:
        # Another process changed it, and may be doing the same.
        return await _prepare(target, number, receiving)
    return True


async def _open(target: Engine, number: PartitionNumber, fence: Fence, lsn: Lsn, receiving: Fence) -> None:
    await target.set_fence(number, fence, lsn=lsn, expected=receiving)
