"""Captures of a process: begun and ended by orders in the catalog, bounded, and over when their container is."""

from __future__ import annotations

import errno
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from asterism.advisor.captured_request import CapturedRequest, CaptureHeader, read_capture
from asterism.apis.captures.captures import Captures
from asterism.apis.captures.files import MemoryFiles
from asterism.apis.process_group import SingleProcess
from asterism.clock import Clock
from asterism.errors import CaptureRefused
from asterism.keyspaces.routing.keyspace import Keyspace
from tests.support.world import World, open_world

READ = CapturedRequest(at=101.0, operation="read", item_id="o-17", key=("ada",))
PLENTY = 1_000_000


class FullDisk(MemoryFiles):
    is_full = False

    def append(self, capture_id: str, lines: Sequence[bytes], *, first: bytes, bytes_max: int) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().append(capture_id, lines, first=first, bytes_max=bytes_max)


@dataclass
class AtHand:
    """The captures of a database in this process, at a time that the test sets."""

    world: World
    keyspace: Keyspace
    files: FullDisk = field(default_factory=FullDisk)
    now: float = 1000.0

    def open_captures(self) -> Captures:
        return Captures(
            self.world.catalog,
            self.files,
            clock=Clock(lambda: self.now, lambda: self.now),
            random=random.Random(5).random,
            random_bytes=random.Random(7).randbytes,
            processes=SingleProcess(b""),
        )

    async def start(self, captures: Captures, **changes: object) -> None:
        terms = {"sampling": 1.0, "bytes_max": PLENTY, "seconds_max": 60.0, "keeps_values": True} | changes
        await captures.start(self.keyspace, **terms)  # type: ignore[arg-type]  # by their names

    def serve(self, captures: Captures, *, count: int = 1) -> int:
        """Serve requests; return how many of them a recorder took."""
        taken = [captures.sample(self.keyspace) for _ in range(count)]
        for recorder in taken:
            if recorder is not None:
                recorder.add(lambda: [READ], bytes_held=0)
        return sum(recorder is not None for recorder in taken)

    async def records(self, captures: Captures) -> list[object]:
        content = b"".join([piece async for piece in captures.pieces(self.keyspace)])
        return list(read_capture(content.splitlines(keepends=True)))


@pytest.fixture
async def at_hand(tmp_path: Path) -> AsyncIterator[AtHand]:
    async with open_world(tmp_path) as world:
        yield AtHand(world, (await world.container()).keyspace)


async def test_a_container_without_an_order_has_no_capture(at_hand: AtHand) -> None:
    captures = at_hand.open_captures()
    assert at_hand.keyspace.record.capture is None
    assert captures.sample(at_hand.keyspace) is None
    with pytest.raises(CaptureRefused, match=r"There is no capture of 'c'\. To begin one: asterism capture start"):
        await captures.status(at_hand.keyspace)


async def test_requests_are_kept_from_the_order_to_its_end(at_hand: AtHand) -> None:
    captures = at_hand.open_captures()
    await at_hand.start(captures)
    assert at_hand.serve(captures, count=3) == 3
    await captures.stop(at_hand.keyspace)
    assert at_hand.serve(captures) == 0
    header = CaptureHeader("d", "c", started=1000.0, sampling=1.0, values="plain")
    assert await at_hand.records(captures) == [header, READ, READ, READ]
    status = await captures.status(at_hand.keyspace)
    assert (status.is_running, status.ended_because) == (False, "it was stopped")
    await captures.close()


async def test_a_sample_is_kept(at_hand: AtHand) -> None:
    captures = at_hand.open_captures()
    await at_hand.start(captures, sampling=0.2)
    taken = at_hand.serve(captures, count=1000)
    assert 150 < taken < 250
    assert len(await at_hand.records(captures)) == 1 + taken
    await captures.close()


async def test_a_capture_is_begun_once_and_ended_once(at_hand: AtHand) -> None:
    captures = at_hand.open_captures()
    with pytest.raises(CaptureRefused, match="No capture of this container is running"):
        await captures.stop(at_hand.keyspace)
    await at_hand.start(captures)
    with pytest.raises(CaptureRefused, match="A capture of this container is running"):
        await at_hand.start(captures)
    await captures.stop(at_hand.keyspace)
    with pytest.raises(CaptureRefused, match="No capture of this container is running"):
        await captures.stop(at_hand.keyspace)


