"""From the database's errors to the protocol's: status, substatus, code and words, in one table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asterism import errors
from asterism.apis.damage import report_damage
from asterism.apis.http import HeaderList, Response
from asterism.apis.nosql import headers
from asterism.errors import AsterismError
from asterism.limits import GIB, KIB, MIB
from asterism.values.json_text import dumps

# What a refused request costs: the service bills throttled ones a little and most others like a small read.
_THROTTLED_CHARGE = "0.38"
_REFUSED_CHARGE = "1.0"


@dataclass(frozen=True, slots=True)
class Rule:
    """How one kind of error looks to a client. `words` gets the error itself."""

    status: int
    code: str
    words: Callable[[Any], str]
    substatus: int | None = None


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


_MISMATCH = (
    "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key "
    "field values specified in the document."
)
_CROSS_PARTITION = (
    "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, "
    "specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception."
)
_NEEDS_PLAN = (
    "The provided cross partition query can not be directly served by the gateway. This is a first chance (internal) "
    "exception that all newer clients will know how to handle gracefully."
)


def size_text(size_bytes: int) -> str:
    """A size as people say it: the largest unit that leaves a whole number."""
    for unit_bytes, unit in ((GIB, "GB"), (MIB, "MB"), (KIB, "KB")):
        if size_bytes % unit_bytes == 0:
            return f"{size_bytes // unit_bytes} {unit}"
    return f"{size_bytes} bytes"


def _query_fault(error: errors.MalformedQuery) -> dict[str, object]:
    if error.code.isdigit():
        # A refusal of the planner has a number for its code, and no place in the text.
        return {"severity": "Error", "code": int(error.code), "message": error.reason}
    where = {"start": error.start, "end": error.end}
    return {"severity": "Error", "location": where, "code": error.code, "message": error.reason}


def _query_words(error: errors.MalformedQuery) -> str:
    faults = {"errors": [_query_fault(fault) for fault in (error, *error.more)]}
    return f"Message: {dumps(faults).decode()}"


def _missing(error: errors.ResourceNotFound | errors.OwnerNotFound) -> str:
    return (
        f'Message: {{"Errors":["Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"]}} '
        f"The {error.kind} '{error.name[:256]}' does not exist."
    )


def _reason(error: Any) -> str:
    return str(error.reason)


TABLE: dict[type[AsterismError], Rule] = {
    errors.MalformedRequest: Rule(400, "BadRequest", _reason),
    errors.MalformedQuery: Rule(400, "BadRequest", _query_words),
    errors.PartitionKeyMismatch: Rule(400, "BadRequest", lambda _: _MISMATCH, 1001),
    errors.CrossPartitionNotEnabled: Rule(400, "BadRequest", lambda _: _CROSS_PARTITION),
    errors.NeedsQueryPlan: Rule(400, "BadRequest", lambda _: _NEEDS_PLAN, 1004),
    errors.TooLarge: Rule(
        413,
        "RequestEntityTooLarge",
        lambda error: (
            'Message: {"Errors":["Request size is too large"]} '
            f"The {error.what} is larger than {size_text(error.bytes_max)}."
        ),
    ),
    errors.Unauthorized: Rule(401, "Unauthorized", _reason),
    errors.Forbidden: Rule(403, "Forbidden", _reason),
    errors.ResourceNotFound: Rule(404, "NotFound", _missing),
    errors.OwnerNotFound: Rule(404, "NotFound", _missing, 1003),
    errors.ResourceExists: Rule(
        409,
        "Conflict",
        lambda error: (
            f"Resource with specified id, name, or unique index already exists. The {error.kind} is '{error.name}'."
        ),
    ),
    errors.ItemNotFound: Rule(
        404,
        "NotFound",
        lambda _: (
            "Entity with the specified id does not exist in the system. "
            "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"
        ),
    ),
    errors.ItemExists: Rule(409, "Conflict", lambda _: "Entity with the specified id already exists in the system."),
    errors.UniqueKeyViolation: Rule(
        409,
        "Conflict",
        lambda error: (
            "Unique index constraint violation. The logical partition has an item with the same "
            f"{', '.join(error.paths)}."
        ),
    ),
    errors.ContainerRecreated: Rule(
        400,
        "BadRequest",
        lambda error: (
            f"The container '{error.name}' was deleted and created again: its resource id is not the one "
            f"in {headers.INTENDED_CONTAINER_RID}."
        ),
        1024,
    ),
    errors.SessionNotAvailable: Rule(
        404, "NotFound", lambda _: "The read session is not available for the input session token.", 1002
    ),
    errors.PreconditionFailed: Rule(
        412,
        "PreconditionFailed",
        lambda _: "Operation cannot be performed because one of the specified precondition is not met.",
    ),
    errors.TooMuchContention: Rule(
        449,
        "RetryWith",
        lambda _: "Conflicting request to resource has been attempted. Retry to avoid conflicts.",
    ),
    errors.RequestRateTooLarge: Rule(
        429,
        "TooManyRequests",
        lambda _: (
            "The request rate is too large: the partition's request units of this second are spent. Please "
            "retry after the time in x-ms-retry-after-ms. Learn more: http://aka.ms/cosmosdb-error-429"
        ),
        3200,
    ),
    # The status and the header that clients of the service retry by themselves, after the time they are given.
    errors.QueryMemoryInUse: Rule(
        429,
        "TooManyRequests",
        lambda _: (
            "The memory that this server has for queries is in use by others. Please retry after the time in "
            "x-ms-retry-after-ms, or let the query keep less: fewer DISTINCT, GROUP BY or ORDER BY without an index."
        ),
        3200,
    ),
    # The service documents 408 for what does not complete within the time it may take, functions in a query among it.
    errors.QueryTookTooLong: Rule(
        408,
        "RequestTimeout",
        lambda _: (
            "The query needs more work for a single item than one may take. Filter before joining, or compute less for "
            "each row."
        ),
    ),
    errors.LogicalPartitionFull: Rule(
        403,
        "Forbidden",
        lambda error: (
            f"Partition key reached maximum size of {size_text(error.bytes_max)}. "
            "Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk"
        ),
        1014,
    ),
    errors.PhysicalPartitionFull: Rule(
        403,
        "Forbidden",
        lambda error: (
            f"The physical partition reached its maximum size of {size_text(error.bytes_max)} and holds a "
            "single logical partition, which cannot be split."
        ),
        1014,
    ),
    # A full disk is not retried by the clients: trying again does not empty it, a person does.
    errors.StorageFull: Rule(
        507,
        "InsufficientStorage",
        lambda _: (
            "The server has no room left for writes. Reads and deletes go on; free some disk space or raise the "
            "size of the store."
        ),
    ),
    errors.StorageUnavailable: Rule(
        503, "ServiceUnavailable", lambda _: "The service is currently unavailable. Please retry the request."
    ),
    errors.StoredDamage: Rule(500, "InternalServerError", report_damage),
    errors.ReshapeRefused: Rule(400, "BadRequest", _reason),
    errors.ThroughputRefused: Rule(400, "BadRequest", _reason),
}


def error_response(error: AsterismError, activity_id: str) -> Response:
    rule = TABLE[type(error)]
    told = [*headers.COMMON, (headers.CHARGE, _REFUSED_CHARGE)]
    if rule.substatus is not None:
        told.append((headers.SUBSTATUS, str(rule.substatus)))
    extra: dict[str, object] = {}
    if isinstance(error, errors.RequestRateTooLarge | errors.QueryMemoryInUse):
        told[-2] = (headers.CHARGE, _THROTTLED_CHARGE)
        told.append((headers.RETRY_AFTER, str(max(1, math.ceil(error.retry_after_seconds * 1000)))))
    elif isinstance(error, errors.NeedsQueryPlan):
        extra["additionalErrorInfo"] = error.plan_json
    return _response(rule.status, rule.code, rule.words(error), activity_id, told, extra)


def refusal_response(refusal: Refusal, activity_id: str) -> Response:
    told = [*headers.COMMON, (headers.CHARGE, _REFUSED_CHARGE), *refusal.more_headers]
    return _response(refusal.status, refusal.code, refusal.words, activity_id, told, {})


def failure_response(activity_id: str) -> Response:
    """For what nobody foresaw. What happened is in the server's log, under the same activity id."""
    words = "The server met an unexpected error; its log has the details under this activity id."
    return _response(500, "InternalServerError", words, activity_id, [*headers.COMMON, (headers.CHARGE, "0")], {})


def _response(
    status: int, code: str, words: str, activity_id: str, told: HeaderList, extra: dict[str, object]
) -> Response:
    body = {"code": code, "message": f"{words}\r\nActivityId: {activity_id}", **extra}
    return Response(status, told, dumps(body))
