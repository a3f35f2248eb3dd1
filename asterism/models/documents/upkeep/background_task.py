"""The catalog's record of work on a container that outlives its request and the process."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from asterism.values.records import StoredRecord


class TaskKind(Enum):
    # Remove every item of one logical partition that is not newer than `up_to_lsn`.
    DELETE_PARTITION_KEY = "delete-partition-key"
    # Bring the expiry entries of all items into line with the container's default time to live.
    INDEX_EXPIRY = "index-expiry"


@dataclass(frozen=True, slots=True)
class BackgroundTask(StoredRecord):
    number: int
    kind: TaskKind
    keyspace_rid: bytes
    # The interval of the hash line that is still to be walked.
    start: bytes
    end: bytes
    up_to_lsn: int = 0
    # Items done so far.
    done: int = 0
