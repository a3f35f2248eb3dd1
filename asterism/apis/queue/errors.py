"""Every refusal that only queues have, and the table from the database's errors to refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from asterism import errors
from asterism.apis.storage.refusals import Refusal, invalid_query_parameter, resource_not_found
from asterism.apis.storage.xml_errors import xml_translation
from asterism.models.queues.messages import MessageFailure, MessageRefused


def queue_not_found() -> Refusal:
    return Refusal(404, "QueueNotFound", "The specified queue does not exist.")


def queue_exists() -> Refusal:
    return Refusal(409, "QueueAlreadyExists", "The specified queue already exists.")


def message_not_found() -> Refusal:
    return Refusal(404, "MessageNotFound", "The specified message does not exist.")


def receipt_mismatch() -> Refusal:
    return Refusal(
        400,
        "PopReceiptMismatch",
        "The specified pop receipt did not match the pop receipt for a dequeued message.",
    )


def malformed_receipt(text: str) -> Refusal:
    return invalid_query_parameter("popreceipt", text, "Invalid pop receipt format")


def visible_after_expiry() -> Refusal:
    return Refusal(
        400,
        "OutOfRangeQueryParameterValue",
        "One of the query parameters specified in the request URI is outside the permissible range: the message would "
        "expire before it becomes visible.",
        fields=(("QueryParameterName", "visibilitytimeout"),),
    )


# The reason for which a call on a message is refused -> its refusal.
FAILURES: Final[dict[MessageFailure, Callable[[], Refusal]]] = {
    MessageFailure.NOT_FOUND: message_not_found,
    MessageFailure.RECEIPT_OUTDATED: receipt_mismatch,
    MessageFailure.VISIBLE_AFTER_EXPIRY: visible_after_expiry,
}

TRANSLATION: Final = xml_translation(
    {
        errors.ResourceNotFound: lambda error: queue_not_found() if error.kind == "queue" else resource_not_found(),
        errors.OwnerNotFound: lambda _: queue_not_found(),
        MessageRefused: lambda error: FAILURES[error.failure](),
    }
)
