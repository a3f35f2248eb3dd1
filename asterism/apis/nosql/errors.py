"""From the database's errors to the protocol's: status, substatus, code and words, in one table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from asterism import errors
from asterism.apis.damage import report_damage
from asterism.apis.nosql import headers
from asterism.apis.translation import Translation
from asterism.apis.transports.http import HeaderList, Response
from asterism.errors import AsterismError, Category
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.limits import GIB, KIB, MIB
from asterism.values.json.text import dumps

# The charge of a refused request: the service bills throttled ones a little and most others like a small read.
_THROTTLED_CHARGE = "0.38"
_REFUSED_CHARGE = "1.0"


# --- errors that only this protocol has -----------------------------------------------------------------------------


@dataclass(eq=False)
class CrossPartitionNotEnabled(AsterismError):
    category: ClassVar[Category] = Category.MALFORMED
    text: ClassVar[str] = "The query needs more than one partition and the request does not allow that."


@dataclass(eq=False)
class NeedsQueryPlan(AsterismError):
    """The client must ask for a plan and merge the partitions' results itself; `plan_json` is that plan."""

    category: ClassVar[Category] = Category.MALFORMED
    text: ClassVar[str] = "The query cannot be answered without a plan on the client's side."
    plan_json: str


@dataclass(eq=False)
class ContainerRecreated(AsterismError):
    """The client's cached identity of the container is that of an older one of the same name."""

    category: ClassVar[Category] = Category.ABSENT
    text: ClassVar[str] = "The container was deleted and created again."
    name: str


class Refusal(Exception):
    """An answer that only this door gives: an unknown address, or an operation that this version does not have."""

    def __init__(
        self,
        status: int,
        code: str,
        words: str,
        *,
        substatus: int | None = None,
        more_headers: HeaderList | None = None,
    ) -> None:
        super().__init__(words)
        self.status = status
        self.code = code
        self.words = words
        self.more_headers = list(more_headers or [])
        if substatus is not None:
            self.more_headers.append((headers.SUBSTATUS, str(substatus)))


# --- the table ------------------------------------------------------------------------------------------------------


def _sentence(error: AsterismError) -> str:
    return error.sentence


@dataclass(frozen=True, slots=True)
class Rule:
    """The form in which clients see an error. `words` is a constant, or makes the message from the error."""

    status: int
    code: str
    words: str | Callable[[Any], str] = _sentence
    substatus: int | None = None

    def saying(self, words: str | Callable[[Any], str], substatus: int | None = None) -> Rule:
        """Return the rule of a single error: the status and the code of its category, in its own words."""
        return Rule(self.status, self.code, words, substatus)

    def message(self, error: AsterismError) -> str:
        return self.words if isinstance(self.words, str) else self.words(error)


_MISMATCH: Final = (
    "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key "
    "field values specified in the document."
)
_CROSS_PARTITION: Final = (
    "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, "
    "specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception."
)
_NEEDS_PLAN: Final = (
    "The provided cross partition query can not be directly served by the gateway. This is a first chance (internal) "
    "exception that all newer clients will know how to handle gracefully."
)


def size_text(size_bytes: int) -> str:
    """Return a size in the largest unit that leaves a whole number."""
    for unit_bytes, unit in ((GIB, "GB"), (MIB, "MB"), (KIB, "KB")):
        if size_bytes % unit_bytes == 0:
            return f"{size_bytes // unit_bytes} {unit}"
    return f"{size_bytes} bytes"


def _query_fault(error: MalformedQuery) -> dict[str, object]:
    if error.code.isdigit():
        # A refusal of the planner has a number for its code, and no position in the text.
        return {"severity": "Error", "code": int(error.code), "message": error.reason}
    where = {"start": error.start, "end": error.end}
    return {"severity": "Error", "location": where, "code": error.code, "message": error.reason}


def _query_words(error: MalformedQuery) -> str:
    faults = {"errors": [_query_fault(fault) for fault in (error, *error.more)]}
    return f"Message: {dumps(faults).decode()}"


def _missing(error: errors.ResourceNotFound | errors.OwnerNotFound) -> str:
    return (
        f'Message: {{"Errors":["Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"]}} '
        f"The {error.kind} '{error.name[:256]}' does not exist."
    )


_MALFORMED: Final = Rule(400, "BadRequest")
_ABSENT: Final = Rule(404, "NotFound")
_EXISTS: Final = Rule(409, "Conflict")
_THROTTLED: Final = Rule(429, "TooManyRequests", substatus=3200)
# The service documents 408 for requests that exceed the time they may take, functions in a query among them.
_TIMED_OUT: Final = Rule(408, "RequestTimeout")
_PARTITION_FULL: Final = Rule(403, "Forbidden", substatus=1014)

_BY_CATEGORY: Final = {
    Category.MALFORMED: _MALFORMED,
    Category.TOO_LARGE: Rule(413, "RequestEntityTooLarge"),
    Category.UNAUTHENTICATED: Rule(401, "Unauthorized"),
    Category.DENIED: Rule(403, "Forbidden"),
    Category.ABSENT: _ABSENT,
    Category.EXISTS: _EXISTS,
    Category.PRECONDITION: Rule(
        412,
        "PreconditionFailed",
        "Operation cannot be performed because one of the specified precondition is not met.",
    ),
    Category.REFUSED: _MALFORMED,
    Category.CONTENTION: Rule(
        449, "RetryWith", "Conflicting request to resource has been attempted. Retry to avoid conflicts."
    ),
    Category.THROTTLED: _THROTTLED,
    Category.TIMED_OUT: _TIMED_OUT,
    # Clients do not retry a full disk: trying again does not empty it, a person does.
    Category.FULL: Rule(
        507,
        "InsufficientStorage",
        "The server has no room left for writes. Reads and deletes go on; free some disk space or raise the size of "
        "the store.",
    ),
    # Not the reason: it names nodes and addresses behind the server.
    Category.UNAVAILABLE: Rule(
        503, "ServiceUnavailable", "The service is currently unavailable. Please retry the request."
    ),
    Category.INTERNAL: Rule(500, "InternalServerError", "The server met an error of its own; its log has the details."),
}

