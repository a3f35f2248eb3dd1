"""The operator's order to capture a sample of the requests on a keyspace.

It is a part of the keyspace's record: so every process learns of it, it survives a restart, and it ends with the
keyspace. The records that a capture makes are not in the catalog (`apis/captures`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from asterism.values.records import StoredRecord


@dataclass(frozen=True, slots=True)
class CaptureOrder(StoredRecord):
    id: str
    # Wall seconds.
    started_at: float
    ends_at: float
    # The fraction of requests that is captured, above 0 and at most 1.
    sampling: float
    # Of the records of all processes that share a data directory.
    bytes_max: int
    # True if the values of requests are kept as they are, and not as digests.
    keeps_values: bool
    # The key of the digests. Not with the records: these alone show no value.
    salt: bytes = field(repr=False)
    # The reason why it ended before `ends_at`; empty while it has not.
    ended_because: str = ""

    def is_running(self, *, now: float) -> bool:
        return not self.ended_because and now < self.ends_at
