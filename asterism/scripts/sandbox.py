"""One QuickJS context: a heap, a stack and a clock of its own, and nothing of the program inside.

Everything crosses as text. No Python object is handed in, so there is nothing that a script could call or hold on to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from typing import cast

import quickjs

from asterism.scripts.limits import ScriptLimits
from asterism.scripts.sources import function_prelude, script_prelude

# What a bunch of calls answers when it has no results: see `udf.js`.
NO_RESULTS = "[[]]"


class Stopped(Enum):
    """What the engine itself put an end to."""

    TIME = "time"
    MEMORY = "memory"
    BROKEN = "broken"


class _Engine:
    """The few calls that are made of QuickJS."""

    def __init__(self, prelude: str, limits: ScriptLimits) -> None:
        self._context = quickjs.Context()
        self._context.set_memory_limit(limits.memory_bytes_max)
        self._context.set_max_stack_size(limits.stack_bytes_max)
        self._port = self._context.eval(prelude)

    def function(self, name: str) -> Callable[[str], object]:
        return cast("Callable[[str], object]", self._port(name))

    def limit_time(self, cpu_seconds: float) -> None:
        """For each call from now on. It is the processor time of the process that is counted."""
        self._context.set_time_limit(cpu_seconds)

    def run_job(self) -> bool:
        """Runs one waiting promise reaction; False when none is left."""
        return bool(self._context.execute_pending_job())


# What the binding raises: its own exceptions, MemoryError, and ValueError for text that is not Unicode.
_ENGINE_ERRORS = (quickjs.JSException, MemoryError, ValueError)


def _stopped_by(error: Exception) -> Stopped:
    """Why a call did not return. What a script throws is caught inside; only the engine's own errors arrive here."""
    text = str(error)
    if text.startswith("InternalError: interrupted"):
        return Stopped.TIME
    if text.startswith(("InternalError: out of memory", "null")):
        return Stopped.MEMORY
    return Stopped.BROKEN


class Sandbox:
    """A context with the service's server-side API, for one run."""

    def __init__(self, limits: ScriptLimits) -> None:
        self._engine = _Engine(script_prelude(), limits)
        self._enter = self._engine.function("enter")
        self._collect = self._engine.function("collect")
        self._output = self._engine.function("output")

    def turn(self, message: str, *, cpu_seconds: float) -> str | Stopped:
        """Hands `message` to the script, lets it run until it waits, and returns what it says.

        An interruption inside a promise is swallowed by the promise, so the time is looked at again after each step.
        """
        ends_at = time.process_time() + cpu_seconds
        try:
            self._engine.limit_time(cpu_seconds)
            self._enter(message)
            while self._has_time(ends_at) and self._engine.run_job():
                pass
            answer = str(self._collect("")) if self._has_time(ends_at) else Stopped.TIME
        except _ENGINE_ERRORS as error:
            return _stopped_by(error)
        return answer if self._has_time(ends_at) else Stopped.TIME

    def output(self, side: str) -> bytes:
        """The body of the "request" or the "response", as JSON text, after the last turn."""
        return str(self._output(side)).encode()

    def _has_time(self, ends_at: float) -> bool:
        remaining = ends_at - time.process_time()
        if remaining > 0:
            self._engine.limit_time(remaining)
        return remaining > 0


class FunctionSandbox:
    """A context with one user-defined function, for many calls."""

    def __init__(self, limits: ScriptLimits) -> None:
        self._limits = limits
        self._source = ""
        self._build()

    def compile(self, source: str) -> str | Stopped:
        """Empty when all is well; otherwise "!" and what is wrong."""
        self._source = source
        try:
            return str(self._compile(source))
        except _ENGINE_ERRORS as error:
            return _stopped_by(error)

    def call(self, arguments: str) -> str | Stopped:
        """The result as JSON text, empty for undefined; "!" and what is wrong for an exception."""
        try:
            return str(self._call(arguments))
        except _ENGINE_ERRORS as error:
            self._rebuild()
            return _stopped_by(error)

    def call_many(self, bunch: str) -> str:
        """The results of the first calls of a bunch, as `udf.js` tells them; none when the engine stopped one."""
        try:
            return str(self._call_many(bunch))
        except _ENGINE_ERRORS:
            self._rebuild()
            return NO_RESULTS

    def _rebuild(self) -> None:
        """An interrupted context may be in any state, and one with a full heap will fail again."""
        self._build()
        self.compile(self._source)

    def _build(self) -> None:
        engine = _Engine(function_prelude(), self._limits)
        engine.limit_time(self._limits.udf_call_seconds)
        self._compile = engine.function("compile")
        self._call = engine.function("call")
        self._call_many = engine.function("callMany")
