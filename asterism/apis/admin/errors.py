"""How the admin door words the database's errors: one row each, and a test that none is missing."""

from __future__ import annotations

from asterism import errors
from asterism.apis.damage import report_damage
from asterism.apis.http import Response
from asterism.values.json_text import dumps

JSON_HEADERS = [("content-type", "application/json"), ("cache-control", "no-store")]

STATUS_AND_CODE: dict[type[errors.AsterismError], tuple[int, str]] = {
    errors.MalformedRequest: (400, "BadRequest"),
    errors.MalformedQuery: (400, "BadRequest"),
    errors.PartitionKeyMismatch: (400, "BadRequest"),
    errors.CrossPartitionNotEnabled: (400, "BadRequest"),
    errors.NeedsQueryPlan: (400, "BadRequest"),
    errors.TooLarge: (413, "RequestEntityTooLarge"),
    errors.Unauthorized: (401, "Unauthorized"),
    errors.Forbidden: (403, "Forbidden"),
    errors.ResourceNotFound: (404, "NotFound"),
    errors.OwnerNotFound: (404, "NotFound"),
    errors.ItemNotFound: (404, "NotFound"),
    errors.ResourceExists: (409, "Conflict"),
    errors.ItemExists: (409, "Conflict"),
    errors.UniqueKeyViolation: (409, "Conflict"),
    errors.ContainerRecreated: (410, "Gone"),
    errors.SessionNotAvailable: (404, "ReadSessionNotAvailable"),
    errors.PreconditionFailed: (412, "PreconditionFailed"),
    errors.TooMuchContention: (449, "RetryWith"),
    errors.RequestRateTooLarge: (429, "TooManyRequests"),
    errors.QueryMemoryInUse: (429, "TooManyRequests"),
    errors.QueryTookTooLong: (408, "RequestTimeout"),
    errors.LogicalPartitionFull: (403, "Forbidden"),
    errors.PhysicalPartitionFull: (403, "Forbidden"),
    errors.StorageFull: (507, "InsufficientStorage"),
    errors.StorageUnavailable: (503, "ServiceUnavailable"),
    errors.StoredDamage: (500, "InternalServerError"),
    errors.ReshapeRefused: (409, "ReshapeRefused"),
    errors.ThroughputRefused: (400, "BadRequest"),
}


def response_for(error: errors.AsterismError) -> Response:
    status, code = STATUS_AND_CODE[type(error)]
    return refusal(status, code, message_of(error), **details_of(error))


def refusal(status: int, code: str, message: str, **details: object) -> Response:
    return Response(status, JSON_HEADERS, dumps({"code": code, "message": message, **details}))


def details_of(error: errors.AsterismError) -> dict[str, object]:
    """What a program can use of an error, besides its code."""
    match error:
        case errors.MalformedQuery(code, _, start, end):
            return {"query_error": {"code": code, "start": start, "end": end}}
        case errors.RequestRateTooLarge(retry_after_seconds) | errors.QueryMemoryInUse(retry_after_seconds):
            return {"retry_after_seconds": retry_after_seconds}
        case _:
            return {}


def message_of(error: errors.AsterismError) -> str:
    match error:
        case errors.ResourceNotFound(kind, name) | errors.OwnerNotFound(kind, name):
            return f"There is no {kind} '{name}'."
        case errors.StoredDamage():
            return report_damage(error)
        case _:
            # A reason is a sentence for the person who asked; the constant text alone says less.
            return str(getattr(error, "reason", error))