_OWN: Final[dict[type[AsterismError], Rule]] = {
    MalformedQuery: _MALFORMED.saying(_query_words),
    errors.PartitionKeyMismatch: _MALFORMED.saying(_MISMATCH, 1001),
    CrossPartitionNotEnabled: _MALFORMED.saying(_CROSS_PARTITION),
    NeedsQueryPlan: _MALFORMED.saying(_NEEDS_PLAN, 1004),
    ContainerRecreated: _MALFORMED.saying(
        lambda error: (
            f"The container '{error.name}' was deleted and created again: its resource id is not the one "
            f"in {headers.INTENDED_CONTAINER_RID}."
        ),
        1024,
    ),
    errors.TooLarge: _BY_CATEGORY[Category.TOO_LARGE].saying(
        lambda error: (
            'Message: {"Errors":["Request size is too large"]} '
            f"The {error.what} is larger than {size_text(error.bytes_max)}."
        ),
    ),
    errors.ResourceNotFound: _ABSENT.saying(_missing),
    errors.OwnerNotFound: _ABSENT.saying(_missing, 1003),
    errors.ItemNotFound: _ABSENT.saying(
        "Entity with the specified id does not exist in the system. "
        "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"
    ),
    errors.LsnNotReached: _ABSENT.saying("The read session is not available for the input session token.", 1002),
    errors.ResourceExists: _EXISTS.saying(
        lambda error: (
            f"Resource with specified id, name, or unique index already exists. The {error.kind} is '{error.name}'."
        ),
    ),
    errors.ItemExists: _EXISTS.saying("Entity with the specified id already exists in the system."),
    errors.UniqueKeyViolation: _EXISTS.saying(
        lambda error: (
            "Unique index constraint violation. The logical partition has an item with the same "
            f"{', '.join(error.paths)}."
        ),
    ),
    errors.RequestRateTooLarge: _THROTTLED.saying(
        "The request rate is too large: the partition's request units of this second are spent. Please retry after "
        "the time in x-ms-retry-after-ms. Learn more: http://aka.ms/cosmosdb-error-429",
        3200,
    ),
    # The status and the header that clients of the service retry by themselves, after the time they are given.
    errors.QueryMemoryInUse: _THROTTLED.saying(
        "The memory that this server has for queries is in use by others. Please retry after the time in "
        "x-ms-retry-after-ms, or let the query keep less: fewer DISTINCT, GROUP BY or ORDER BY without an index.",
        3200,
    ),
    errors.QueryTookTooLong: _TIMED_OUT.saying(
        "The query needs more work for a single item than one may take. Filter before joining, or compute less for "
        "each row."
    ),
    errors.LogicalPartitionFull: _PARTITION_FULL.saying(
        lambda error: (
            f"Partition key reached maximum size of {size_text(error.bytes_max)}. "
            "Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk"
        ),
        1014,
    ),
    errors.PhysicalPartitionFull: _PARTITION_FULL.saying(
        lambda error: (
            f"The physical partition reached its maximum size of {size_text(error.bytes_max)} and holds a "
            "single logical partition, which cannot be split."
        ),
        1014,
    ),
    errors.StoredDamage: _BY_CATEGORY[Category.INTERNAL].saying(report_damage),
}

TRANSLATION: Final = Translation(_BY_CATEGORY, _OWN)


# --- responses ------------------------------------------------------------------------------------------------------


def error_response(error: AsterismError, activity_id: str) -> Response:
    rule = TRANSLATION.row(error)
    answer_headers = [*headers.COMMON, (headers.CHARGE, _REFUSED_CHARGE)]
    if rule.substatus is not None:
        answer_headers.append((headers.SUBSTATUS, str(rule.substatus)))
    extra: dict[str, object] = {}
    if isinstance(error, errors.ItemNotFound):
        answer_headers[len(headers.COMMON)] = (headers.CHARGE, str(error.request_units))
    elif isinstance(error, errors.Throttled):
        answer_headers[len(headers.COMMON)] = (headers.CHARGE, _THROTTLED_CHARGE)
        answer_headers.append((headers.RETRY_AFTER, str(max(1, math.ceil(error.retry_after_seconds * 1000)))))
    elif isinstance(error, NeedsQueryPlan):
        extra["additionalErrorInfo"] = error.plan_json
    return _response(rule.status, rule.code, rule.message(error), activity_id, answer_headers, extra)


def refusal_response(refusal: Refusal, activity_id: str) -> Response:
    answer_headers = [*headers.COMMON, (headers.CHARGE, _REFUSED_CHARGE), *refusal.more_headers]
    return _response(refusal.status, refusal.code, refusal.words, activity_id, answer_headers, {})


def failure_response(activity_id: str) -> Response:
    """Answer an unexpected exception. The server's log has the details, under the same activity id."""
    words = "The server met an unexpected error; its log has the details under this activity id."
    return _response(500, "InternalServerError", words, activity_id, [*headers.COMMON, (headers.CHARGE, "0")], {})


def _response(
    status: int, code: str, words: str, activity_id: str, answer_headers: HeaderList, extra: dict[str, object]
) -> Response:
    body = {"code": code, "message": f"{words}\r\nActivityId: {activity_id}", **extra}
    return Response(status, answer_headers, dumps(body))
