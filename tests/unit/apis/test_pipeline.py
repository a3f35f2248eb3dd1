"""The way of a call through a door, with a door that speaks no HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from asterism.apis.pipeline import UNANSWERED, UNROUTED, Pipeline, RequestMeter, look_again
from asterism.errors import AsterismError, ItemNotFound, StorageFull, StoredDamage
from asterism.metrics import DoorRequests
from asterism.storage.contract import EngineFailed, OutOfSpace


class ToyRefusal(Exception):
    """An exception that only the toy door raises."""


class ToyTransportError(Exception):
    status = "cut off"


@dataclass
class ToyCall:
    work: Callable[[], Awaitable[str]]
    operation: str = UNROUTED
    request_id: str = "call-1"


@dataclass(frozen=True)
class ToyAnswer:
    status: str
    text: str


class ToyWords:
    def refuse(self, error: AsterismError, call: ToyCall) -> ToyAnswer:
        return ToyAnswer(error.category.value, str(error))

    def refuse_own(self, problem: Exception, call: ToyCall) -> ToyAnswer | None:
        return ToyAnswer("own", "") if isinstance(problem, ToyRefusal) else None

    def fail(self, call: ToyCall) -> ToyAnswer:
        return ToyAnswer("failed", "")

    def describe(self, call: ToyCall) -> str:
        return f"toy {call.operation}"

    def charge_of(self, call: ToyCall, answer: ToyAnswer) -> str:
        return "2.5"


@dataclass
class Door:
    """A door, and a clock that a call's work moves."""

    slow_seconds: float = 1e9
    now: float = 0.0
    pipeline: Pipeline[ToyCall, ToyAnswer] = field(init=False)
    requests: DoorRequests = field(init=False)

    def __post_init__(self) -> None:
        meter = RequestMeter(lambda: self.now, slow_seconds=self.slow_seconds)
        self.pipeline = Pipeline("toy", ToyWords(), self._handle, meter, transport_errors=(ToyTransportError,))
        self.requests = meter.counts.of_door("toy")

    async def _handle(self, call: ToyCall) -> ToyAnswer:
        call.operation = "act"
        return ToyAnswer("ok", await call.work())

    async def run(self, work: Callable[[], Awaitable[str]]) -> ToyAnswer:
        return await self.pipeline.run(ToyCall(work))

    def statuses(self) -> dict[int | str, int]:
        return self.requests.operations["act"].by_status


def raising(problem: BaseException) -> Callable[[], Awaitable[str]]:
    async def work() -> str:
        raise problem

    return work


async def wait_without_end() -> str:
    await asyncio.Event().wait()
    return ""


def waiting(door: Door, seconds: float) -> Callable[[], Awaitable[str]]:
    async def work() -> str:
        door.now += seconds
        return "done"

    return work


async def test_a_call_is_counted_by_operation_and_status_with_its_time() -> None:
    door = Door()
    assert await door.run(waiting(door, 0.3)) == ToyAnswer("ok", "done")
    counted = door.requests.operations["act"]
    assert (counted.by_status, counted.seconds) == ({"ok": 1}, 0.3)
    assert door.requests.in_flight == 0


async def test_a_call_under_way_is_in_flight() -> None:
    door = Door()
    seen = []

    async def work() -> str:
        seen.append(door.requests.in_flight)
        return ""

    await door.run(work)
    assert seen == [1]


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (ItemNotFound(item_id="i"), "absent"),
        (EngineFailed("the node does not answer"), "unavailable"),
        (OutOfSpace("disk"), "full"),
        (ToyRefusal(), "own"),
        (ValueError("unforeseen"), "failed"),
    ],
)
async def test_every_way_to_fail_has_the_words_of_the_door(problem: Exception, status: str) -> None:
    door = Door()
    assert (await door.run(raising(problem))).status == status
    assert door.statuses() == {status: 1}


async def test_an_unforeseen_failure_is_in_the_log_once_with_the_id_of_the_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await Door().run(raising(ValueError("a secret detail")))
    (record,) = caplog.records
    assert record.name == "asterism.toy"
    assert record.getMessage() == "request 'call-1' failed: toy act"
    assert "a secret detail" in caplog.text


