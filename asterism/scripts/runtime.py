"""Runtime of scripts, turn by turn: a host runs the JavaScript, this process carries out its operations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from asterism.errors import MalformedRequest
from asterism.scripts import frames, udf
from asterism.scripts.dispatch import NotAnOperation, create_all, creates_from, operation_result, prepare
from asterism.scripts.limits import DEFAULT_SCRIPT_LIMITS, ScriptLimits
from asterism.scripts.operations import ScriptOperations
from asterism.scripts.processes import HostEnded, HostPool, HostProcess, HostsBusy
from asterism.scripts.results import FailureKind, ScriptFailed, ScriptFinished, ScriptSucceeded, TriggerSucceeded
from asterism.scripts.sandbox import EngineStop
from asterism.scripts.sources import expression_text, first_function_name
from asterism.values.json.text import dumps, loads

# Operations may complete without suspending; after this long a run yields to other tasks of the event loop.
YIELD_SECONDS = 0.005


class TriggerKind(Enum):
    PRE = "pre"
    POST = "post"


@dataclass(frozen=True, slots=True)
class ScriptScope:
    """The collection that a script belongs to: the only links it may use, and the quotas it may read."""

    self_link: str
    alt_link: str
    quota_usage: str = ""
    quota_max: str = ""


_Ending = ScriptFinished | ScriptFailed
_STOPPED = {
    EngineStop.TIME: ScriptFailed(FailureKind.OUT_OF_TIME, "The script exceeded its time limit and was stopped."),
    EngineStop.MEMORY: ScriptFailed(
        FailureKind.OUT_OF_MEMORY, "The script broke its sandbox, most likely by exceeding its memory limit."
    ),
    EngineStop.BROKEN: ScriptFailed(FailureKind.EXCEPTION, "The script left values that cannot be read."),
}


class ScriptRuntime:
    """The runtime of an event loop. Runs share nothing: each has a sandbox of its own, dropped when the run ends."""

    def __init__(
        self, limits: ScriptLimits = DEFAULT_SCRIPT_LIMITS, *, wait: udf.WaitForHost = lambda _descriptor: False
    ) -> None:
        """Create a runtime. `wait` lets other requests proceed during long calls of user-defined functions."""
        self._limits = limits
        self._hosts = HostPool(limits)
        self._functions = udf.FunctionHosts(limits, wait)

    def close(self) -> None:
        """End the idle hosts. Those of running scripts end with this process."""
        self._hosts.close()
        self._functions.close()

    async def run_stored_procedure(
        self,
        body: str,
        parameters: Sequence[object],
        *,
        operations: ScriptOperations,
        scope: ScriptScope,
        is_logging: bool = False,
    ) -> ScriptSucceeded | ScriptFailed:
        """Run a stored procedure. After a failure the operations have been rolled back; commit after success."""
        setup = self._setup(body, "procedure", scope, is_logging)
        setup |= {"parameters": list(parameters), "responseBody": ""}
        ending = await self._run(setup, operations)
        match ending:
            case ScriptFinished(response_body=response_body, log=log):
                return ScriptSucceeded(response_body, log)
            case ScriptFailed():
                return ending

    async def run_trigger(
        self,
        body: str,
        *,
        kind: TriggerKind,
        operation: str,
        request_body: object,
        response_body: object = None,
        operations: ScriptOperations,
        scope: ScriptScope,
        is_logging: bool = False,
    ) -> TriggerSucceeded | ScriptFailed:
        """Run a trigger. `operation` is the type that the script sees: "Create", "Replace", "Upsert" or "Delete".

        If the trigger fails, `operations` are rolled back to their state before it.
        """
        setup = self._setup(body, kind.value, scope, is_logging)
        setup |= {"parameters": [], "operationType": operation}
        setup |= {"requestBody": request_body, "responseBody": response_body}
        ending = await self._run(setup, operations)
        match ending:
            case ScriptFinished(request_body=after_request, response_body=after_response, log=log):
                return TriggerSucceeded(after_request, after_response if kind is TriggerKind.POST else None, log)
            case ScriptFailed():
                return ending

    def compile_udf(self, body: str) -> Callable[..., object]:
        """Return a user-defined function, called with JSON values or UNDEFINED; see `udf.compile_udf`."""
        return udf.compile_udf(body, self._functions)

    def _setup(self, body: str, kind: str, scope: ScriptScope, is_logging: bool) -> dict[str, Any]:
        limits = self._limits
        return {
            "kind": kind,
            "source": expression_text(body),
            "name": first_function_name(body),
            "selfLink": scope.self_link,
            "altLink": scope.alt_link,
            "isLogging": is_logging,
            "responseValues": {"ResourceQuotaCurrentUsage": scope.quota_usage, "MaxResourceQuota": scope.quota_max},
            "queuedCharactersMax": limits.queued_characters_max,
            "writesMax": limits.writes_max,
            "writtenCharactersMax": limits.written_characters_max,
            "resultCharactersMax": limits.result_characters_max,
            "logCharactersMax": limits.log_characters_max,
        }

    async def _run(self, setup: Mapping[str, Any], operations: ScriptOperations) -> _Ending:
        try:
            async with self._hosts.host() as host:
                result = await _ScriptRun(host, self._limits, operations).to_its_end(setup)
        except HostEnded as ended:
            result = _STOPPED[ended.stopped]
        except HostsBusy:
            result = ScriptFailed(FailureKind.BUSY, "Too many scripts are running. Retry later.")
        if isinstance(result, ScriptFailed):
            operations.roll_back()
        return result


class _ScriptRun:
    """A run of one script on one host."""

    def __init__(self, host: HostProcess, limits: ScriptLimits, operations: ScriptOperations) -> None:
        self._host = host
        self._limits = limits
        self._operations = operations
        self._began_at = self._yielded_at = time.monotonic()

    async def to_its_end(self, setup: Mapping[str, Any]) -> _Ending:
        answer = await self._turn(frames.START, b'"start":%b' % dumps(setup))
        while not isinstance(answer, ScriptFinished | ScriptFailed):
            results = await self._results(answer)
            if isinstance(results, ScriptFailed):
                return results
            answer = await self._turn(frames.TURN, b'"results":[%b]' % b",".join(results))
        return answer

    async def _turn(self, verb: bytes, message: bytes) -> list[list[Any]] | _Ending:
        """Run one turn of the script: return the operations that it waits for, or its end."""
        remaining = self._limits.run_seconds - self._elapsed()
        if remaining <= 0:
            return _STOPPED[EngineStop.TIME]
        accept = max(0.0, self._limits.accept_seconds - self._elapsed())
        text = b'{"acceptMilliseconds":%d,%b}' % (accept * 1000, message)
        answer = await self._host.exchange(verb, frames.seconds_bytes(remaining), text)
        match answer[:1]:
            case frames.ANSWER:
                return _read_answer(answer[1:])
            case frames.FINISHED:
                ending, request_body, response_body = frames.split_finished(answer)
                return ScriptFinished(request_body, response_body, _log_of(ending))
            case _:
                return _STOPPED[EngineStop(answer[1:].decode())]

    async def _results(self, queued: list[list[Any]]) -> list[bytes] | ScriptFailed:
        results: list[bytes] = []
        while len(results) < len(queued):
            if self._elapsed() >= self._limits.run_seconds:
                return _STOPPED[EngineStop.TIME]
            await self._let_others_run()
            creates = creates_from(queued, len(results))
            created = await create_all(creates, self._operations)
            if created is not None:
                results += created
                continue
            # After a refusal the rest of the creates are carried out one by one, not tried together again.
            for operation in creates or [queued[len(results)]]:
                try:
                    pending = prepare(operation, self._operations)
                except NotAnOperation:
                    return _STOPPED[EngineStop.BROKEN]
                results.append(operation_result(operation, await pending))
        return results

    async def _let_others_run(self) -> None:
        if time.monotonic() - self._yielded_at >= YIELD_SECONDS:
            await asyncio.sleep(0)
            self._yielded_at = time.monotonic()

    def _elapsed(self) -> float:
        return time.monotonic() - self._began_at


def _log_of(answer: bytes) -> str:
    match loads(answer):
        case {"log": str(log)}:
            return log
        case _:
            return ""


def _read_answer(text: bytes) -> list[list[Any]] | ScriptFailed:
    try:
        answer: Any = loads(text)
    except MalformedRequest as error:
        return ScriptFailed(FailureKind.EXCEPTION, f"The script wrote a value that is not JSON: {error.reason}")
    match answer:
        case {"state": "failed", "failure": {"message": str(), "number": int()} as failure, "log": str(log)}:
            return _failed(failure, log)
        case {"state": "waiting", "operations": list(queued)}:
            return queued
        case _:
            return _STOPPED[EngineStop.BROKEN]


def _failed(failure: Mapping[str, Any], log: str) -> ScriptFailed:
    message, number = failure["message"], failure["number"]
    kind = FailureKind.EXCEPTION
    if failure.get("isSyntax") is True:
        kind = FailureKind.SYNTAX
    elif message.startswith("InternalError: out of memory"):
        kind = FailureKind.OUT_OF_MEMORY
    elif number == FailureKind.TOO_LARGE.status:
        kind = FailureKind.TOO_LARGE
    stack = failure.get("stack") or ""
    text = f"Encountered exception while executing Javascript. Exception = {message}"
    return ScriptFailed(kind, f"{text}\r\nStack trace: {stack}" if stack else text, number, log)
