"""Failures that a test suite asks for (`configureFailPoint`), only on a server with `--test-controls`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn

from asterism.apis.mongo.arguments import as_bool, as_int
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import is_number
from asterism.values.bson.types import Document, Int64

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# Fails, delays or changes the answer of commands that it names.
FAIL_COMMAND: Final = "failCommand"
# Fails or cuts off retryable writes when they are about to be written.
ON_WRITE: Final = "onPrimaryTransactionalWrite"
# Fails a getMore that has found its cursor, which is lost then.
ON_GET_MORE: Final = "failGetMoreAfterCursorCheckout"
# Every command with `maxTimeMS` is late, or none is.
ALWAYS_LATE: Final = "maxTimeAlwaysTimeOut"
NEVER_LATE: Final = "maxTimeNeverTimeOut"
NAMES: Final = (FAIL_COMMAND, ON_WRITE, ON_GET_MORE, ALWAYS_LATE, NEVER_LATE)

_BLOCK_SECONDS_MAX = 60.0


class ConnectionClosed(Exception):
    """The connection is to be closed instead of an answer."""


class InjectedFailure(MongoFailure):
    """A failure that a fail point asks for. `only_labels` are all labels of the answer; None: as the code says."""

    only_labels: tuple[str, ...] | None = None


@dataclass(slots=True)
class FailPoint:
    """One fail point: how often it is still to be skipped and met, and its settings."""

    # None: as often as it is met.
    left: int | None = 0
    to_skip: int = 0
    data: Document = field(default_factory=dict)
    count: int = 0

    @property
    def is_on(self) -> bool:
        return self.left is None or self.left > 0

    def take(self) -> bool:
        """Return whether the fail point applies to the command that has met it, and count it."""
        if not self.is_on:
            return False
        if self.to_skip > 0:
            self.to_skip -= 1
            return False
        if self.left is not None:
            self.left -= 1
        self.count += 1
        return True


@dataclass(slots=True)
class Interference:
    """Changes to the answer of a command that is carried out all the same."""

    write_concern_error: Document | None = None
    # None: as the codes say.
    labels: tuple[str, ...] | None = None


class FailPoints:
    """The state of all fail points of a process."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._points = {name: FailPoint() for name in NAMES}
        self._sleep = sleep

    def configure(self, name: Any, mode: Any, data: Any) -> int:
        """Switch a fail point; return how often it was met since it was switched last."""
        point = self._points.get(name) if isinstance(name, str) else None
        if point is None:
            raise MongoFailure(369, f"Failed to set the fail point {name!r}. There are: {', '.join(NAMES)}")
        if data is not None and not isinstance(data, dict):
            raise MongoFailure(14, "The 'data' of a fail point must be an object")
        left, to_skip = _read_mode(mode)
        met = point.count
        self._points[name] = FailPoint(left, to_skip, data or {})
        return met

    @property
    def makes_late(self) -> bool:
        """Return whether commands with `maxTimeMS` are late, however fast they are."""
        return self._points[ALWAYS_LATE].is_on

    @property
    def makes_punctual(self) -> bool:
        return self._points[NEVER_LATE].is_on

    async def meet(self, call: Call) -> Interference | None:
        """Fail or delay a command as configured; return the changes to the answer of one that goes on."""
        point = self._points[FAIL_COMMAND]
        if not point.is_on or not _is_meant(point.data, call) or not point.take():
            return None
        data = point.data
        if data.get("blockConnection"):
            await self._sleep(min(as_int(data.get("blockTimeMS", 0)) / 1000, _BLOCK_SECONDS_MAX))
        _close_or_fail(data, "Failing command via 'failCommand' failpoint")
        concern = data.get("writeConcernError")
        if not isinstance(concern, dict):
            return None
        return Interference({"errmsg": "", **concern}, _labels(data))

    def before_write(self, call: Call) -> None:
        """Fail a retryable write before it is written, or note that its connection is to be closed behind it."""
        point = self._points[ON_WRITE]
        if not point.take():
            return
        call.closes_connection = as_bool(point.data.get("closeConnection", True))
        code = point.data.get("failBeforeCommitExceptionCode")
        if is_number(code):
            raise MongoFailure(as_int(code), "Failing the write as the fail point asks; nothing was written.")

    def on_get_more(self) -> None:
        point = self._points[ON_GET_MORE]
        if point.take():
            _close_or_fail({"errorCode": 8, **point.data}, "Failing getMore via 'failGetMoreAfterCursorCheckout'")


def _read_mode(mode: Any) -> tuple[int | None, int]:
    """Return how often a fail point applies, None for always, and how often it is skipped before."""
    if mode == "off":
        return 0, 0
    if mode == "alwaysOn":
        return None, 0
    if isinstance(mode, dict):
        if is_number(mode.get("times")):
            return max(0, as_int(mode["times"])), 0
        if is_number(mode.get("skip")):
            return None, max(0, as_int(mode["skip"]))
    raise MongoFailure(2, "The 'mode' of a fail point is 'off', 'alwaysOn', {times: n} or {skip: n}")


def _is_meant(data: Document, call: Call) -> bool:
    names = data.get("failCommands")
    if not isinstance(names, list) or not (call.name in names or call.command.name in names):
        return False
    application = data.get("appName")
    if application is not None and application != call.connection.application:
        return False
    namespace = data.get("namespace")
    if namespace is None:
        return True
    target = call.body.get("collection") if call.command.name == "getMore" else call.target
    return bool(namespace == f"{call.database}.{target}")


def _close_or_fail(data: Document, message: str) -> None:
    if data.get("closeConnection"):
        raise ConnectionClosed
    if is_number(data.get("errorCode")) and "writeConcernError" not in data:
        _fail(as_int(data["errorCode"]), message, data)


def _fail(code: int, message: str, data: Document) -> NoReturn:
    details = data.get("errorExtraInfo")
    failure = InjectedFailure(code, message, details=details if isinstance(details, dict) else {})
    failure.only_labels = _labels(data)
    raise failure


def _labels(data: Document) -> tuple[str, ...] | None:
    labels = data.get("errorLabels")
    return tuple(labels) if isinstance(labels, list) else None


async def configure_fail_point(call: Call) -> Document:
    points = call.context.fail_points
    if points is None:
        raise MongoFailure(59, "no such command: 'configureFailPoint' (start the server with --test-controls)")
    return {"count": Int64(points.configure(call.target, call.get("mode"), call.get("data")))}
