"""The script host: a process that runs JavaScript and nothing else.

It holds no data, no keys and no files, and before the first script it gives up all access to them (`wall`). If a script
breaks the engine (QuickJS does not survive every full heap) or stays in a built-in that no time limit interrupts, this
process ends, and the server starts another.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from contextlib import suppress

from asterism.scripts import frames
from asterism.scripts.limits import ScriptLimits
from asterism.scripts.sandbox import EngineStop, FunctionSandbox, Sandbox
from asterism.scripts.sources import function_prelude
from asterism.scripts.wall import build_wall

_CALL_BYTE = frames.CALL[0]


class ScriptHost:
    def __init__(self, *, reads_from: int, writes_to: int, limits: ScriptLimits) -> None:
        self._reads_from = reads_from
        self._writes_to = writes_to
        self._limits = limits
        self._sandbox: Sandbox | None = None
        # Reading the prelude takes longer than a short script, so the sandbox of the next run is made in advance.
        self._spare: Sandbox | None = None
        self._call_seconds_max = limits.udf_call_seconds + limits.overrun_grace_seconds
        self._functions: list[FunctionSandbox] = []

    def warm_up(self) -> None:
        """Do the work that needs files, while they can still be opened."""
        self._spare = Sandbox(self._limits)
        function_prelude()
        # The machine's time zone, which the engine's dates use, is read once.
        time.tzset()
        time.localtime()

    def serve(self) -> None:
        """Answer requests until the server is gone."""
        while (payload := frames.receive_blocking(self._reads_from)) is not None:
            if payload[0] == _CALL_BYTE:
                # A query makes a call for each item, and waits.
                frames.send_blocking(self._writes_to, self._call(payload))
                continue
            answer = self._answer(payload)
            frames.send_blocking(self._writes_to, frames.framed(*answer))
            if self._sandbox is not None and not _is_waiting(answer):
                self._sandbox = None
                self._spare = Sandbox(self._limits)

    def _answer(self, payload: bytes) -> tuple[bytes, ...]:
        match payload[:1]:
            case frames.START:
                # Drops the sandbox of a run that the server gave up.
                self._sandbox = self._spare or Sandbox(self._limits)
                self._spare = None
                return self._turn(payload)
            case frames.TURN:
                return self._turn(payload)
            case frames.CALLS:
                return self._call_many(payload)
            case _:
                return self._compile(payload[1:])

    def _turn(self, payload: bytes) -> tuple[bytes, ...]:
        assert self._sandbox is not None
        seconds, text = frames.split_seconds(payload)
        with _Alarm(seconds + self._limits.overrun_grace_seconds):
            answer = self._sandbox.turn(text.decode(), cpu_seconds=seconds)
            if isinstance(answer, EngineStop):
                return frames.STOPPED, answer.value.encode()
            if not answer.startswith('{"state":"done"'):
                return frames.ANSWER, answer.encode()
            request, response = self._sandbox.output("request"), self._sandbox.output("response")
        return frames.FINISHED, frames.finished_bytes(answer.encode(), request=request, response=response)

    def _compile(self, text: bytes) -> tuple[bytes, ...]:
        signal.setitimer(signal.ITIMER_PROF, self._call_seconds_max)
        function = FunctionSandbox(self._limits)
        answer = function.compile(text.decode())
        if isinstance(answer, EngineStop):
            return frames.STOPPED, answer.value.encode()
        if answer:
            return frames.REFUSED, answer[1:].encode()
        self._functions.append(function)
        return frames.ANSWER, frames.number_bytes(len(self._functions) - 1)

    def _call(self, payload: bytes) -> bytes:
        number, text = frames.split_number(payload)
        # The timer counts processor time, which does not pass between calls, so it need not be canceled.
        signal.setitimer(signal.ITIMER_PROF, self._call_seconds_max)
        answer = self._functions[number].call(text.decode())
        if isinstance(answer, EngineStop):
            return frames.framed(frames.STOPPED, answer.value.encode())
        return frames.framed_answer(answer.encode())

    def _call_many(self, payload: bytes) -> tuple[bytes, ...]:
        number, text = frames.split_number(payload)
        signal.setitimer(signal.ITIMER_PROF, self._call_seconds_max)
        return frames.ANSWER, self._functions[number].call_many(text.decode()).encode()


def _is_waiting(answer: tuple[bytes, ...]) -> bool:
    return answer[0] == frames.ANSWER and answer[1].startswith(b'{"state":"waiting"')


class _Alarm:
    """End this process when its time is up: the signal's default action, which needs no cooperation."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main() -> None:
    """Run a host. `HostProcess` passes the descriptors to read from and write to, and the limits as JSON."""
    for alarm in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(alarm, signal.SIG_DFL)
    # The server handles the interrupt; its hosts end when their input ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limits = ScriptLimits(**json.loads(sys.argv[3]))
    reads_from, writes_to = int(sys.argv[1]), int(sys.argv[2])
    host = ScriptHost(reads_from=reads_from, writes_to=writes_to, limits=limits)
    host.warm_up()
    for missing in build_wall(reads_from=reads_from, writes_to=writes_to):
        # Without the logging module, which takes a tenth of a host's start-up time.
        sys.stderr.write(f"WARNING asterism.scripts: scripts run without {missing}\n")
    # The server may end while a script runs; the answer is then dropped.
    with suppress(BrokenPipeError, ConnectionResetError):
        host.serve()
    # The interpreter's finalization is neither useful nor allowed here.
    os._exit(0)


if __name__ == "__main__":
    main()
