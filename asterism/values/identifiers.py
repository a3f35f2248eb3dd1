"""Numbers that name things across the floors: nodes, partitions, epochs, log sequence numbers."""

from __future__ import annotations

from typing import NewType

# A node, that is, one storage engine: 0 is the embedded store, PostgreSQL servers have 1, 2 and so on.
NodeNumber = NewType("NodeNumber", int)
# A physical partition's number, unique in the whole fleet and never used again; it carries the number of its node.
PartitionNumber = NewType("PartitionNumber", int)
# The generation of a partition's ownership; rises with every split, merge and move it goes through.
Epoch = NewType("Epoch", int)
# A log sequence number: one more for each batch a partition applies.
Lsn = NewType("Lsn", int)

# Bits of a partition number below its node's: a fleet may have made four thousand million partitions.
SEQUENCE_BITS = 32
SEQUENCE_MAX = (1 << SEQUENCE_BITS) - 2


def partition_on(node: NodeNumber, sequence: int) -> PartitionNumber:
    """The number of the partition that was given this place in the fleet's sequence and lies on this node."""
    if node < 0 or not 0 <= sequence <= SEQUENCE_MAX:
        raise ValueError(f"no partition {sequence} on node {node}")
    return PartitionNumber(node << SEQUENCE_BITS | sequence)


def node_of(number: PartitionNumber) -> NodeNumber:
    return NodeNumber(number >> SEQUENCE_BITS)


def sequence_of(number: PartitionNumber) -> int:
    return number & ((1 << SEQUENCE_BITS) - 1)
