"""The sizes of slices, all in one place: each holds the event loop for a millisecond or two.

Reading is the smaller part: LMDB reads an entry of 100 bytes in 0.25 µs, of 1 KB in 0.35 µs, of 4 KB in 0.5 µs (best of
30 runs of 1,000 warm entries). The rest is what the caller does with an entry, which differs by a factor of a hundred.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from asterism.limits import KIB, MIB


class SliceSize(NamedTuple):
    """Limits of a slice: it ends at `entries`, or as soon as it has `bytes` of keys and values."""

    entries: int
    bytes: int


# Counters of logical partitions: 16 bytes under a key of 20, unpacked in 0.3 µs.
COUNTERS: Final = SliceSize(1000, 256 * KIB)
# Entities of tables, which are unpacked and perhaps matched: 1 to 3 µs each.
ENTITIES: Final = SliceSize(500, 512 * KIB)
# Runs of keys that were cut: all of a run is read for each page of it, and sorted by its values.
COLLISIONS: Final = SliceSize(1000, MIB)
# Items that are answered or filtered, at 2 to 10 µs each.
ITEMS: Final = SliceSize(128, 256 * KIB)
# Items whose index entries are planned again, at about 20 µs each.
REINDEXED_ITEMS: Final = SliceSize(48, 128 * KIB)
# Small entries that a container no longer keeps, removed by one batch.
REMOVED_ENTRIES: Final = SliceSize(200, 64 * KIB)
# Items of a container that is converted before it is served: no request waits.
CONVERTED_ITEMS: Final = SliceSize(500, 4 * MIB)
# Entries of a change log, behind which are items of any size.
LOG_ENTRIES: Final = SliceSize(256, 256 * KIB)
LOG_ENTRIES_MIN: Final = 8
# Versions of items, which are removed by one batch.
VERSIONS: Final = SliceSize(200, 512 * KIB)
# Entries of all kinds that a split, merge or move copies: as long to write as to read.
COPIED_ENTRIES: Final = SliceSize(800, 512 * KIB)
