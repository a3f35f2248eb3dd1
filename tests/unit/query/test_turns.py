"""Evaluation in turns: other tasks run in the middle of it, and cancellation ends it at a pause."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from asterism.reading.turns import TURN_SECONDS, Turns, pause, wait


class Clock:
    """A clock that advances by a turn with every reading."""

    seconds = 0.0

    def __call__(self) -> float:
        self.seconds += TURN_SECONDS
        return self.seconds


def sum_below(end: int, made: list[int]) -> int:
    def numbers() -> Iterator[int]:
        for number in range(end):
            pause()
            made.append(number)
            yield number

    return sum(numbers())


async def test_other_tasks_run_whenever_a_turn_ends() -> None:
    turns, made, seen = Turns(Clock()), [], []

    async def watch() -> None:
        while True:
            seen.append(len(made))
            await asyncio.sleep(0)

    watching = asyncio.ensure_future(watch())
    await asyncio.sleep(0)
    assert await turns.run(sum_below, 10, made) == 45
    watching.cancel()
    assert turns.pauses == 10
    assert set(range(10)) <= set(seen)


async def test_one_evaluation_runs_in_each_round_however_many_there_are() -> None:
    made: list[int] = []
    evaluations = [asyncio.ensure_future(Turns(Clock()).run(sum_below, 50, made)) for _ in range(10)]
    # All have started.
    await asyncio.sleep(0)
    rounds = []
    while len(made) < 100:
        before = len(made)
        await asyncio.sleep(0)
        rounds.append(len(made) - before)
    assert max(rounds) == 1
    for evaluation in evaluations:
        evaluation.cancel()


async def test_without_a_long_turn_nothing_is_suspended() -> None:
    turns = Turns(lambda: 0.0)
    assert await turns.run(sum_below, 10, []) == 45
    assert turns.pauses == 0


def test_outside_a_turn_a_pause_does_nothing_and_waiting_is_left_to_the_caller() -> None:
    assert sum_below(3, []) == 3
    assert wait(None) is False


async def test_an_error_of_an_evaluation_is_raised() -> None:
    def fail() -> None:
        pause()
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - it has no text
        await Turns(Clock()).run(fail)


async def test_cancellation_ends_an_evaluation_at_its_pause() -> None:
    made: list[int] = []
    ended = []

    def endless() -> None:
        try:
            while True:
                sum_below(1, made)
        finally:
            ended.append(len(made))

    task = asyncio.ensure_future(Turns(Clock()).run(endless))
    while len(made) < 3:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [len(made)]


async def test_a_callback_at_a_pause_can_end_the_evaluation() -> None:
    def leave() -> None:
        raise KeyError

    made: list[int] = []
    with pytest.raises(KeyError):
        await Turns(Clock(), leave).run(sum_below, 10, made)
    assert made == []


async def test_other_tasks_run_while_an_evaluation_waits_for_another_process() -> None:
    reads_from, writes_to = os.pipe()

    def read() -> bytes:
        assert wait(reads_from)
        return os.read(reads_from, 10)

    task = asyncio.ensure_future(Turns(lambda: 0.0).run(read))
    await asyncio.sleep(0)
    assert not task.done()
    os.write(writes_to, b"answer")
    assert await task == b"answer"
    os.close(reads_from)
    os.close(writes_to)
