"""Batches for an engine alone: those that the documents floor makes of the benchmark's items."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Mapping
from typing import Any

from asterism.clock import SYSTEM_CLOCK
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.keyspace import Keyspace, Spent
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.limits import DEFAULT_LIMITS
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.cosmos.profile import CosmosProfile
from asterism.partitioning.partition_map import PartitionMap, PartitionRange, initial_map
from asterism.storage.contract import Batch
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber
from benchmarks.workload import make_item, make_random_item

PARTITION = PartitionNumber(1)
EPOCH = Epoch(1)
RANDOM_SEED = 13
CONTAINER = {"id": "bare", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}


class RecordingOwner(PartitionRouter):
    """Stands where the owner stands, and keeps the batches that the documents floor hands down."""

    def __init__(self) -> None:
        self.calls = 0
        self.batches: list[Batch] = []

    async def apply(
        self,
        keyspace: Keyspace,
        point: bytes,
        batch: Batch,
        *,
        planned_under: Mapping[str, Any] | None = None,  # noqa: ARG002  (the router's own signature)
        on_map: PartitionMap | None = None,  # noqa: ARG002
        cost: float = 0.0,  # noqa: ARG002
        spent: Spent | None = None,  # noqa: ARG002
    ) -> tuple[PartitionRange, Lsn]:
        self.batches.append(batch)
        return keyspace.record.map.find(point), Lsn(len(self.batches))


class IdleReshaper(Reshaper):
    def __init__(self) -> None:
        pass

    def notice_growth(self, keyspace: Keyspace, partition: PartitionRange, bytes_delta: int) -> None:
        pass


async def batches_of_creates(count: int, *, random_values: bool = False) -> list[Batch]:
    """The very batches that creating the benchmark's items makes, default indexing included."""
    chance = random.Random(RANDOM_SEED)
    owner = RecordingOwner()
    name, definition, settings = CosmosProfile().new_container(CONTAINER)
    record = KeyspaceRecord(
        rid=os.urandom(4) + b"\x80" + os.urandom(3),
        name=name,
        settings=settings,
        definition=definition,
        map=initial_map(definition, [PARTITION], epoch=EPOCH),
        etag="",
        changed_at=0,
    )
    numbers = itertools.count(1)
    services = DocumentServices(
        owner, IdleReshaper(), DEFAULT_LIMITS, SYSTEM_CLOCK, os.urandom, lambda: next(numbers), CosmosProfile()
    )
    container = Container(Keyspace(record, b"", time.monotonic), services)
    for number in range(count):
        item_id = f"b{number:08d}"
        item = make_random_item(item_id, chance) if random_values else make_item(item_id)
        await container.create_item(item, None)
    return owner.batches
