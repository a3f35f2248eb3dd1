"""From the database's errors to the admin door's: status, code and message, in one table."""

from __future__ import annotations

from typing import Final

from asterism import errors
from asterism.apis.damage import report_damage
from asterism.apis.translation import Translation
from asterism.apis.transports.http import Response
from asterism.errors import Category
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.models.messages.messages import MessagingRefused
from asterism.values.json.text import dumps

JSON_HEADERS = [("content-type", "application/json"), ("cache-control", "no-store")]

_BY_CATEGORY: Final = {
    Category.MALFORMED: (400, "BadRequest"),
    Category.TOO_LARGE: (413, "RequestEntityTooLarge"),
    Category.UNAUTHENTICATED: (401, "Unauthorized"),
    Category.DENIED: (403, "Forbidden"),
    Category.ABSENT: (404, "NotFound"),
    Category.EXISTS: (409, "Conflict"),
    Category.PRECONDITION: (412, "PreconditionFailed"),
    Category.REFUSED: (400, "BadRequest"),
    Category.CONTENTION: (449, "RetryWith"),
    Category.THROTTLED: (429, "TooManyRequests"),
    Category.TIMED_OUT: (408, "RequestTimeout"),
    Category.FULL: (507, "InsufficientStorage"),
    Category.UNAVAILABLE: (503, "ServiceUnavailable"),
    Category.INTERNAL: (500, "InternalServerError"),
}

_OWN: Final[dict[type[errors.AsterismError], tuple[int, str]]] = {
    errors.ReshapeRefused: (409, "ReshapeRefused"),
    errors.LogicalPartitionFull: (403, "Forbidden"),
    errors.PhysicalPartitionFull: (403, "Forbidden"),
    MessagingRefused: (409, "MessagingRefused"),
}

TRANSLATION: Final = Translation(_BY_CATEGORY, _OWN)


def response_for(error: errors.AsterismError) -> Response:
    status, code = TRANSLATION.row(error)
    return refusal(status, code, message_of(error), **details_of(error))


def refusal(status: int, code: str, message: str, **details: object) -> Response:
    return Response(status, JSON_HEADERS, dumps({"code": code, "message": message, **details}))


def details_of(error: errors.AsterismError) -> dict[str, object]:
    """Return the parts of an error that a program can use besides its code."""
    match error:
        case MalformedQuery(code, _, start, end):
            return {"query_error": {"code": code, "start": start, "end": end}}
        case errors.Throttled(retry_after_seconds):
            return {"retry_after_seconds": retry_after_seconds}
        case _:
            return {}


def message_of(error: errors.AsterismError) -> str:
    match error:
        case errors.ResourceNotFound(kind, name) | errors.OwnerNotFound(kind, name):
            return f"There is no {kind} '{name}'."
        case errors.StoredDamage():
            return report_damage(error)
        case MessagingRefused(failure, reason):
            return reason or f"The messages do not permit it: {failure.value}."
        case _:
            # The variables too, where there is no reason: an operator may see them.
            return str(getattr(error, "reason", error))
