"""Failures that a test suite asks for, so that it sees how a program deals with them (`--test-controls` only)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import ClassVar, Final

from asterism import errors
from asterism.errors import AsterismError, Category, MalformedRequest

# Of one fault: enough for every client to give up, and no list without end.
TIMES_MAX: Final = 1_000_000
FAULTS_MAX: Final = 1_000
# The wait that a throttled client is told by default: long enough to be seen, short enough for a test.
RETRY_AFTER_SECONDS_DEFAULT: Final = 0.01
_REASON: Final = "A test suite asked the server to fail this request."


@dataclass(eq=False)
class InjectedTimeout(AsterismError):
    category: ClassVar[Category] = Category.TIMED_OUT
    text: ClassVar[str] = _REASON


@dataclass(eq=False)
class InjectedFailure(AsterismError):
    category: ClassVar[Category] = Category.INTERNAL
    text: ClassVar[str] = _REASON


# The error behind each status. A door answers it in the words, and with the status, that its protocol has for it.
_ERRORS: Final[dict[int, Callable[[float], AsterismError]]] = {
    400: lambda _: MalformedRequest(reason=_REASON),
    401: lambda _: errors.Unauthorized(reason=_REASON),
    403: lambda _: errors.Forbidden(reason=_REASON),
    404: lambda _: errors.ItemNotFound(item_id=""),
    408: lambda _: InjectedTimeout(),
    409: lambda _: errors.ItemExists(item_id=""),
    412: lambda _: errors.PreconditionFailed(),
    413: lambda _: errors.TooLarge(what="request", bytes_max=0),
    429: lambda retry_after_seconds: errors.RequestRateTooLarge(retry_after_seconds),
    449: lambda _: errors.TooMuchContention(),
    500: lambda _: InjectedFailure(),
    503: lambda _: errors.StorageUnavailable(reason=_REASON),
    507: lambda _: errors.StorageFull(),
}
STATUSES: Final = tuple(_ERRORS)


@dataclass(slots=True)
class Fault:
    status: int
    times: int = 1
    # None: of any.
    door: str | None = None
    operation: str | None = None
    retry_after_seconds: float = RETRY_AFTER_SECONDS_DEFAULT

    def fits(self, door: str, operation: str) -> bool:
        return self.door in (None, door) and self.operation in (None, operation)


class InjectedFaults:
    """The faults that are still to come, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._pending: list[Fault] = []
        self._operations_of_door: dict[str, frozenset[str]] = {}

    @property
    def pending(self) -> list[Fault]:
        return list(self._pending)

    def know_door(self, name: str, operations: Collection[str]) -> None:
        """Let faults name a door and its operations; others are refused, because they would never happen."""
        self._operations_of_door[name] = frozenset(operations)

    def add(self, fault: Fault) -> None:
        self._check(fault)
        self._pending.append(fault)

    def clear(self) -> None:
        self._pending.clear()

    def take(self, door: str, operation: str) -> AsterismError | None:
        """Return the error with which a request must fail now, and count it; None if it may run."""
        fault = next((fault for fault in self._pending if fault.fits(door, operation)), None)
        if fault is None:
            return None
        fault.times -= 1
        if not fault.times:
            self._pending.remove(fault)
        return _ERRORS[fault.status](fault.retry_after_seconds)

    def _check(self, fault: Fault) -> None:
        if fault.status not in _ERRORS:
            raise MalformedRequest(
                reason=f"No request can be made to fail with {fault.status}. Choose one of "
                f"{', '.join(map(str, STATUSES))}."
            )
        if not 1 <= fault.times <= TIMES_MAX:
            raise MalformedRequest(reason=f"'times' must be between 1 and {TIMES_MAX:,}.")
        if len(self._pending) >= FAULTS_MAX:
            raise MalformedRequest(reason=f"{FAULTS_MAX:,} faults are waiting already. Reset the server first.")
        doors = self._operations_of_door
        if fault.door is not None and fault.door not in doors:
            raise MalformedRequest(reason=f"There is no door '{fault.door[:64]}'. Choose one of {', '.join(doors)}.")
        known = doors[fault.door] if fault.door is not None else frozenset[str]().union(*doors.values())
        if fault.operation is not None and fault.operation not in known:
            raise MalformedRequest(
                reason=f"There is no operation '{fault.operation[:64]}'. Choose one of {', '.join(sorted(known))}."
            )
