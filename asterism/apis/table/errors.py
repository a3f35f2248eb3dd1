"""Every refusal of the table protocols: status, code and message, and the table from the database's errors to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from xml.sax.saxutils import escape

from asterism import errors
from asterism.apis.damage import report_damage
from asterism.apis.storage.refusals import (
    Refusal,
    account_full,
    body_too_large,
    busy,
    internal_error,
    invalid_input,
    not_authenticated,
    not_permitted,
    resource_not_found,
)
from asterism.apis.translation import Translation
from asterism.apis.transports.http import HeaderList
from asterism.errors import AsterismError, Category
from asterism.languages.odata.malformed_filter import MalformedFilter
from asterism.models.tables.entities import FailureReason, OperationFailed
from asterism.values.json.text import dumps

JSON_ERROR_TYPE: Final = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
XML_ERROR_TYPE: Final = "application/xml"


def bad_query_syntax() -> Refusal:
    return invalid_input("Bad Request - Error in query syntax.")


def out_of_range(name: str, value: str) -> Refusal:
    return Refusal(400, "OutOfRangeInput", f"The '{name}' parameter of value '{value[:256]}' is out of range.")


def table_not_found() -> Refusal:
    return Refusal(404, "TableNotFound", "The table specified does not exist.")


def entity_exists() -> Refusal:
    return Refusal(409, "EntityAlreadyExists", "The specified entity already exists.")


def condition_not_satisfied() -> Refusal:
    return Refusal(
        412,
        "UpdateConditionNotSatisfied",
        "The update condition specified in the request was not satisfied.",
    )


def too_many_properties() -> Refusal:
    return Refusal(
        400,
        "TooManyProperties",
        "The entity contains more properties than allowed. Each entity can include up to 252 properties to store "
        "data. Each entity also has 3 system properties.",
    )


def entity_too_large() -> Refusal:
    return Refusal(400, "EntityTooLarge", "The entity is larger than the maximum allowed size (1MB).")


def value_too_large() -> Refusal:
    return Refusal(
        400,
        "PropertyValueTooLarge",
        "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 "
        "encoded and the maximum number of characters should be 32K or less.",
    )


def properties_need_value() -> Refusal:
    return Refusal(400, "PropertiesNeedValue", "The values are not specified for all properties in the entity.")


# The reason for which a write of an entity is not possible -> its refusal.
FAILURES: Final[dict[FailureReason, Callable[[], Refusal]]] = {
    FailureReason.EXISTS: entity_exists,
    FailureReason.NOT_FOUND: resource_not_found,
    FailureReason.ETAG_MISMATCH: condition_not_satisfied,
    FailureReason.TOO_MANY_PROPERTIES: too_many_properties,
    FailureReason.TOO_LARGE: entity_too_large,
}


def _malformed_filter(error: MalformedFilter) -> Refusal:
    return invalid_input(
        "The query condition specified in the request is invalid. "
        f"At character {error.position + 1} of the filter: {error.reason}"
    )


_BY_CATEGORY: Final[dict[Category, Callable[[Any], Refusal]]] = {
    Category.MALFORMED: lambda error: invalid_input(error.sentence),
    Category.TOO_LARGE: lambda _: body_too_large(),
    Category.UNAUTHENTICATED: lambda error: not_authenticated(error.sentence),
    Category.DENIED: lambda error: not_permitted(error.sentence),
    Category.ABSENT: lambda _: resource_not_found(),
    Category.EXISTS: lambda _: entity_exists(),
    Category.PRECONDITION: lambda _: condition_not_satisfied(),
    Category.REFUSED: lambda error: invalid_input(error.sentence),
    Category.CONTENTION: lambda _: busy(),
    Category.THROTTLED: lambda error: throttled(error.retry_after_seconds),
    Category.TIMED_OUT: lambda error: Refusal(500, "OperationTimedOut", error.sentence),
    Category.FULL: lambda _: account_full(),
    Category.UNAVAILABLE: lambda _: busy(),
    Category.INTERNAL: lambda _: internal_error(),
}

_OWN: Final[dict[type[AsterismError], Callable[[Any], Refusal]]] = {
    errors.MalformedRequest: lambda error: invalid_input(f"One of the request inputs is not valid. {error.reason}"),
    errors.PartitionKeyMismatch: lambda _: invalid_input(),
    errors.ResourceNotFound: lambda error: table_not_found() if error.kind == "table" else resource_not_found(),
    errors.OwnerNotFound: lambda _: table_not_found(),
    errors.ResourceExists: lambda _: Refusal(409, "TableAlreadyExists", "The table specified already exists."),
    OperationFailed: lambda error: FAILURES[error.failure](),
    MalformedFilter: _malformed_filter,
    errors.QueryTookTooLong: lambda _: Refusal(500, "OperationTimedOut", "The query took longer than it may."),
    errors.QuotaExceeded: lambda error: Refusal(
        403, "AccountLimitExceeded", f"The account's quota {error.quota} is {error.limit}."
    ),
    errors.LogicalPartitionFull: lambda _: Refusal(
        403, "Forbidden", "The PartitionKey has reached the maximum size of a logical partition."
    ),
    errors.PhysicalPartitionFull: lambda _: Refusal(
        403, "Forbidden", "The physical partition has reached its maximum size and holds a single PartitionKey."
    ),
    errors.StoredDamage: lambda error: Refusal(500, "InternalError", report_damage(error)),
    errors.ThroughputRefused: lambda error: Refusal(400, "BadRequest", error.reason),
}

TRANSLATION: Final = Translation(_BY_CATEGORY, _OWN)


def refusal_of(error: AsterismError) -> Refusal:
    return TRANSLATION.row(error)(error)


def throttled(retry_after_seconds: float) -> Refusal:
    """Return a 429. Clients repeat a POST or PATCH only if it has the plain `Retry-After` header."""
    milliseconds = max(1, math.ceil(retry_after_seconds * 1000))
    return Refusal(
        429,
        "TooManyRequests",
        "The request rate is too large: the table's request units of this second are spent.",
        more_headers=[
            ("retry-after", str(max(1, math.ceil(retry_after_seconds)))),
            ("x-ms-retry-after-ms", str(milliseconds)),
        ],
    )


def error_body(refusal: Refusal, *, request_id: str, now_wall_seconds: float) -> bytes:
    moment = datetime.fromtimestamp(now_wall_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
    message = f"{refusal.message}\nRequestId:{request_id}\nTime:{moment}"
    if refusal.is_xml:
        return (
            '<?xml version="1.0" encoding="utf-8"?><error '
            'xmlns="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">'
            f'<code>{escape(refusal.code)}</code><message xml:lang="en-US">{escape(message)}</message></error>'
        ).encode("utf-8", "replace")
    # With another key in `odata.error`, clients print the whole object instead of the message.
    return dumps({"odata.error": {"code": refusal.code, "message": {"lang": "en-US", "value": message}}})


def error_headers(refusal: Refusal) -> HeaderList:
    content_type = XML_ERROR_TYPE if refusal.is_xml else JSON_ERROR_TYPE
    return [("content-type", content_type), ("x-ms-error-code", refusal.code), *refusal.more_headers]
