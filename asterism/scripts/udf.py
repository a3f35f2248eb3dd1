"""User-defined functions: `udf.name(…)` in a query, called once per row.

Calls go to hosts of their own: an exchange takes about ten microseconds, and each call has a time limit. During a call
that takes longer than a moment, other requests proceed if the caller supports it (`Wait`); another query's call then
goes to another host. Calls that a query is certain to make are made in advance, many in one exchange. When a host ends,
its functions are compiled again in the next host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from asterism.errors import MalformedRequest
from asterism.scripts import frames
from asterism.scripts.limits import ScriptLimits
from asterism.scripts.processes import BlockingHostProcess, HostEnded
from asterism.scripts.sandbox import EngineStop
from asterism.scripts.sources import expression_text, first_function_name
from asterism.values.json.text import dumps, loads
from asterism.values.undefined import UNDEFINED

# Each has a context of half a megabyte in the host; beyond this number, the host is replaced.
FUNCTIONS_MAX = 100

# Of about 20 MB each. Queries with long calls wait for a free host.
HOSTS_MAX = 4

# The capacity of a pipe; and all arguments of a batch share the heap that is promised to each call.
BATCH_BYTES_MAX = 64 * 1024
# Results made in advance are kept until they are used; beyond this size, no further batch is sent.
RESULTS_BYTES_MAX = 256 * 1024
# Fraction of the time limit of one call after which a batch makes no further call.
_BATCH_SHARE_OF_CALL = 0.2

_ANSWER_BYTE = frames.ANSWER[0]
# First byte of the answer of a call that threw.
_EXCEPTION_BYTE = ord("!")

_STOPPED_TEXTS = {
    EngineStop.TIME: "it exceeded the time limit of a call.",
    EngineStop.MEMORY: "it exceeded its memory limit.",
    EngineStop.BROKEN: "its result cannot be read.",
}


# Waits until a descriptor is readable, or without one for a moment, while other requests proceed; False if the calling
# context cannot wait.
WaitForHost = Callable[[int | None], bool]


class FunctionHosts:
    """The hosts that all functions share: one, and more while several queries wait for calls."""

    def __init__(self, limits: ScriptLimits, wait: WaitForHost = lambda _descriptor: False) -> None:
        self._limits = limits
        self._wait = wait
        self._idle: list[FunctionHost] = []
        self._busy = 0

    def call(self, body: str, arguments: bytes) -> bytes:
        """Call the function in `body` and return its answer; MalformedRequest if it was stopped."""
        with self._host() as host:
            return host.call(body, arguments)

    def call_many(self, body: str, batch: bytes) -> bytes:
        """Return the answers to the first calls of a batch; MalformedRequest if the host ended."""
        with self._host() as host:
            return host.call_many(body, batch)

    def compile(self, body: str) -> None:
        """Compile the function; MalformedRequest if it does not compile."""
        with self._host() as host:
            host.compile(body)

    def close(self) -> None:
        """End the hosts that are not in use."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _host(self) -> Iterator[FunctionHost]:
        # Without a way to wait, a host beyond the maximum is started; it is ended after the call.
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
    """A process that runs functions, one call at a time."""

    def __init__(self, limits: ScriptLimits, wait: WaitForHost) -> None:
        self._limits = limits
        self._wait = wait
        self._host: BlockingHostProcess | None = None
        # First bytes of a call, by function.
        self._call_beginnings: dict[str, bytes] = {}

    def call(self, body: str, arguments: bytes) -> bytes:
        return self._exchange(self.compile(body) + arguments)[1:]

    def call_many(self, body: str, batch: bytes) -> bytes:
        number = self.compile(body)[len(frames.CALL) :]
        return self._exchange(frames.CALLS + number + batch)[1:]

    def compile(self, body: str) -> bytes:
        """Return the first bytes of a call, and compile the function unless the host knows it already."""
        known = self._call_beginnings.get(body)
        if known is not None:
            return known
        if len(self._call_beginnings) >= FUNCTIONS_MAX:
            self.close()
        source = {
            "source": expression_text(body),
            "name": first_function_name(body),
            "batchMilliseconds": self._limits.udf_call_seconds * 1000 * _BATCH_SHARE_OF_CALL,
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
            # Interrupted while waiting: the answer would be taken for that of the next call.
            self.close()
            raise
        if answer[0] != _ANSWER_BYTE:
            raise _failed(answer[1:].decode() if answer[:1] == frames.REFUSED else _stopped_text(answer))
        return answer


def _stopped_text(answer: bytes) -> str:
    return _STOPPED_TEXTS[EngineStop(answer[1:].decode())]


class UserFunction:
    """A function, called with JSON values or UNDEFINED. Raises MalformedRequest if a call fails."""

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
        """Return the results of the first of these calls, up to a call that fails: that one raises when made by itself.

        Never raises. Calls that take long, or have large arguments or results, are also left to be made singly.
        """
        results: list[object] = []
        bytes_kept = 0
        try:
            for count, batch in _batches(calls):
                answer = self._hosts.call_many(self._body, batch)
                found = _results_of(answer)
                results += found
                bytes_kept += len(answer)
                if len(found) < count or bytes_kept > RESULTS_BYTES_MAX:
                    break
        except MalformedRequest:
            # The host ended, or a result cannot be read; the call that caused it will fail by itself.
            pass
        return results


def compile_udf(body: str, hosts: FunctionHosts) -> UserFunction:
    """Return the function in `body`. MalformedRequest if it does not compile."""
    hosts.compile(body)
    return UserFunction(body, hosts)


def _failed(message: str) -> MalformedRequest:
    return MalformedRequest(reason=f"A user defined function failed: {message}")


def _arguments_text(arguments: tuple[object, ...]) -> bytes:
    """Return the text of the arguments, followed by the positions of those that are undefined."""
    if UNDEFINED not in arguments:
        return dumps([arguments])
    values = [None if argument is UNDEFINED else argument for argument in arguments]
    return dumps([values, *(position for position, argument in enumerate(arguments) if argument is UNDEFINED)])


def _batches(calls: Iterable[tuple[object, ...]]) -> Iterator[tuple[int, bytes]]:
    """Yield the calls in batches, each as its number of calls and its text; see `udf.js`."""
    texts: list[bytes] = []
    undefined_positions: list[tuple[int, int]] = []
    total_bytes = 0
    for arguments in calls:
        values: object = arguments
        if UNDEFINED in arguments:
            values = [None if argument is UNDEFINED else argument for argument in arguments]
        try:
            text = dumps(values)
        except MalformedRequest:
            # Not a valid call: its error is raised when the call is made.
            break
        if texts and total_bytes + len(text) > BATCH_BYTES_MAX:
            yield len(texts), _batch_text(undefined_positions, texts)
            texts, undefined_positions, total_bytes = [], [], 0
        if values is not arguments:
            positions = [position for position, argument in enumerate(arguments) if argument is UNDEFINED]
            undefined_positions += [(len(texts), position) for position in positions]
        texts.append(text)
        total_bytes += len(text)
    if texts:
        yield len(texts), _batch_text(undefined_positions, texts)


def _batch_text(undefined_positions: list[tuple[int, int]], texts: list[bytes]) -> bytes:
    return b"[" + b",".join([dumps(undefined_positions), *texts]) + b"]"


def _results_of(answer: bytes) -> list[object]:
    results = cast("list[Any]", loads(answer))
    for number in results.pop(0):
        results[number] = UNDEFINED
    return results
