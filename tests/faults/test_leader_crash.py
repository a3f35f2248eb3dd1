"""The process that leads is killed, or stopped for a while, in the middle of a split; another one writes all the time.

The other one finishes the split. Nothing acknowledged is lost, nothing is doubled, the statistics agree with the data,
and no write of the other one fails. A leader that goes on after it was stopped harms nothing, and serves again.
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

from asterism.keyspaces.reshape_job import Step
from tests.faults.test_reshape_crash import ROOT, Told, numbers_found
from tests.support.world import ACCOUNT, open_world

WAIT_SECONDS_MAX = 60.0
# LMDB has one writer: a process that was stopped in the middle of a commit holds up all others.
STUCK_SECONDS = 4.0


class Gateway:
    """One of the processes, and every line it has said."""

    def __init__(self, directory: Path, role: str, number: signal.Signals, step: Step) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.gateway_process", str(directory), role, number.name, step.name],
            cwd=ROOT,
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

    def until(self, wanted: str, *, stopped: Gateway | None = None) -> None:
        """Reads on to a line; whenever there is none for a while, lets the process that is stopped go on a little."""
        give_up_at = time.monotonic() + WAIT_SECONDS_MAX
        while wanted not in self.lines:
            try:
                self.lines.append(self._new.get(timeout=STUCK_SECONDS))
            except queue.Empty:
                assert self.process.poll() is None, self._errors.read_text()
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
        """Asks it to end, and returns what it has written to standard error."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(WAIT_SECONDS_MAX)
        self._reader.join(WAIT_SECONDS_MAX)
        while not self._new.empty():
            self.lines.append(self._new.get())
        return self._errors.read_text()


def told_by(*gateways: Gateway) -> Told:
    told = Told()
    for gateway in gateways:
        for line in gateway.lines:
            told.read(line)
    return told


async def check(directory: Path, told: Told) -> None:
    async with open_world(directory) as world:
        container = world.store.container_for_items(ACCOUNT, "d", "c")
        async with asyncio.timeout(60):
            while world.catalog.garbage or world.reshaping.progress:
                await asyncio.sleep(0.02)
        found = await numbers_found(world)
        assert sum(name[1].startswith("old-") for name in found) == 400
        written = {name: number for name, number in found.items() if not name[1].startswith("old-")}
        wanted = {name: number for name, number in told.sure.items() if number is not None}
        for name, attempted in told.open.items():
            assert found.get(name) in (attempted, told.sure.get(name))
            written.pop(name, None)
            wanted.pop(name, None)
        assert written == wanted
        await world.check_statistics(container)
        assert len(container.keyspace.record.map.ranges) == 2


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
    ids=lambda one: one.name,
)
def test_another_process_finishes_what_the_leader_has_begun(tmp_path: Path, number: signal.Signals, step: Step) -> None:
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
            leader.until("wrote 1 k from-the-old-leader")
            assert leader.nudges or "deposed" in leader.lines
        leader.end()
        errors = follower.end()
        assert follower.lines[-1] == "ended", errors
    finally:
        for gateway in (leader, follower):
            if gateway is not None:
                gateway.process.kill()
                gateway.process.wait()
    asyncio.run(check(tmp_path, told_by(leader, follower)))
