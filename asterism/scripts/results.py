"""How the run of a script ends: a value in every case, also when the script was stopped."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FailureKind(Enum):
    """Why a script failed, with the status that the service answers."""

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
    """`body` is the JSON text of the response's body."""

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
    """Everything the script did is to be undone. `number` is what the script gave to `new Error(number, …)`, or 0."""

    kind: FailureKind
    message: str
    number: int = 0
    log: str = ""

    @property
    def status(self) -> int:
        return self.kind.status


@dataclass(frozen=True, slots=True)
class ScriptFinished:
    """A run that came to its end: what is left in request and response, as JSON text."""

    request_body: bytes
    response_body: bytes
    log: str
