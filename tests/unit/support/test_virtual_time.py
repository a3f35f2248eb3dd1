"""The event loop in virtual time, on which other tests rely."""

from __future__ import annotations

import asyncio

import pytest

from tests.support import virtual_time
from tests.support.virtual_time import (
    START_SECONDS,
    Deadlock,
    Livelock,
    OutOfTime,
    in_virtual_time,
    run_virtual,
    virtual_clock,
)

DAY_SECONDS = 86_400.0


def test_sleeps_of_days_take_no_time_and_end_in_their_order() -> None:
    async def main() -> list[tuple[str, float]]:
        ended: list[tuple[str, float]] = []

        async def sleep(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            ended.append((name, asyncio.get_running_loop().time() - START_SECONDS))

        await asyncio.gather(sleep("c", 30 * DAY_SECONDS), sleep("a", 0.001), sleep("b", DAY_SECONDS))
        return ended

    assert run_virtual(main()) == [
        ("a", pytest.approx(0.001)),
        ("b", pytest.approx(DAY_SECONDS)),
        ("c", pytest.approx(30 * DAY_SECONDS)),
    ]


@in_virtual_time
async def test_timeouts_and_timers_follow_the_virtual_clock() -> None:
    loop = asyncio.get_running_loop()
    clock = virtual_clock(loop, wall_offset_seconds=5.0)
    began = [read() for read in (loop.time, clock.wall_seconds, clock.monotonic_seconds)]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3600):
            await asyncio.Event().wait()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), timeout=60)
    rung = asyncio.Event()
    loop.call_later(40, rung.set)
    await rung.wait()
    ended = [read() for read in (loop.time, clock.wall_seconds, clock.monotonic_seconds)]
    assert ended == pytest.approx([reading + 3700 for reading in began])


@in_virtual_time
async def test_time_stands_still_while_something_is_ready() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    loop.call_later(0.5, loop.stop)
    for _ in range(10_000):
        await asyncio.sleep(0)
    assert loop.time() == began


@pytest.mark.parametrize("tmp_name", ["a"])
@in_virtual_time
async def test_a_test_in_virtual_time_gets_its_fixtures(tmp_path: object, tmp_name: str) -> None:
    await asyncio.sleep(DAY_SECONDS)
    assert (str(tmp_path), tmp_name) != ("", "")


def test_a_deadlock_is_an_error_that_says_what_waits() -> None:
    async def wait_for_the_other(mine: asyncio.Lock, other: asyncio.Lock) -> None:
        async with mine:
            await asyncio.sleep(1)
            async with other:
                pass

    async def main() -> None:
        left, right = asyncio.Lock(), asyncio.Lock()
        first = asyncio.create_task(wait_for_the_other(left, right), name="lefty")
        second = asyncio.create_task(wait_for_the_other(right, left), name="righty")
        await asyncio.gather(first, second)

    with pytest.raises(Deadlock) as caught:
        run_virtual(main())
    message = str(caught.value)
    assert "lefty waits in" in message
    assert "righty waits in" in message
    assert "locks.py" in message


def test_a_program_that_never_rests_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_time, "TURNS_MAX", 1000)

    async def main() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Livelock, match="these tasks wait"):
        run_virtual(main())


def test_a_test_may_say_how_much_virtual_time_is_enough() -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(10)

    with pytest.raises(OutOfTime, match="virtual seconds have passed"):
        run_virtual(main(), seconds_max=3600)


def test_a_thread_is_refused() -> None:
    async def main() -> None:
        await asyncio.to_thread(int)

    with pytest.raises(RuntimeError, match="does not follow virtual time"):
        run_virtual(main())


def test_an_error_of_the_test_comes_out_and_everything_else_is_cancelled() -> None:
    ended: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(DAY_SECONDS)
        finally:
            ended.append("background")

    async def main() -> None:
        task = asyncio.create_task(background())
        await asyncio.sleep(1)
        assert task.done(), "too early"

    with pytest.raises(AssertionError, match="too early"):
        run_virtual(main())
    assert ended == ["background"]
