"""Errors of blobs and queues: their XML, and the table from the database's errors to their refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from xml.sax.saxutils import escape

from asterism import errors
from asterism.apis.damage import report_damage
from asterism.apis.storage.headers import time_text
from asterism.apis.storage.refusals import (
    Refusal,
    account_full,
    body_too_large,
    busy,
    condition_not_met,
    internal_error,
    invalid_input,
    not_authenticated,
    not_permitted,
    resource_not_found,
    timed_out,
)
from asterism.apis.storage.xml_text import DECLARATION, leaf, xml_safe
from asterism.apis.translation import Translation
from asterism.apis.transports.http import HeaderList
from asterism.errors import AsterismError, Category

Row = Callable[[Any], Refusal]

_BY_CATEGORY: Final[dict[Category, Row]] = {
    Category.MALFORMED: lambda error: invalid_input(error.sentence),
    Category.TOO_LARGE: lambda error: body_too_large(getattr(error, "bytes_max", None)),
    Category.UNAUTHENTICATED: lambda error: not_authenticated(error.sentence),
    Category.DENIED: lambda error: not_permitted(error.sentence),
    Category.ABSENT: lambda _: resource_not_found(),
    Category.EXISTS: lambda _: Refusal(409, "ResourceAlreadyExists", "The specified resource already exists."),
    Category.PRECONDITION: lambda _: condition_not_met(),
    Category.REFUSED: lambda error: invalid_input(error.sentence),
    Category.CONTENTION: lambda _: busy(),
    Category.THROTTLED: lambda error: busy(error.retry_after_seconds),
    Category.TIMED_OUT: lambda error: timed_out(error.sentence),
    Category.FULL: lambda _: account_full(),
    Category.UNAVAILABLE: lambda _: busy(),
    Category.INTERNAL: lambda _: internal_error(),
}
_OWN: Final[dict[type[AsterismError], Row]] = {
    errors.QuotaExceeded: lambda error: Refusal(
        403, "AccountLimitExceeded", f"The account's quota {error.quota} is {error.limit}."
    ),
    errors.LogicalPartitionFull: lambda _: Refusal(
        403, "AccountLimitExceeded", "The partition has reached the maximum size of a logical partition."
    ),
    errors.PhysicalPartitionFull: lambda _: Refusal(
        403, "AccountLimitExceeded", "The physical partition has reached its maximum size and cannot be split."
    ),
    errors.StoredDamage: lambda error: Refusal(500, "InternalError", report_damage(error)),
}


def xml_translation(own: Mapping[type[AsterismError], Row]) -> Translation[Row]:
    """Return the table of a door: the rows that blobs and queues share, and its own."""
    return Translation(_BY_CATEGORY, {**_OWN, **own})


def xml_error_body(refusal: Refusal, *, request_id: str, now_wall_seconds: float) -> bytes:
    message = f"{refusal.message}\nRequestId:{request_id}\nTime:{time_text(now_wall_seconds)}"
    more = "".join(leaf(name, xml_safe(value)) for name, value in refusal.fields)
    content = f"<Code>{escape(refusal.code)}</Code><Message>{escape(xml_safe(message))}</Message>{more}"
    return f"{DECLARATION}<Error>{content}</Error>".encode("utf-8", "replace")


def xml_error_headers(refusal: Refusal) -> HeaderList:
    return [("content-type", "application/xml"), ("x-ms-error-code", refusal.code), *refusal.more_headers]
