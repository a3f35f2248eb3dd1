"""One simulation: gateways, nodes, clients and operators from a seed, in one event loop and in virtual time.

`simulate(seed)` raises `Broken` when a rule does not hold. The same seed takes the same steps every time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from asterism.keyspaces.reshaping import conductor, copier
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.limits import MIB
from tests.simulation.gateway import create_task
from tests.simulation.scenario import Scenario
from tests.simulation.trace import Trace
from tests.support.virtual_time import START_SECONDS, VirtualLoop

# Virtual time for everything together.
SECONDS_MAX = 1_200.0


class Broken(AssertionError):
    """A rule does not hold. The text says which, what happened before, and how to see it again."""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a simulation in which every rule held."""

    # The digest of all events, in order.
    digest: str
    operations: int
    jobs: int
    starts: int
    virtual_seconds: float
    lines: tuple[str, ...]


def simulate(seed: int, *, keeps_all_lines: bool = False) -> Report:
    with (
        _small_pages(),
        _errors_in_log() as errors,
        asyncio.Runner(loop_factory=lambda: VirtualLoop(seconds_max=SECONDS_MAX)) as runner,
    ):
        loop = runner.get_loop()
        trace = Trace(lambda: loop.time() - START_SECONDS, keeps_all=keeps_all_lines)
        try:
            report = runner.run(_play(seed, trace))
            assert not errors, f"the program has logged an error: {errors[0]}"
        except Exception as error:
            lines = "\n  ".join([f"seed {seed}: {str(error) or repr(error)}", *trace.lines])
            raise Broken(f"{lines}\nSee it again: make simulate SEED={seed}") from error
        return report


async def _play(seed: int, trace: Trace) -> Report:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(create_task)  # type: ignore[arg-type]  # declared for any awaitable; tasks are of coroutines
    scenario = Scenario(Random(seed), trace)
    playing = asyncio.create_task(scenario.play())
    ends: list[asyncio.Future[Any]] = [playing, scenario.broken]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if scenario.broken.done():
            raise AssertionError(scenario.broken.result())
        playing.result()
    finally:
        playing.cancel()
        scenario.gateways.end()
    return Report(
        trace.digest,
        operations=len(scenario.history.operations),
        jobs=scenario.inspector.published,
        starts=scenario.gateways.starts,
        virtual_seconds=loop.time() - START_SECONDS,
        lines=tuple(trace.lines),
    )


@contextlib.contextmanager
def _small_pages() -> Iterator[None]:
    """Copy and catch up in pages of a few entries, so that small partitions have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copier, "COPIED_ENTRIES", SliceSize(7, MIB))
        patch.setattr(copier, "_JOURNAL_PAGE_ENTRIES", 3)
        patch.setattr(conductor, "_CATCH_UP_BATCHES", 2)
        yield


class _ErrorsInLog(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(self.format(record))


@contextlib.contextmanager
def _errors_in_log() -> Iterator[list[str]]:
    """Collect the errors that the program logs. Its warnings report faults, of which there are many here."""
    handler, log = _ErrorsInLog(), logging.getLogger("asterism")
    propagates = log.propagate
    log.propagate = False
    log.addHandler(handler)
    try:
        yield handler.messages
    finally:
        log.removeHandler(handler)
        log.propagate = propagates
