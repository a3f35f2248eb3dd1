"""Evaluation in turns: work of a query that is suspended in the middle of an expression, so that others are answered.

An expression is a tree of plain function calls, and a row of it may need a million rows of a subquery. No call in that
tree is a coroutine: that would cost every ordinary query a multiple of its time. Instead the whole evaluation runs on a
stack of its own (a greenlet), which `pause` leaves for the event loop when its turn has lasted long enough and which is
entered again in the next one. Outside of a turn `pause` does nothing. docs/decisions/0020-evaluation-in-turns.md says
why.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar, cast
from weakref import WeakKeyDictionary

from greenlet import GreenletExit, getcurrent, greenlet

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

# How long an evaluation may hold the event loop before others have their turn.
TURN_SECONDS: Final = 0.005
# How long an evaluation rests that waits for something which nothing will announce.
_REST_SECONDS: Final = 0.001


class _Evaluation:
    """An evaluation under way, with a stack of its own."""

    __slots__ = ("_stack", "clock", "has_to_rest", "readable", "turn_ends_at")

    def __init__(self, function: Callable[..., object], clock: Callable[[], float]) -> None:
        self._stack = greenlet(function)
        self._stack.evaluation = self
        self.clock = clock
        self.turn_ends_at = 0.0
        # What it waits for besides its next turn: a descriptor that can be read, or that time passes.
        self.readable: int | None = None
        self.has_to_rest = False

    @property
    def is_over(self) -> bool:
        return bool(self._stack.dead)

    def go_on(self, *arguments: object, **named: object) -> object:
        """Runs it until it leaves its stack; what it returned, if it is over."""
        self.turn_ends_at = self.clock() + TURN_SECONDS
        result: object = self._stack.switch(*arguments, **named)
        return result

    def leave(self) -> None:
        """Called on its own stack, which is left until it goes on."""
        self._stack.parent.switch()

    def end(self) -> None:
        if not self.is_over:
            self._stack.throw(GreenletExit)
        # The stack and this refer to each other.
        self._stack.evaluation = None


class _Queue:
    """Evaluations that wait for their next turn. One of them has it in each round of the event loop, so that what else
    is ready waits for one turn and not for those of all queries."""

    __slots__ = ("__weakref__", "_is_moving", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_moving = False

    async def next_turn(self) -> None:
        loop = asyncio.get_running_loop()
        place = loop.create_future()
        self._waiting.append(place)
        if not self._is_moving:
            self._is_moving = True
            loop.call_soon(self._move, loop)
        await place

    def _move(self, loop: asyncio.AbstractEventLoop) -> None:
        # Places of evaluations that were cancelled are passed over.
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()
        if self._waiting:
            self._waiting.popleft().set_result(None)
            loop.call_soon(self._move, loop)
        else:
            self._is_moving = False


_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()


class Turns:
    """Runs the evaluations of one page, one after the other.

    `on_pause` is called after each turn that was not the last, and may raise to end the evaluation.
    """

    def __init__(self, monotonic_seconds: Callable[[], float], on_pause: Callable[[], None] | None = None) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._on_pause = on_pause
        # How often the event loop was given back, and the seconds that the evaluations themselves took.
        self.pauses = 0
        self.seconds = 0.0

    async def run(
        self, function: Callable[_Parameters, _Result], *arguments: _Parameters.args, **named: _Parameters.kwargs
    ) -> _Result:
        """What the function returns or raises; cancellation ends it where it stands."""
        evaluation = _Evaluation(function, self._monotonic_seconds)
        try:
            result = self._take_turn(evaluation, *arguments, **named)
            while not evaluation.is_over:
                await self._let_others_run(evaluation)
                result = self._take_turn(evaluation)
        finally:
            evaluation.end()
        return cast(_Result, result)

    def _take_turn(self, evaluation: _Evaluation, *arguments: object, **named: object) -> object:
        begun = self._monotonic_seconds()
        try:
            return evaluation.go_on(*arguments, **named)
        finally:
            self.seconds += self._monotonic_seconds() - begun

    async def _let_others_run(self, evaluation: _Evaluation) -> None:
        self.pauses += 1
        if evaluation.readable is not None:
            begun = self._monotonic_seconds()
            await _wait_readable(evaluation.readable)
            # Another process worked for this query meanwhile.
            self.seconds += self._monotonic_seconds() - begun
        else:
            if evaluation.has_to_rest:
                await asyncio.sleep(_REST_SECONDS)
            await _queues.setdefault(asyncio.get_running_loop(), _Queue()).next_turn()
        evaluation.readable, evaluation.has_to_rest = None, False
        if self._on_pause is not None:
            self._on_pause()


async def _wait_readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def announce() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(descriptor, announce)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


def pause() -> None:
    """Gives others their turn if this evaluation's is over."""
    evaluation = _current()
    if evaluation is not None and evaluation.clock() >= evaluation.turn_ends_at:
        evaluation.leave()


def wait(descriptor: int | None) -> bool:
    """Gives others their turn until the descriptor can be read, or without one for a moment. False outside of a turn:
    the caller has to block."""
    evaluation = _current()
    if evaluation is None:
        return False
    evaluation.readable, evaluation.has_to_rest = descriptor, descriptor is None
    evaluation.leave()
    return True


def _current() -> _Evaluation | None:
    """The evaluation on whose stack this is called."""
    return getattr(getcurrent(), "evaluation", None)