async def test_another_capture_takes_the_place_of_one_that_has_ended(at_hand: AtHand) -> None:
    captures = at_hand.open_captures()
    await at_hand.start(captures)
    at_hand.serve(captures, count=5)
    await captures.stop(at_hand.keyspace)
    await at_hand.start(captures)
    at_hand.serve(captures, count=2)
    assert len(await at_hand.records(captures)) == 3
    assert len(at_hand.files.capture_ids()) == 1
    await captures.close()


async def test_a_capture_ends_with_its_time(at_hand: AtHand) -> None:
    captures = at_hand.open_captures()
    await at_hand.start(captures, seconds_max=60.0)
    at_hand.serve(captures)
    at_hand.now += 61.0
    await captures.flush()
    assert at_hand.serve(captures) == 0
    status = await captures.status(at_hand.keyspace)
    assert (status.is_running, status.ended_because) == (False, "its time was over")
    assert READ in await at_hand.records(captures)


async def test_a_capture_ends_at_its_size(at_hand: AtHand) -> None:
    captures = at_hand.open_captures()
    await at_hand.start(captures, bytes_max=1000)
    at_hand.serve(captures, count=100)
    await captures.flush()
    assert at_hand.serve(captures) == 0
    status = await captures.status(at_hand.keyspace)
    assert status.ended_because == "its records reached 1,000 bytes"
    assert 500 < status.size_bytes <= 1000
    assert not at_hand.open_captures().sample(at_hand.keyspace)


async def test_a_full_disk_ends_a_capture_and_no_request(at_hand: AtHand) -> None:
    captures = at_hand.open_captures()
    await at_hand.start(captures)
    at_hand.files.is_full = True
    at_hand.serve(captures)
    await captures.flush()
    assert at_hand.serve(captures) == 0
    status = await captures.status(at_hand.keyspace)
    assert status.ended_because == "its files cannot be written: No space left on device"


async def test_a_capture_goes_on_after_a_restart(at_hand: AtHand) -> None:
    before = at_hand.open_captures()
    await at_hand.start(before)
    at_hand.serve(before)
    await before.close()
    after = at_hand.open_captures()
    await after.open()
    at_hand.serve(after)
    assert [entry for entry in await at_hand.records(after) if entry == READ] == [READ, READ]
    await after.close()


async def test_another_process_captures_what_it_serves(at_hand: AtHand) -> None:
    first, second = at_hand.open_captures(), at_hand.open_captures()
    await at_hand.start(first)
    at_hand.serve(second)
    await second.flush()
    assert READ in await at_hand.records(first)
    await first.stop(at_hand.keyspace)
    await second.flush()
    assert at_hand.serve(second) == 0


async def test_the_records_of_a_deleted_container_are_removed(
    at_hand: AtHand, caplog: pytest.LogCaptureFixture
) -> None:
    captures = at_hand.open_captures()
    await at_hand.start(captures)
    at_hand.serve(captures)
    await captures.flush()
    await at_hand.world.catalog.delete_keyspace(at_hand.keyspace)
    await captures.flush()
    assert at_hand.files.capture_ids() == []
    assert "the capture of d/c ended: the container was deleted" in caplog.text


async def test_records_without_a_container_are_removed_at_the_start(at_hand: AtHand) -> None:
    captures = at_hand.open_captures()
    await at_hand.start(captures)
    at_hand.serve(captures)
    await captures.flush()
    at_hand.files.append("gone", [READ.to_json()], first=b"", bytes_max=PLENTY)
    await at_hand.open_captures().open()
    order = at_hand.keyspace.record.capture
    assert order is not None
    assert at_hand.files.capture_ids() == [order.id]
    await captures.close()


async def test_a_change_of_the_container_does_not_end_its_capture(at_hand: AtHand) -> None:
    captures = at_hand.open_captures()
    await at_hand.start(captures)
    at_hand.serve(captures)
    await at_hand.world.reshaper.finished(await at_hand.world.reshaper.split(at_hand.keyspace, 0))
    assert at_hand.serve(captures) == 1
    assert len(await at_hand.records(captures)) == 3
    await captures.close()


async def test_the_salt_is_of_one_capture_and_is_shown_in_no_text(at_hand: AtHand) -> None:
    captures = at_hand.open_captures()
    await at_hand.start(captures)
    first = captures.order_of(at_hand.keyspace)
    await captures.stop(at_hand.keyspace)
    await at_hand.start(captures)
    assert captures.order_of(at_hand.keyspace).salt != first.salt
    assert first.salt.hex() not in repr(first)
    assert repr(first.salt) not in repr(first)
