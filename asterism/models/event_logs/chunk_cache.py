"""The chunks that were appended or read last, so that many readers of a log share them. One cache per process."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from asterism.limits import MIB
from asterism.models.event_logs.events import Chunk

CACHE_BYTES_MAX: Final = 64 * MIB

# The keyspace and the number of the partition.
LogId = tuple[bytes, int]


class ChunkCache:
    """Chunks by their log and first sequence number; those that were not used for longest go first.

    A chunk never changes once it is stored, so what is here is true, also where other processes append (E6). Readers go
    by the front of the log, so that they pass events here that have been removed.
    """

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._chunks: OrderedDict[tuple[LogId, int], Chunk] = OrderedDict()
        self.bytes_used = 0

    def get(self, log: LogId, first_sequence: int) -> Chunk | None:
        key = (log, first_sequence)
        chunk = self._chunks.get(key)
        if chunk is not None:
            self._chunks.move_to_end(key)
        return chunk

    def add(self, log: LogId, chunk: Chunk) -> None:
        key = (log, chunk.first_sequence)
        known = self._chunks.pop(key, None)
        if known is not None:
            self.bytes_used -= known.memory_bytes
        self._chunks[key] = chunk
        self.bytes_used += chunk.memory_bytes
        while self.bytes_used > self._bytes_max and self._chunks:
            _, oldest = self._chunks.popitem(last=False)
            self.bytes_used -= oldest.memory_bytes
