"""User-defined functions: `udf.name(…)` in a query, called once per row.

Calls go to hosts of their own: an exchange takes about ten microseconds, and each call has a time limit. A call that
takes longer than a moment is waited for while others are answered, if the caller can do so (`Wait`); another query's
call then goes to another host. Calls that a query is sure to make are made ahead, many in one exchange. When a host
ends, its functions are compiled again in the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

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

# Of about 20 MB each. Queries whose calls take long wait for one of them.
HOSTS_MAX = 4

# As much as a pipe takes at once; and all arguments of a bunch are in the heap that each call was promised.
BUNCH_BYTES_MAX = 64 * 1024
# Results that are made ahead are kept until their turn comes; with more than this, no further bunch is sent.
RESULTS_BYTES_MAX = 256 * 1024
# Of the time that one call may take, the part after which a bunch of them makes no further call.
_BUNCH_SHARE_OF_CALL = 0.2

_ANSWER_BYTE = frames.ANSWER[0]
# What the answer of a call that threw begins with.
_EXCEPTION_BYTE = ord("!")

_STOPPED_TEXTS = {
    Stopped.TIME: "it took longer than a call may take.",
    Stopped.MEMORY: "it used more memory than it may.",
    Stopped.BROKEN: "its result cannot be read.",
}


# Waits until a descriptor can be read, or without one for a moment, while others are answered; False if the caller is
# nowhere where that is possible.
Wait = Callable[[int | None], bool]


class FunctionHosts:
    """The hosts that all functions share: one, and more while calls of several queries are waited for."""

    def __init__(self, limits: ScriptLimits, wait: Wait = lambda _descriptor: False) -> None:
        self._limits = limits
        self._wait = wait
        self._idle: list[FunctionHost] = []
        self._busy = 0

    def call(self, body: str, arguments: bytes) -> bytes:
        """The answer of the function that `body` spells; MalformedRequest when it was stopped."""
        with self._host() as host:
            return host.call(body, arguments)

    def call_many(self, body: str, bunch: bytes) -> bytes:
        """What the function answers to the calls of a bunch, as far as it came; MalformedRequest if the host ended."""
        with self._host() as host:
            return host.call_many(body, bunch)

    def compile(self, body: str) -> None:
        """MalformedRequest when the function does not compile."""
        with self._host() as host:
            host.compile(body)

    def close(self) -> None:
        """Ends the hosts that are not in use."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _host(self) -> Iterator[FunctionHost]:
        # Without a way to wait, one more than allowed is started; it is ended when the call is over.
        while self._busy >= HOSTS_MAX and self._wait(None):
            pass
        host = self._idle.pop() if self._idle else FunctionHost(self._limits, self._wait)
        self._busy += 1
        try:
            yield host
        finally:
            self._busy -= 1
            if self._busy + len(self._idle) < HOSTS_MAX:
                self._idle.append(host)
            else:
                host.close()


class FunctionHost:
    """A process that runs functions, for one call at a time."""

    def __init__(self, limits: ScriptLimits, wait: Wait) -> None:
        self._limits = limits
        self._wait = wait
        self._host: BlockingHostProcess | None = None
        # What a call of each function begins with.
        self._call_beginnings: dict[str, bytes] = {}

    def call(self, body: str, arguments: bytes) -> bytes:
        return self._exchange(self.compile(body) + arguments)[1:]

    def call_many(self, body: str, bunch: bytes) -> bytes:
        number = self.compile(body)[len(frames.CALL) :]
        return self._exchange(frames.CALLS + number + bunch)[1:]

    def compile(self, body: str) -> bytes:
        """What a call begins with; compiles the function unless the host knows it already."""
        known = self._call_beginnings.get(body)
        if known is not None:
            return known
        if len(self._call_beginnings) >= FUNCTIONS_MAX:
            self.close()
        source = {
            "source": expression_text(body),
            "name": first_function_name(body),
            "bunchMilliseconds": self._limits.udf_call_seconds * 1000 * _BUNCH_SHARE_OF_CALL,
        }
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
            self._host = BlockingHostProcess(self._limits, self._wait)
        try:
            answer = self._host.exchange(payload)
        except HostEnded as ended:
            self._host = None
            self._call_beginnings.clear()
            raise _failed(_STOPPED_TEXTS[ended.stopped]) from None
        except BaseException:
            # Ended while it waited: the answer would be taken for that of the next call.
            self.close()
            raise
        if answer[0] != _ANSWER_BYTE:
            raise _failed(answer[1:].decode() if answer[:1] == frames.REFUSED else _stopped_text(answer))
        return answer


