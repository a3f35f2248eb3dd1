"""Partitions that fill up, and the warnings about those that were deleted."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from asterism.errors import AsterismError, OwnerNotFound, StorageUnavailable
from asterism.keyspaces.reshaping.growth_watch import GrowthWatch
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.limits import DEFAULT_LIMITS
from asterism.partitioning.key_range import FULL
from asterism.partitioning.partition_map import PartitionRange
from asterism.values.identifiers import Epoch, PartitionNumber


class _RefusingRouter:
    def __init__(self, refusal: AsterismError) -> None:
        self._refusal = refusal

    async def read(self, *_: Any) -> Any:
        raise self._refusal


@pytest.mark.parametrize(
    ("refusal", "warnings"),
    [(OwnerNotFound(kind="container", name="gone"), 0), (StorageUnavailable(reason="it is off"), 1)],
)
async def test_a_container_that_was_deleted_meanwhile_is_nothing_to_warn_of(
    caplog: pytest.LogCaptureFixture, refusal: AsterismError, warnings: int
) -> None:
    async def split(*_: Any) -> None:
        raise AssertionError("nothing is known to be full")

    filling = GrowthWatch(cast(PartitionRouter, _RefusingRouter(refusal)), DEFAULT_LIMITS, split)
    partition = PartitionRange(id=0, range=FULL, partition=PartitionNumber(1), epoch=Epoch(1))
    filling.notice(cast(Keyspace, object()), partition, 10)
    await asyncio.sleep(0.01)
    await filling.stop()
    assert len(caplog.records) == warnings
