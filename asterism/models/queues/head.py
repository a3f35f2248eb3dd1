"""The head of a queue as one process knows it: where the visible messages begin, and which are being handed out.

Both only save work. The expectations of the batch that takes a message decide, and hold between processes as well.

A message of another process is placed at the moment at which its write was planned, and is there some time later. So a
process that is not alone knows no start of the last seconds (SETTLED_TICKS), and a write that took longer is
acknowledged when no process can know a start from before it any more.
"""

from __future__ import annotations

from typing import Final

from asterism.values.ticks import TICKS_PER_SECOND

# A write whose caller was canceled may place a message before the known start. From time to time the start is therefore
# looked for again.
_KNOWN_TICKS_MAX: Final = TICKS_PER_SECOND
# A write takes milliseconds; a get passes what was taken in this time, which does not depend on how much waits.
SETTLED_TICKS: Final = 5 * TICKS_PER_SECOND
# The rest of it is for clocks of several machines that differ.
_LATE_TICKS: Final = SETTLED_TICKS // 2
# A little longer than a start is known.
LATE_WAIT_SECONDS: Final = 1.1


class QueueHead:
    """Known of one generation of a queue.

    Messages that were taken leave deleted entries, which a scan passes one by one until they are folded into the tree,
    and messages that have expired are there until the upkeep removes them. A scan therefore begins at `start`, before
    which there is nothing that can be visible.
    """

    __slots__ = ("_start", "_started_at", "claims", "generation", "version", "wanted")

    def __init__(self, generation: bytes) -> None:
        self.generation = generation
        # Keys of messages whose taking is not committed yet.
        self.claims: set[bytes] = set()
        # Number of messages that gets are looking for.
        self.wanted = 0
        self._start = b""
        self._started_at = 0
        # Rises with every write that may have placed a message before the start.
        self.version = 0

    def start(self, prefix: bytes, now: int) -> bytes:
        """Return the key from which a scan of the messages begins; `prefix` is before all of them."""
        if not self._start or not 0 <= now - self._started_at < _KNOWN_TICKS_MAX:
            self._start, self._started_at = prefix, now
        return self._start

    def found(self, first: bytes, *, version: int) -> None:
        """Note that a scan, begun in `version`, found no message before `first` that has not expired."""
        if version == self.version and first > self._start:
            self._start = first

    def written(self, key: bytes) -> None:
        """Note that a message was, or may have been, placed under a key."""
        self.version += 1
        if key < self._start:
            self._start = key


def is_late(visible_at: int, *, now: int) -> bool:
    """Return True if other processes may begin behind a message that was placed at a moment and is written by now."""
    return now - visible_at > _LATE_TICKS


class QueueHeads:
    """The heads of the queues that a process serves, by keyspace and point."""

    _HEADS_MAX = 10_000

    def __init__(self) -> None:
        self._heads: dict[tuple[bytes, bytes], QueueHead] = {}

    def head_of(self, keyspace_rid: bytes, point: bytes, generation: bytes) -> QueueHead:
        """Return the head of a queue, a new one when its messages are of another generation."""
        key = keyspace_rid, point
        head = self._heads.get(key)
        if head is None or head.generation != generation:
            if len(self._heads) >= self._HEADS_MAX:
                self._heads = {place: busy for place, busy in self._heads.items() if busy.claims}
            head = self._heads[key] = QueueHead(generation)
        return head