def _stopped_text(answer: bytes) -> str:
    return _STOPPED_TEXTS[Stopped(answer[1:].decode())]


class UserFunction:
    """One function, to be called with JSON values or UNDEFINED. MalformedRequest when a call of it fails."""

    __slots__ = ("_body", "_hosts")

    def __init__(self, body: str, hosts: FunctionHosts) -> None:
        self._body = body
        self._hosts = hosts

    def __call__(self, *arguments: object) -> object:
        answer = self._hosts.call(self._body, _arguments_text(arguments))
        if not answer:
            return UNDEFINED
        if answer[0] == _EXCEPTION_BYTE:
            raise _failed(answer[1:].decode())
        return loads(answer)

    def results_ahead(self, calls: Iterable[tuple[object, ...]]) -> list[object]:
        """The results of the first of these calls, up to one that has none: it is told by calling it, when it is due.

        Never raises. Calls that need long, or whose arguments or results are large, are left to be made alone, too.
        """
        results: list[object] = []
        bytes_kept = 0
        try:
            for count, bunch in _bunches(calls):
                answer = self._hosts.call_many(self._body, bunch)
                found = _results_of(answer)
                results += found
                bytes_kept += len(answer)
                if len(found) < count or bytes_kept > RESULTS_BYTES_MAX:
                    break
        except MalformedRequest:
            # The host ended, or a result cannot be read; the call that is the reason will fail by itself.
            pass
        return results


def compile_udf(body: str, hosts: FunctionHosts) -> UserFunction:
    """The function that `body` spells. MalformedRequest when it does not compile."""
    hosts.compile(body)
    return UserFunction(body, hosts)


def _failed(message: str) -> MalformedRequest:
    return MalformedRequest(reason=f"A user defined function failed: {message}")


def _arguments_text(arguments: tuple[object, ...]) -> bytes:
    """The arguments, followed by the places of those that are undefined."""
    if UNDEFINED not in arguments:
        return dumps([arguments])
    values = [None if argument is UNDEFINED else argument for argument in arguments]
    return dumps([values, *(place for place, argument in enumerate(arguments) if argument is UNDEFINED)])


def _bunches(calls: Iterable[tuple[object, ...]]) -> Iterator[tuple[int, bytes]]:
    """The calls, in bunches of which each has its number of calls and its text; see `udf.js`."""
    texts: list[bytes] = []
    undefined_places: list[tuple[int, int]] = []
    total_bytes = 0
    for arguments in calls:
        values: object = arguments
        if UNDEFINED in arguments:
            values = [None if argument is UNDEFINED else argument for argument in arguments]
        try:
            text = dumps(values)
        except MalformedRequest:
            # No call: who makes it in its turn will be told.
            break
        if texts and total_bytes + len(text) > BUNCH_BYTES_MAX:
            yield len(texts), _bunch_text(undefined_places, texts)
            texts, undefined_places, total_bytes = [], [], 0
        if values is not arguments:
            places = [place for place, argument in enumerate(arguments) if argument is UNDEFINED]
            undefined_places += [(len(texts), place) for place in places]
        texts.append(text)
        total_bytes += len(text)
    if texts:
        yield len(texts), _bunch_text(undefined_places, texts)


def _bunch_text(undefined_places: list[tuple[int, int]], texts: list[bytes]) -> bytes:
    return b"[" + b",".join([dumps(undefined_places), *texts]) + b"]"


def _results_of(answer: bytes) -> list[object]:
    results = cast("list[Any]", loads(answer))
    for number in results.pop(0):
        results[number] = UNDEFINED
    return results
