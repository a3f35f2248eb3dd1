"""Results of a script's run: a value in every case, also if the script was stopped."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FailureKind(Enum):
    """Reason of a failure, with the status that the service answers."""

    SYNTAX = 400, "syntax"
    EXCEPTION = 400, "exception"
    OUT_OF_MEMORY = 400, "out of memory"
    OUT_OF_TIME = 408, "out of time"
    TOO_LARGE = 413, "too large"
    BUSY = 503, "busy"

    @property
    def status(self) -> int:
        return self.value[0]


@dataclass(frozen=True, slots=True)
class ScriptSucceeded:
    """Result of a stored procedure. `body` is the JSON text of the response's body."""

    body: bytes
    log: str


@dataclass(frozen=True, slots=True)
class TriggerSucceeded:
    """The bodies after the trigger, as JSON text; `response_body` is None in a pre-trigger."""

    request_body: bytes
    response_body: bytes | None
    log: str


@dataclass(frozen=True, slots=True)
class ScriptFailed:
    """Failure of a run, whose changes must be rolled back. `number` is that of `new Error(number, …)`, or 0."""

    kind: FailureKind
    message: str
    number: int = 0
    log: str = ""

    @property
    def status(self) -> int:
        return self.kind.status


@dataclass(frozen=True, slots=True)
class ScriptFinished:
    """A completed run: the final request and response bodies, as JSON text."""

    request_body: bytes
    response_body: bytes
    log: str
