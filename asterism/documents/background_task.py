"""Work on a container that outlives its request, and the process: what is remembered of it in the catalog."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from asterism.values.json_text import dumps, loads_stored


class TaskKind(Enum):
    # Remove every item of one logical partition that is not newer than `up_to_lsn`.
    DELETE_PARTITION_KEY = "delete-partition-key"
    # Bring the expiry entries of all items into line with the container's default time to live.
    INDEX_EXPIRY = "index-expiry"


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    number: int
    kind: TaskKind
    keyspace_rid: bytes
    # The interval of the hash line that is still to be looked through.
    start: bytes
    end: bytes
    up_to_lsn: int = 0
    # Items dealt with so far.
    done: int = 0

    def to_bytes(self) -> bytes:
        return dumps(
            {
                "number": self.number,
                "kind": self.kind.value,
                "keyspace_rid": self.keyspace_rid.hex(),
                "start": self.start.hex(),
                "end": self.end.hex(),
                "up_to_lsn": self.up_to_lsn,
                "done": self.done,
            }
        )

    @classmethod
    def from_bytes(cls, stored: bytes) -> BackgroundTask:
        told = cast("dict[str, Any]", loads_stored(stored))
        return cls(
            number=told["number"],
            kind=TaskKind(told["kind"]),
            keyspace_rid=bytes.fromhex(told["keyspace_rid"]),
            start=bytes.fromhex(told["start"]),
            end=bytes.fromhex(told["end"]),
            up_to_lsn=told["up_to_lsn"],
            done=told["done"],
        )
