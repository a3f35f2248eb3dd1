"""The set of one member that this process presents, and its version, which clients wait for to change."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document, Int64, ObjectId

# The longest that an answer is held back.
AWAIT_SECONDS_MAX = 60.0
# The first term, for ever: there is no other member to elect. Clients ignore a primary with a lower id than the last
# they heard of, so that all processes of a server must tell the same.
ELECTION_ID = ObjectId("7fffffff0000000000000001")


@dataclass(slots=True)
class Topology:
    """Names this process, so that a client sees when another answers in its place."""

    process_id: ObjectId = field(default_factory=ObjectId)
    counter: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def version(self) -> Document:
        return {"processId": self.process_id, "counter": Int64(self.counter)}

    def change(self) -> None:
        """Raise the version, and let every client that waits for that know."""
        self.counter += 1
        self.changed.set()
        self.changed = asyncio.Event()


def seconds_to_wait(topology: Topology, body: Document) -> float | None:
    """Return how long a hello waits for a change; None if it does not wait. MongoFailure for fields that are wrong."""
    version, wait = body.get("topologyVersion"), body.get("maxAwaitTimeMS")
    if version is None and wait is None:
        return None
    if version is None:
        raise MongoFailure(31373, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
    if wait is None:
        raise MongoFailure(31368, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'")
    if not _is_whole(wait):
        raise MongoFailure(14, "BSON field 'hello.maxAwaitTimeMS' is the wrong type, expected a whole number")
    if wait < 0:
        raise MongoFailure(2, "maxAwaitTimeMS must be a non-negative integer")
    process, counter = _read_version(version)
    if process != topology.process_id or counter < topology.counter:
        return None
    if counter > topology.counter:
        raise MongoFailure(
            31382,
            f"Received a topology version with counter: {counter} which is greater than the server topology version "
            f"counter: {topology.counter}",
        )
    return min(float(wait) / 1000, AWAIT_SECONDS_MAX)


def _read_version(version: Any) -> tuple[ObjectId, int]:
    if not isinstance(version, dict):
        raise MongoFailure(14, "BSON field 'hello.topologyVersion' is the wrong type, expected type 'object'")
    process, counter = version.get("processId"), version.get("counter")
    if process is None or counter is None:
        raise MongoFailure(40414, "BSON field 'hello.topologyVersion' needs 'processId' and 'counter'")
    if not isinstance(process, ObjectId) or not isinstance(counter, Int64):
        raise MongoFailure(14, "BSON field 'hello.topologyVersion' needs an ObjectId and a long")
    if counter < 0:
        raise MongoFailure(31372, "topologyVersion must have a non-negative counter")
    return process, int(counter)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value and abs(value) < 2**63
