"""An event loop in virtual time: when nothing is ready, time jumps to the next timer.

Sleeps, timeouts and `loop.time()` follow it, and so do the clocks that `virtual_clock` makes for the program. A test
that waits an hour takes a moment, and the same steps on every machine. Threads and sockets do not follow it.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NoReturn, ParamSpec, TypeVar

from asterism.clock import Clock

# Neither is 0, so that nothing passes for "no time".
START_SECONDS = 1_000.0
WALL_START_SECONDS = 1_700_000_000.0
# Turns of the loop in one moment of virtual time; a program that takes more of them does not come to rest.
TURNS_MAX = 1_000_000

P = ParamSpec("P")
T = TypeVar("T")


class VirtualTimeError(AssertionError):
    """A test that cannot go on in virtual time; the text names the line where every task waits."""


class Deadlock(VirtualTimeError):
    """Nothing is ready and no timer is set: the tasks would wait forever."""


class Livelock(VirtualTimeError):
    """Callbacks call for each other and time never passes."""


class OutOfTime(VirtualTimeError):
    """More virtual time has passed than the test allows."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the module. `seconds_max` is the virtual time that may pass before `OutOfTime` is raised."""

    def __init__(self, *, seconds_max: float | None = None) -> None:
        self._now_seconds = START_SECONDS
        self._end_seconds = None if seconds_max is None else START_SECONDS + seconds_max
        self._turns = 0
        super().__init__(_VirtualSelector(self._pass_time))

    def time(self) -> float:
        return self._now_seconds

    def run_in_executor(self, *_: object) -> NoReturn:
        raise RuntimeError("a thread does not follow virtual time; run the test on a loop in real time")

    def _pass_time(self, timeout_seconds: float | None) -> None:
        """Replace a wait for events: None is a wait without an end, 0 a poll while callbacks are ready."""
        if timeout_seconds is None:
            raise Deadlock(f"nothing is ready and no timer is set; {self.waiting()}")
        if timeout_seconds <= 0:
            self._turns += 1
            if self._turns > TURNS_MAX:
                raise Livelock(f"the loop took {TURNS_MAX} turns in one moment; {self.waiting()}")
            return
        self._turns = 0
        self._now_seconds += timeout_seconds
        if self._end_seconds is not None and self._now_seconds > self._end_seconds:
            raise OutOfTime(f"{self._now_seconds - START_SECONDS:.0f} virtual seconds have passed; {self.waiting()}")

    def waiting(self) -> str:
        """Name every task with the line where it waits."""
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        lines = [f"{task.get_name()} waits in {_place(task.get_coro())}" for task in tasks]
        return "\n  ".join(["these tasks wait:", *lines]) if lines else "no task waits"


class _VirtualSelector(selectors.SelectSelector):
    """Selector that waits for time alone, which it passes on."""

    def __init__(self, pass_time: Callable[[float | None], None]) -> None:
        super().__init__()
        self._pass_time = pass_time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._pass_time(timeout)
        return []


def _place(awaited: object) -> str:
    """Return the innermost line that a suspended coroutine has come to."""
    place = repr(awaited)
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None:
            place = f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_qualname})"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return place


def run_virtual(main: Coroutine[Any, Any, T], *, seconds_max: float | None = None) -> T:
    """Run a coroutine on a loop of its own in virtual time, as `asyncio.run` does in real time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seconds_max=seconds_max)) as runner:
        return runner.run(main)


def in_virtual_time(test: Callable[P, Awaitable[T]]) -> Callable[P, T]:
    """Make a test that is a coroutine run in virtual time. It may use fixtures that are not coroutines themselves."""

    @functools.wraps(test)
    def run(*args: P.args, **named: P.kwargs) -> T:
        async def main() -> T:
            return await test(*args, **named)

        return run_virtual(main())

    return run


def virtual_clock(
    loop: asyncio.AbstractEventLoop, *, wall_offset_seconds: float = 0.0, monotonic_offset_seconds: float = 0.0
) -> Clock:
    """Return a clock for the program that follows a loop; two machines of one test may have their own offsets."""
    return Clock(
        wall_seconds=lambda: WALL_START_SECONDS + loop.time() + wall_offset_seconds,
        monotonic_seconds=lambda: loop.time() + monotonic_offset_seconds,
    )