async def test_an_expected_error_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    await Door().run(raising(StorageFull()))
    await Door().run(raising(ToyRefusal()))
    assert caplog.records == []


async def test_damage_that_has_no_key_is_named_by_the_call_that_met_it() -> None:
    damage = StoredDamage(what="item")
    await Door().run(raising(damage))
    assert damage.key == "unknown, met by toy act"


async def test_an_error_of_the_transport_passes_and_is_counted_with_its_status() -> None:
    door = Door()
    with pytest.raises(ToyTransportError):
        await door.run(raising(ToyTransportError()))
    assert door.statuses() == {"cut off": 1}
    assert door.requests.in_flight == 0


async def test_a_call_that_is_cancelled_is_counted_as_unanswered() -> None:
    door = Door()
    task = asyncio.create_task(door.run(wait_without_end))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert door.statuses() == {UNANSWERED: 1}
    assert door.requests.in_flight == 0


async def test_a_slow_call_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    door = Door(slow_seconds=0.5)
    with caplog.at_level(logging.WARNING, "asterism.slow"):
        await door.run(waiting(door, 0.4))
        assert caplog.records == []
        await door.run(waiting(door, 0.75))
    (record,) = caplog.records
    expected = "slow request: door toy, operation act, status ok, 750.0 ms, charge 2.5, request 'call-1'"
    assert record.getMessage() == expected


@dataclass
class Catalog:
    """A catalog that another process has brought to `newest_lsn`."""

    known_lsn: int
    newest_lsn: int
    looks: int = 0

    async def catch_up(self) -> int:
        self.looks += 1
        self.known_lsn = self.newest_lsn
        return self.known_lsn


def looking_up(catalog: Catalog, *, exists_from_lsn: int, tries: list[str]) -> Callable[[str], Awaitable[str]]:
    async def handle(name: str) -> str:
        tries.append(name)
        if catalog.known_lsn < exists_from_lsn:
            raise KeyError(name)
        return f"found {name}"

    return handle


def is_missing(problem: Exception) -> bool:
    return isinstance(problem, KeyError)


async def test_a_call_looks_at_the_catalog_again_before_something_is_missing() -> None:
    catalog, tries = Catalog(known_lsn=3, newest_lsn=5), list[str]()
    handle = looking_up(catalog, exists_from_lsn=5, tries=tries)
    assert await look_again(catalog, handle, "c", looks_first=False, is_missing=is_missing) == "found c"
    assert tries == ["c", "c"]


async def test_a_call_whose_catalog_is_as_new_as_it_can_be_is_handled_once() -> None:
    catalog, tries = Catalog(known_lsn=5, newest_lsn=5), list[str]()
    handle = looking_up(catalog, exists_from_lsn=9, tries=tries)
    with pytest.raises(KeyError):
        await look_again(catalog, handle, "c", looks_first=False, is_missing=is_missing)
    assert (tries, catalog.looks) == (["c"], 1)


async def test_a_call_about_the_catalog_looks_before_it_is_handled() -> None:
    catalog, tries = Catalog(known_lsn=3, newest_lsn=5), list[str]()
    handle = looking_up(catalog, exists_from_lsn=5, tries=tries)
    assert await look_again(catalog, handle, "c", looks_first=True, is_missing=is_missing) == "found c"
    assert (tries, catalog.looks) == (["c"], 1)


async def test_a_call_that_needs_no_second_look_does_not_look_at_all() -> None:
    catalog, tries = Catalog(known_lsn=5, newest_lsn=5), list[str]()
    handle = looking_up(catalog, exists_from_lsn=1, tries=tries)
    assert await look_again(catalog, handle, "c", looks_first=False, is_missing=is_missing) == "found c"
    assert catalog.looks == 0


async def test_any_other_failure_is_not_tried_again() -> None:
    catalog = Catalog(known_lsn=3, newest_lsn=5)

    async def handle(name: str) -> str:
        raise ValueError(name)

    with pytest.raises(ValueError, match="c"):
        await look_again(catalog, handle, "c", looks_first=False, is_missing=is_missing)
    assert catalog.looks == 0
