"""Evaluation in turns: work of a query that yields to other requests in the middle of an expression.

An expression is a tree of plain function calls, and a row of it may need a million rows of a subquery. No call in that
tree is a coroutine: that would cost every ordinary query a multiple of its time. Instead the whole evaluation runs on a
stack of its own (a greenlet), which `pause` leaves for the event loop when its turn has lasted long enough and which is
resumed in the next one. Outside of a turn `pause` does nothing. docs/decisions/0020-evaluation-in-turns.md says why.
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

# The time that an evaluation may hold the event loop before it yields.
TURN_SECONDS: Final = 0.005
# The pause of an evaluation that waits for an event without a notification.
_REST_SECONDS: Final = 0.001


class _Evaluation:
    """An evaluation under way, with a stack of its own."""

    __slots__ = ("_stack", "clock", "has_to_rest", "readable", "turn_ends_at")

    def __init__(self, function: Callable[..., object], clock: Callable[[], float]) -> None:
        self._stack = greenlet(function)
        self._stack.evaluation = self
        self.clock = clock
        self.turn_ends_at = 0.0
        # The events it waits for besides its next turn: a readable descriptor, or the end of a pause.
        self.readable: int | None = None
        self.has_to_rest = False

    @property
    def has_ended(self) -> bool:
        return bool(self._stack.dead)

    def resume(self, *arguments: object, **named: object) -> object:
        """Run it until it leaves its stack; return its result, if it has ended."""
        self.turn_ends_at = self.clock() + TURN_SECONDS
        result: object = self._stack.switch(*arguments, **named)
        return result

    def leave(self) -> None:
        """Leave the evaluation's own stack, on which this is called, until it is resumed."""
        self._stack.parent.switch()

    def end(self) -> None:
        if not self.has_ended:
            self._stack.throw(GreenletExit)
        # The stack and this object refer to each other.
        self._stack.evaluation = None


class _Queue:
    """Evaluations that wait for their next turn. One of them runs in each round of the event loop, so that other ready
    callbacks wait for one turn and not for those of all queries."""

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
        # Places of evaluations that were cancelled are skipped.
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()
        if self._waiting:
            self._waiting.popleft().set_result(None)
            loop.call_soon(self._move, loop)
        else:
            self._is_moving = False


_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()


class Turns:
    """The evaluations of one page, run one after the other.

    `on_pause` is called after each turn that was not the last, and may raise to end the evaluation.
    """

    def __init__(self, monotonic_seconds: Callable[[], float], on_pause: Callable[[], None] | None = None) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._on_pause = on_pause
        # The number of times that evaluations yielded, and the seconds that they took themselves.
        self.pauses = 0
        self.seconds = 0.0

    async def run(
        self, function: Callable[_Parameters, _Result], *arguments: _Parameters.args, **named: _Parameters.kwargs
    ) -> _Result:
        """Run a function in turns and return its result; cancellation ends it in the middle."""
        evaluation = _Evaluation(function, self._monotonic_seconds)
        try:
            result = self._take_turn(evaluation, *arguments, **named)
            while not evaluation.has_ended:
                await self._let_others_run(evaluation)
                result = self._take_turn(evaluation)
        finally:
            evaluation.end()
        return cast(_Result, result)

    def _take_turn(self, evaluation: _Evaluation, *arguments: object, **named: object) -> object:
        begun = self._monotonic_seconds()
        try:
            return evaluation.resume(*arguments, **named)
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
    """Yield to other requests if the turn of this evaluation has lasted long enough."""
    evaluation = _current()
    if evaluation is not None and evaluation.clock() >= evaluation.turn_ends_at:
        evaluation.leave()


def wait(descriptor: int | None) -> bool:
    """Yield to other requests until the descriptor is readable, or, without one, for a moment. Return False outside of
    a turn: the caller has to block."""
    evaluation = _current()
    if evaluation is None:
        return False
    evaluation.readable, evaluation.has_to_rest = descriptor, descriptor is None
    evaluation.leave()
    return True


def _current() -> _Evaluation | None:
    """Return the evaluation on whose stack this is called."""
    return getattr(getcurrent(), "evaluation", None)
