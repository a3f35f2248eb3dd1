"""The leader is killed, or stopped for a while, in the middle of a split; another process writes all the time.

The other process finishes the split. Nothing acknowledged is lost, nothing is doubled, the statistics agree with the
data, and no write of the other process fails. A leader that is resumed after it was stopped harms nothing, and serves
again.
"""

from __future__ import annotations

import asyncio
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from asterism.keyspaces.reshaping.job import Step
from tests.faults.test_reshape_crash import Outcomes, numbers_found
from tests.support.server import PROJECT
from tests.support.world import ACCOUNT, open_world

WAIT_SECONDS_MAX = 180.0
# LMDB has one writer: a process that was stopped in the middle of a commit holds up all others.
STUCK_SECONDS = 4.0


class Gateway:
    """One of the processes, and every line it has printed."""

    def __init__(self, directory: Path, role: str, number: signal.Signals, step: Step) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.gateway_process", str(directory), role, number.name, step.name],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(directory / f"{role}.errors").open("w"),
            text=True,
        )
        self._errors = directory / f"{role}.errors"
        self.lines: list[str] = []
        self.nudges = 0
        self._new: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._new.put(line.strip())

    def until(self, wanted: str, *, stopped: Gateway | None = None, is_resumed: bool = False) -> None:
        """Read on to a line; when no line comes for a while, let the process that is stopped run a little. A process
        that `is_resumed` may have stopped itself only after it was resumed."""
        give_up_at = time.monotonic() + WAIT_SECONDS_MAX
        while wanted not in self.lines:
            try:
                self.lines.append(self._new.get(timeout=STUCK_SECONDS))
            except queue.Empty:
                assert self.process.poll() is None, self._errors.read_text()
                if is_resumed:
                    self.process.send_signal(signal.SIGCONT)
                if stopped is not None:
                    stopped.nudges += 1
                    stopped.process.send_signal(signal.SIGCONT)
                    time.sleep(0.02)
                    stopped.process.send_signal(signal.SIGSTOP)
            assert time.monotonic() < give_up_at, self.lines[-5:]

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()

    def end(self) -> str:
        """Ask the process to end, and return its standard error."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(WAIT_SECONDS_MAX)
        self._reader.join(WAIT_SECONDS_MAX)
        while not self._new.empty():
            self.lines.append(self._new.get())
        return self._errors.read_text()


def outcomes_of(*gateways: Gateway) -> Outcomes:
    outcomes = Outcomes()
    for gateway in gateways:
        for line in gateway.lines:
            outcomes.read(line)
    return outcomes


async def check(directory: Path, outcomes: Outcomes) -> None:
    async with open_world(directory) as world:
        container = world.store.container_for_items(ACCOUNT, "d", "c")
        async with asyncio.timeout(180):
            while world.catalog.garbage or world.reshaper.progress:
                await asyncio.sleep(0.02)
        found = await numbers_found(world)
        assert sum(name[1].startswith("old-") for name in found) == 400
        written = {name: number for name, number in found.items() if not name[1].startswith("old-")}
        wanted = {name: number for name, number in outcomes.sure.items() if number is not None}
        for name, attempted in outcomes.open.items():
            assert found.get(name) in (attempted, outcomes.sure.get(name))
            written.pop(name, None)
            wanted.pop(name, None)
        assert written == wanted
        await world.check_statistics(container)
        assert len(container.keyspace.record.map.ranges) == 2


# K13 of asterism/keyspaces/DESIGN.md.
@pytest.mark.parametrize(
    ("number", "step"),
    [
        (signal.SIGKILL, Step.JOURNALING),
        (signal.SIGKILL, Step.COPYING),
        (signal.SIGKILL, Step.SEALED),
        (signal.SIGKILL, Step.TARGETS_OPENED),
        (signal.SIGSTOP, Step.PLANNED),
        (signal.SIGSTOP, Step.COPYING),
        (signal.SIGSTOP, Step.SEALED),
        (signal.SIGSTOP, Step.REPLAYED),
        (signal.SIGSTOP, Step.TARGETS_OPENED),
    ],
    ids=lambda value: value.name,
)
def test_another_process_finishes_the_split_of_the_leader(tmp_path: Path, number: signal.Signals, step: Step) -> None:
    leader = Gateway(tmp_path, "leader", number, step)
    follower = None
    try:
        leader.until("ready")
        follower = Gateway(tmp_path, "follower", number, step)
        follower.until("ready")
        leader.go_on()
        follower.until("split", stopped=leader if number is signal.SIGSTOP else None)
        if number is signal.SIGSTOP:
            leader.process.send_signal(signal.SIGCONT)
            leader.until("wrote 1 k from-the-old-leader", is_resumed=True)
            assert leader.nudges or "deposed" in leader.lines
        leader.end()
        errors = follower.end()
        assert follower.lines[-1] == "ended", errors
    finally:
        for gateway in (leader, follower):
            if gateway is not None:
                gateway.process.kill()
                gateway.process.wait()
    asyncio.run(check(tmp_path, outcomes_of(leader, follower)))
