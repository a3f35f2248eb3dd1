"""QuickJS contexts: each with its own heap, stack and time limit, and no object of the program inside.

Everything crosses as text. No Python object is passed in, so a script has nothing to call or to keep.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from typing import cast

import quickjs

from asterism.scripts.limits import ScriptLimits
from asterism.scripts.sources import function_prelude, script_prelude

# Answer of a batch of calls without results: see `udf.js`.
NO_RESULTS = "[[]]"


class EngineStop(Enum):
    """Reason for which the engine itself stopped a script."""

    TIME = "time"
    MEMORY = "memory"
    BROKEN = "broken"


class _Engine:
    """The few used calls of QuickJS."""

    def __init__(self, prelude: str, limits: ScriptLimits) -> None:
        self._context = quickjs.Context()
        self._context.set_memory_limit(limits.memory_bytes_max)
        self._context.set_max_stack_size(limits.stack_bytes_max)
        self._port = self._context.eval(prelude)

    def function(self, name: str) -> Callable[[str], object]:
        return cast("Callable[[str], object]", self._port(name))

    def limit_time(self, cpu_seconds: float) -> None:
        """Limit each further call. The limit is in processor time of the process."""
        self._context.set_time_limit(cpu_seconds)

    def run_job(self) -> bool:
        """Run one pending promise reaction; False if none is pending."""
        return bool(self._context.execute_pending_job())


# Exceptions of the binding: its own, MemoryError, and ValueError for text that is not Unicode.
_ENGINE_ERRORS = (quickjs.JSException, MemoryError, ValueError)


def _stopped_by(error: Exception) -> EngineStop:
    """Return the reason of an error. Scripts' exceptions are caught inside; only the engine's own errors come here."""
    text = str(error)
    if text.startswith("InternalError: interrupted"):
        return EngineStop.TIME
    if text.startswith(("InternalError: out of memory", "null")):
        return EngineStop.MEMORY
    return EngineStop.BROKEN


class Sandbox:
    """A context with the service's server-side API, for one run."""

    def __init__(self, limits: ScriptLimits) -> None:
        self._engine = _Engine(script_prelude(), limits)
        self._enter = self._engine.function("enter")
        self._collect = self._engine.function("collect")
        self._output = self._engine.function("output")

    def turn(self, message: str, *, cpu_seconds: float) -> str | EngineStop:
        """Pass `message` to the script, run it until it waits, and return its answer.

        An interruption inside a promise is swallowed by the promise, so the time is checked again after each step.
        """
        ends_at = time.process_time() + cpu_seconds
        try:
            self._engine.limit_time(cpu_seconds)
            self._enter(message)
            while self._has_time(ends_at) and self._engine.run_job():
                pass
            answer = str(self._collect("")) if self._has_time(ends_at) else EngineStop.TIME
        except _ENGINE_ERRORS as error:
            return _stopped_by(error)
        return answer if self._has_time(ends_at) else EngineStop.TIME

    def output(self, side: str) -> bytes:
        """Return the body of the "request" or the "response", as JSON text, after the last turn."""
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

    def compile(self, source: str) -> str | EngineStop:
        """Compile the function. Return an empty text, or "!" and the error."""
        self._source = source
        try:
            return str(self._compile(source))
        except _ENGINE_ERRORS as error:
            return _stopped_by(error)

    def call(self, arguments: str) -> str | EngineStop:
        """Return the result as JSON text, empty for undefined; "!" and the message for an exception."""
        try:
            return str(self._call(arguments))
        except _ENGINE_ERRORS as error:
            self._rebuild()
            return _stopped_by(error)

    def call_many(self, batch: str) -> str:
        """Return the results of the first calls of a batch, as `udf.js` writes them; none if the engine stopped."""
        try:
            return str(self._call_many(batch))
        except _ENGINE_ERRORS:
            self._rebuild()
            return NO_RESULTS

    def _rebuild(self) -> None:
        """Replace the context: an interrupted one may be in any state, and one with a full heap will fail again."""
        self._build()
        self.compile(self._source)

    def _build(self) -> None:
        engine = _Engine(function_prelude(), self._limits)
        engine.limit_time(self._limits.udf_call_seconds)
        self._compile = engine.function("compile")
        self._call = engine.function("call")
        self._call_many = engine.function("callMany")
