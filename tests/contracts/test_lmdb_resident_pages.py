"""Bulk reads of the embedded store do not make the process grow."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from asterism.limits import MIB
from asterism.storage.contract import Batch, Fence
from asterism.storage.lmdb.engine import LmdbEngine
from asterism.storage.lmdb.resident_pages import ResidentPages
from asterism.values.identifiers import Epoch, PartitionNumber

PARTITION, EPOCH = PartitionNumber(1), Epoch(1)
VALUES = 96

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells what is resident")


def resident_bytes(file: Path) -> int:
    """Return how much of a mapped file counts as memory of this process."""
    total, is_of_file = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.partition(" ")[0]:
            is_of_file = line.endswith(str(file.resolve()))
        elif is_of_file and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


def key(number: int) -> bytes:
    return b"\x20" + number.to_bytes(4, "big")


def value(number: int) -> bytes:
    return number.to_bytes(4, "big") * (MIB // 4)


async def filled(path: Path) -> LmdbEngine:
    engine = LmdbEngine.open(path, durable=False)
    await engine.create_partition(PARTITION, Fence(EPOCH))
    for number in range(VALUES):
        await engine.apply(PARTITION, EPOCH, Batch(puts=[(key(number), value(number))]))
    await engine.close()
    return LmdbEngine.open(path, durable=False)


def test_reading_large_values_keeps_a_bounded_part_of_the_file_mapped(tmp_path: Path) -> None:
    async def main() -> int:
        engine = await filled(tmp_path)
        for number in range(VALUES):
            _, (found,) = await engine.read(PARTITION, EPOCH, [key(number)])
            assert found == value(number)
        resident = resident_bytes(tmp_path / "data.mdb")
        await engine.close()
        return resident

    assert asyncio.run(main()) < 80 * MIB


def test_values_are_read_again_after_their_pages_were_released(tmp_path: Path) -> None:
    async def main() -> None:
        engine = await filled(tmp_path)
        await engine.read(PARTITION, EPOCH, [key(3)])
        ResidentPages(tmp_path / "data.mdb").release()
        assert resident_bytes(tmp_path / "data.mdb") < MIB
        _, (found,) = await engine.read(PARTITION, EPOCH, [key(3)])
        assert found == value(3)
        await engine.close()

    asyncio.run(main())
