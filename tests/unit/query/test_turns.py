"""Evaluation in turns: others are answered in the middle of it, and it ends where it stands when it has to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from asterism.reading.turns import TURN_SECONDS, Turns, pause, wait


class Clock:
    """Goes on by a turn with every reading."""

    seconds = 0.0

    def __call__(self) -> float:
        self.seconds += TURN_SECONDS
        return self.seconds


def counted(upto: int, made: list[int]) -> int:
    def numbers() -> Iterator[int]:
        for number in range(upto):
            pause()
            made.append(number)
            yield number

    return sum(numbers())


async def test_others_run_whenever_a_turn_is_over() -> None:
    turns, made, seen = Turns(Clock()), [], []

    async def watch() -> None:
        while True:
            seen.append(len(made))
            await asyncio.sleep(0)

    watching = asyncio.ensure_future(watch())
    await asyncio.sleep(0)
    assert await turns.run(counted, 10, made) == 45
    watching.cancel()
    assert turns.pauses == 10
    assert set(range(10)) <= set(seen)


async def test_one_evaluation_has_its_turn_in_each_round_however_many_there_are() -> None:
    made: list[int] = []
    evaluations = [asyncio.ensure_future(Turns(Clock()).run(counted, 50, made)) for _ in range(10)]
    # All have begun.
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
    assert await turns.run(counted, 10, []) == 45
    assert turns.pauses == 0


def test_outside_of_a_turn_a_pause_is_nothing_and_waiting_is_left_to_the_caller() -> None:
    assert counted(3, []) == 3
    assert wait(None) is False


async def test_what_an_evaluation_raises_is_raised() -> None:
    def fail() -> None:
        pause()
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - it has no text
        await Turns(Clock()).run(fail)


async def test_cancellation_ends_an_evaluation_where_it_stands() -> None:
    made: list[int] = []
    ended = []

    def endless() -> None:
        try:
            while True:
                counted(1, made)
        finally:
            ended.append(len(made))

    task = asyncio.ensure_future(Turns(Clock()).run(endless))
    while len(made) < 3:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [len(made)]


async def test_what_is_called_at_a_pause_can_end_the_evaluation() -> None:
    def leave() -> None:
        raise KeyError

    made: list[int] = []
    with pytest.raises(KeyError):
        await Turns(Clock(), leave).run(counted, 10, made)
    assert made == []


async def test_an_answer_of_another_process_is_waited_for_while_others_run() -> None:
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
