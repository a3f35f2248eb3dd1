"""User-defined functions: `udf.name(…)` in a query, called once per row.

Calls go to a host of their own and are waited for: an exchange takes about ten microseconds, and each call has a time
limit. When the host ends, its functions are compiled again in the next one.
"""

from __future__ import annotations

from collections.abc import Callable

from asterism.errors import MalformedRequest
from asterism.scripts import frames
from asterism.scripts.limits import ScriptLimits
from asterism.scripts.processes import BlockingHostProcess, HostEnded
from asterism.scripts.sandbox import Stopped
from asterism.scripts.sources import expression_text, first_function_name
from asterism.values.json_text import dumps, loads
from asterism.values.undefined import UNDEFINED

# Each holds a context of half a megabyte in the host; when there are more, the host is replaced.
FUNCTIONS_MAX = 100

_ANSWER_BYTE = frames.ANSWER[0]
# What the answer of a call that threw begins with.
_EXCEPTION_BYTE = ord("!")

_STOPPED_TEXTS = {
    Stopped.TIME: "it took longer than a call may take.",
    Stopped.MEMORY: "it used more memory than it may.",
    Stopped.BROKEN: "its result cannot be read.",
}


class FunctionHost:
    """The one host that all functions share. Calls block, so there is never more than one."""

    def __init__(self, limits: ScriptLimits) -> None:
        self._limits = limits
        self._host: BlockingHostProcess | None = None
        # What a call of each function begins with.
        self._call_beginnings: dict[str, bytes] = {}

    def call(self, body: str, arguments: bytes) -> bytes:
        """The answer of the function that `body` spells; MalformedRequest when it was stopped."""
        return self._exchange(self.compile(body) + arguments)[1:]

    def compile(self, body: str) -> bytes:
        """What a call begins with; compiles the function unless the host knows it already."""
        known = self._call_beginnings.get(body)
        if known is not None:
            return known
        if len(self._call_beginnings) >= FUNCTIONS_MAX:
            self.close()
        source = {"source": expression_text(body), "name": first_function_name(body)}
        number, _ = frames.split_number(self._exchange(frames.COMPILE + dumps(source)))
        beginning = self._call_beginnings[body] = frames.CALL + frames.number_bytes(number)
        return beginning

    def close(self) -> None:
        self._call_beginnings.clear()
        if self._host is not None:
            self._host.end()
            self._host = None

    def _exchange(self, payload: bytes) -> bytes:
        if self._host is None:
            self._host = BlockingHostProcess(self._limits)
        try:
            answer = self._host.exchange(payload)
        except HostEnded as ended:
            self._host = None
            self._call_beginnings.clear()
            raise _failed(_STOPPED_TEXTS[ended.stopped]) from None
        if answer[0] != _ANSWER_BYTE:
            raise _failed(answer[1:].decode() if answer[:1] == frames.REFUSED else _stopped_text(answer))
        return answer


def _stopped_text(answer: bytes) -> str:
    return _STOPPED_TEXTS[Stopped(answer[1:].decode())]


def compile_udf(body: str, host: FunctionHost) -> Callable[..., object]:
    """The function that `body` spells, to be called with JSON values or UNDEFINED.

    MalformedRequest when it does not compile, and when a call of it fails.
    """
    host.compile(body)

    def call(*arguments: object) -> object:
        answer = host.call(body, _arguments_text(arguments))
        if not answer:
            return UNDEFINED
        if answer[0] == _EXCEPTION_BYTE:
            raise _failed(answer[1:].decode())
        return loads(answer)

    return call


def _failed(message: str) -> MalformedRequest:
    return MalformedRequest(reason=f"A user defined function failed: {message}")


def _arguments_text(arguments: tuple[object, ...]) -> bytes:
    """The arguments, followed by the places of those that are undefined."""
    if UNDEFINED not in arguments:
        return dumps([arguments])
    values = [None if argument is UNDEFINED else argument for argument in arguments]
    return dumps([values, *(place for place, argument in enumerate(arguments) if argument is UNDEFINED)])
