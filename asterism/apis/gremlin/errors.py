"""Refusals in the service's words: a status of the protocol, the service's own status, and a message in its form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from asterism.apis.gremlin.malformed import InvalidCredentials, MalformedMessage, OperationRefused, ResultRefused
from asterism.apis.translation import Translation
from asterism.errors import (
    AsterismError,
    Category,
    MalformedRequest,
    OwnerNotFound,
    PartitionKeyMismatch,
    Throttled,
    UniqueKeyViolation,
)
from asterism.languages.gremlin.failure import (
    CompileFailure,
    ExecutionFailure,
    FailStep,
    GremlinFailure,
    LimitExceeded,
    MemoryExceeded,
    TimeExceeded,
)
from asterism.languages.gremlin.graph.writes import PartlyWritten

# Statuses of the protocol.
SUCCESS: Final = 200
NO_CONTENT: Final = 204
PARTIAL_CONTENT: Final = 206
UNAUTHORIZED: Final = 401
AUTHENTICATE: Final = 407
_MALFORMED: Final = 498
_SERVER_ERROR: Final = 500
_FAIL_STEP: Final = 595
_EVALUATION: Final = 597
_TIMEOUT: Final = 598
_SERIALIZATION: Final = 599

_THROTTLED_SUBSTATUS: Final = 3200


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer without a result. `status` is the service's, which programs test as `x-ms-status-code`."""

    code: int
    status: int
    # Of the message: the type of the exception, the part of the service, and its status by name.
    exception: str
    interop: str
    scope: str
    sentence: str
    substatus: int | None = None
    retry_after_seconds: float | None = None
    # True for the few texts that the service sends as they are.
    is_bare: bool = False

    def message(self, *, activity_id: str, request_id: str) -> str:
        if self.is_bare:
            return self.sentence
        return (
            f"\r\n\nActivityId : {activity_id}\nExceptionType : {self.exception}\n"
            f"ExceptionMessage : \r\n\t{self.sentence}\n\tGremlinRequestId : {request_id}\n\tContext : graphcompute\n"
            f"\tScope : {self.scope}\n\tGraphInterOpStatusCode : {self.interop}\n\tHResult : 0x80131500\r\n"
        )

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that an answer has only if it is this refusal."""
        found: dict[str, Any] = {"x-ms-source": _STORE_SOURCE if self.scope == _STORE else _GRAPH_SOURCE}
        if self.substatus is not None:
            found["x-ms-substatus-code"] = self.substatus
        if self.retry_after_seconds is not None:
            found["x-ms-retry-after-ms"] = time_span(self.retry_after_seconds)
        return found


def time_span(seconds: float) -> str:
    """Return a time in the form of .NET, which samples of the service parse: 00:00:00.0330000."""
    ticks = max(1, round(seconds * 10_000_000))
    whole, fraction = divmod(ticks, 10_000_000)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{fraction:07d}"


_STORE: Final = "graphstore-operation"
_STORE_SOURCE: Final = "Microsoft.Azure.Documents.Client"
_GRAPH_SOURCE: Final = "Microsoft.Azure.Graphs"
_EXECUTION: Final = "graphcomp-execquery"
_COMMAND: Final = "graphcmd-invoke"
_RUNTIME_ERROR: Final = "GraphRuntimeError"


def _store_row(status: int, exception: str, interop: str, sentence: str) -> Refusal:
    """`sentence` is empty where the error has a better one of its own."""
    return Refusal(_SERVER_ERROR, status, exception, interop, _STORE, sentence)


_RUNTIME: Final = Refusal(_EVALUATION, 1000, "GraphRuntimeException", _RUNTIME_ERROR, _EXECUTION, "")
_COMPILATION: Final = Refusal(_EVALUATION, 1000, "GraphCompileException", "QuerySyntaxError", "", "")
_TOO_SLOW: Final = Refusal(_TIMEOUT, 1009, "GraphTimeoutException", "GraphTimeout", _EXECUTION, "")
_GONE: Final = _store_row(404, "NotFoundException", "NotFound", "")
_CONFLICT: Final = _store_row(
    409,
    "ConflictException",
    "Conflict",
    "Conflicting request to resource has been attempted. Retry to avoid conflicts.",
)
_CHANGED: Final = _store_row(
    412,
    "PreconditionFailedException",
    "PreconditionFailed",
    "PreconditionFailedException: One of the specified pre-condition is not met",
)
_TOO_MANY: Final = replace(
    _store_row(
        429,
        "RequestRateTooLargeException",
        "RequestRateTooLarge",
        "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request "
        "later.",
    ),
    substatus=_THROTTLED_SUBSTATUS,
)

_TABLE: Final = Translation(
    {
        Category.MALFORMED: _store_row(400, "BadRequestException", "BadRequest", ""),
        Category.TOO_LARGE: _store_row(413, "RequestEntityTooLargeException", "RequestEntityTooLarge", ""),
        Category.UNAUTHENTICATED: replace(
            _store_row(401, "UnauthorizedException", "Unauthorized", ""), code=UNAUTHORIZED
        ),
        Category.DENIED: _store_row(403, "ForbiddenException", "Forbidden", ""),
        Category.ABSENT: _GONE,
        Category.EXISTS: _CONFLICT,
        Category.PRECONDITION: _CHANGED,
        Category.REFUSED: _store_row(400, "BadRequestException", "BadRequest", ""),
        Category.CONTENTION: _CHANGED,
        Category.THROTTLED: _TOO_MANY,
        Category.TIMED_OUT: _TOO_SLOW,
        Category.FULL: _store_row(403, "ForbiddenException", "Forbidden", ""),
        Category.UNAVAILABLE: _store_row(503, "ServiceUnavailableException", "ServiceUnavailable", ""),
        Category.INTERNAL: _store_row(500, "InternalServerErrorException", "InternalServerError", ""),
    },
    {
        OwnerNotFound: replace(_GONE, sentence="Owner resource does not exist"),
        # A value or a key that cannot be stored is a matter of the traversal.
        MalformedRequest: _RUNTIME,
        PartitionKeyMismatch: _RUNTIME,
        # Its own sentence counts the partitions.
        PartlyWritten: replace(_CHANGED, sentence=""),
        UniqueKeyViolation: replace(
            _CONFLICT, sentence="Unique index constraint violation. Another element has the same unique key."
        ),
    },
)

_EXECUTION_PREFIX: Final = "Gremlin Query Execution Error: "
_FAILURES: Final[dict[type[GremlinFailure], Refusal]] = {
    ExecutionFailure: _RUNTIME,
    FailStep: replace(_RUNTIME, code=_FAIL_STEP),
    # The service calls it throttling; a second try would be refused as well, so there is no time to wait.
    LimitExceeded: replace(_RUNTIME, status=429, scope=_COMMAND),
    MemoryExceeded: replace(
        _RUNTIME, code=_SERVER_ERROR, status=1003, exception="GraphOutOfMemoryException", interop="GraphOutOfMemory"
    ),
    TimeExceeded: _TOO_SLOW,
}
# Their sentences stand as they are.
_UNPREFIXED: Final = frozenset({FailStep, MemoryExceeded, TimeExceeded})

INVALID_CREDENTIALS: Final = Refusal(
    UNAUTHORIZED, 401, "", "", "", "Unauthorized: Invalid credentials provided", is_bare=True
)
UNFORESEEN: Final = _store_row(
    500,
    "InternalServerErrorException",
    "InternalServerError",
    "An unknown error occurred while processing this request. The server's log has the details, under the activity id.",
)


def as_refusal(problem: Exception) -> Refusal | None:
    """Return the answer to an error of the floors below or of this door; None for one that no code foresaw."""
    if isinstance(problem, AsterismError):
        return refusal_of(problem)
    if isinstance(problem, GremlinFailure):
        return _failure(problem)
    if isinstance(problem, MalformedMessage):
        return malformed(problem.sentence)
    if isinstance(problem, InvalidCredentials):
        return INVALID_CREDENTIALS
    if isinstance(problem, OperationRefused):
        return replace(_RUNTIME, code=_SERVER_ERROR, sentence=problem.sentence)
    if isinstance(problem, ResultRefused):
        return Refusal(
            _SERIALIZATION, 1001, "GraphSerializationException", "SerializationError", _COMMAND, problem.sentence
        )
    return None


def refusal_of(error: AsterismError) -> Refusal:
    row = _TABLE.row(error)
    if row is _RUNTIME:
        return replace(row, sentence=_EXECUTION_PREFIX + error.sentence)
    sentence = row.sentence or error.sentence
    retry_after = error.retry_after_seconds if isinstance(error, Throttled) else None
    return replace(row, sentence=sentence, retry_after_seconds=retry_after)


def malformed(sentence: str) -> Refusal:
    return Refusal(_MALFORMED, 1004, "GraphMalformedException", "MalformedRequest", _COMMAND, sentence)


def _failure(problem: GremlinFailure) -> Refusal:
    if isinstance(problem, CompileFailure):
        sentence = f"Gremlin Query Compilation Error: {problem.sentence}\r\n\t1 Error(s)"
        return replace(_COMPILATION, scope=problem.scope, sentence=sentence)
    kind = next((known for known in type(problem).__mro__ if known in _FAILURES), ExecutionFailure)
    prefix = "" if kind in _UNPREFIXED else _EXECUTION_PREFIX
    return replace(_FAILURES[kind], sentence=prefix + problem.sentence)
