"""Messages and events as operators read them: everything decoded, and nothing changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asterism.apis.admin.messaging.values_view import describe_body, describe_value
from asterism.models.messages.messages import Received
from asterism.values.amqp.message import Header, Message, Properties
from asterism.values.amqp.types import InvalidAmqp

DEAD_LETTER_REASON: Final = "DeadLetterReason"
DEAD_LETTER_DESCRIPTION: Final = "DeadLetterErrorDescription"
DEAD_LETTER_PROPERTIES: Final = frozenset({DEAD_LETTER_REASON, DEAD_LETTER_DESCRIPTION})


def describe_message(received: Received) -> dict[str, Any]:
    """Describe a message of a queue or subscription."""
    sections = describe_sections(received.content)
    properties = {**sections["application_properties"], **_described(received.overlay)}
    return {
        "sequence_number": received.sequence_number,
        "state": received.state.name.lower(),
        "enqueued_ms": received.enqueued_ms,
        "expires_ms": received.expires_ms,
        "scheduled_ms": received.scheduled_ms,
        "locked_until_ms": received.locked_until_ms,
        "delivery_count": received.delivery_count,
        "session_id": received.session_id,
        "enqueued_sequence_number": received.enqueued_sequence_number,
        "lock_token": None if received.lock_token is None else received.lock_token.hex(),
        "dead_letter": {
            "source": received.dead_letter_source,
            "reason": properties.get(DEAD_LETTER_REASON),
            "description": properties.get(DEAD_LETTER_DESCRIPTION),
        },
        **sections,
        "application_properties": properties,
        "bytes": len(received.content),
    }


def describe_sections(content: bytes) -> dict[str, Any]:
    """Describe the sections of a message; bytes that cannot be decoded are shown as digits, with the problem."""
    try:
        message = Message.parse(content)
        return {
            "header": _fields(message.header),
            "annotations": _described(message.annotations),
            "properties": _fields(message.properties),
            "application_properties": _described(message.application_properties),
            "body": describe_body(message.body),
            "problem": None,
        }
    except InvalidAmqp as problem:
        return {
            "header": {},
            "annotations": {},
            "properties": {},
            "application_properties": {},
            "body": describe_body(content),
            "problem": str(problem),
        }


def _fields(section: Header | Properties) -> dict[str, Any]:
    """Return the fields of a header or of properties that have a value."""
    return {name: describe_value(value) for name, value in section._asdict().items() if value is not None}


def _described(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): describe_value(value) for name, value in values.items()}
