"""Numbers that name things across the floors: partitions, epochs, log sequence numbers."""

from __future__ import annotations

from typing import NewType

# A physical partition's number, unique on its node and never used again.
PartitionNumber = NewType("PartitionNumber", int)
# The generation of a partition's ownership; rises with every split, merge and move it goes through.
Epoch = NewType("Epoch", int)
# A log sequence number: one more for each batch a partition applies.
Lsn = NewType("Lsn", int)
