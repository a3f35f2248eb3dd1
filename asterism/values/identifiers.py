"""Numbers that all floors share: nodes, partitions, epochs, log sequence numbers."""

from __future__ import annotations

from typing import NewType

# A node, that is, one storage engine: 0 is the embedded store, PostgreSQL servers have 1, 2 and so on.
NodeNumber = NewType("NodeNumber", int)
# A physical partition's number, unique in the whole fleet and never reused; it contains the number of its node.
PartitionNumber = NewType("PartitionNumber", int)
# The generation of a partition's ownership; rises with each of its splits, merges and moves.
Epoch = NewType("Epoch", int)
# A log sequence number: one more for each batch that a partition applies.
Lsn = NewType("Lsn", int)

# Bits of a partition number below its node's: enough for four billion partitions in the life of a fleet.
SEQUENCE_BITS = 32
SEQUENCE_MAX = (1 << SEQUENCE_BITS) - 2


def partition_on(node: NodeNumber, sequence: int) -> PartitionNumber:
    """Return the number of the partition with this place in the fleet's sequence on this node."""
    if node < 0 or not 0 <= sequence <= SEQUENCE_MAX:
        raise ValueError(f"no partition {sequence} on node {node}")
    return PartitionNumber(node << SEQUENCE_BITS | sequence)


def node_of(number: PartitionNumber) -> NodeNumber:
    return NodeNumber(number >> SEQUENCE_BITS)


def sequence_of(number: PartitionNumber) -> int:
    return number & ((1 << SEQUENCE_BITS) - 1)
