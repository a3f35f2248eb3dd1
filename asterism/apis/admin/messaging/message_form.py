"""Messages and events that an operator writes: JSON to the sections of a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asterism.apis.admin.messaging.fields import optional_number, optional_text
from asterism.errors import AsterismError, MalformedRequest
from asterism.limits import KIB
from asterism.models.messages.messages import NewMessage
from asterism.values.amqp.message import (
    Header,
    Properties,
    encode_annotations,
    encode_application_properties,
    encode_data_body,
    encode_header,
    encode_properties,
)
from asterism.values.json.text import loads

# Of a request; more are sent by several.
MESSAGES_MAX: Final = 100
# The service's limits for a session id, a partition key and a message id.
_ID_CHARACTERS_MAX: Final = 128
_TTL_SECONDS_MAX: Final = 100 * 366 * 86_400
# The year 9999.
_MOMENT_MAX: Final = 253_402_300_799_999
_PROPERTIES_BYTES_MAX: Final = 64 * KIB
_PARTITION_KEY: Final = "x-opt-partition-key"
_TEXT_FIELDS: Final = ("subject", "to", "reply_to", "correlation_id", "reply_to_group_id")


def listed(fields: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the messages of a request: a list of objects, neither empty nor too long."""
    found = fields.get(name)
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise MalformedRequest(reason=f"'{name}' must be a list of objects.")
    if len(found) > MESSAGES_MAX:
        raise MalformedRequest(reason=f"'{name}' has more than {MESSAGES_MAX} entries; send several requests.")
    return found


def read_message(fields: Mapping[str, Any], *, message_id: str) -> NewMessage:
    """Return a message for a queue or a topic; `message_id` is for one that brings none."""
    session_id, key = id_text(fields, "session_id"), id_text(fields, "partition_key")
    if session_id is not None and key is not None and session_id != key:
        raise MalformedRequest(reason="The partition key of a message of a session is the id of the session.")
    ttl_seconds = optional_number(fields, "ttl_seconds", minimum=1, maximum=_TTL_SECONDS_MAX)
    ttl_ms = None if ttl_seconds is None else ttl_seconds * 1000
    name = id_text(fields, "message_id") or message_id
    header = b"" if ttl_ms is None else encode_header(Header(ttl=ttl_ms))
    annotations = b"" if key is None else encode_annotations({_PARTITION_KEY: key})
    return NewMessage(
        content=header + annotations + _bare_message(fields, message_id=name, group_id=session_id),
        message_id=name,
        session_id=session_id,
        partition_key=key,
        ttl_ms=ttl_ms,
        scheduled_ms=optional_number(fields, "scheduled_ms", minimum=0, maximum=_MOMENT_MAX),
    )


def read_event(fields: Mapping[str, Any]) -> bytes:
    """Return the sections of an event for a hub, which keeps the partition key beside them."""
    return _bare_message(fields, message_id=id_text(fields, "message_id"), group_id=None)


def _bare_message(fields: Mapping[str, Any], *, message_id: str | None, group_id: str | None) -> bytes:
    texts = {name: optional_text(fields, name) for name in _TEXT_FIELDS}
    content_type = optional_text(fields, "content_type")
    if any(value is not None for value in (message_id, group_id, content_type, *texts.values())):
        properties = encode_properties(
            Properties(
                message_id=message_id,
                group_id=group_id,
                content_type=None if content_type is None else _ascii(content_type, "content_type"),
                **texts,
            )
        )
    else:
        properties = b""
    return properties + _application_properties(fields) + encode_data_body(_body(fields))


def _application_properties(fields: Mapping[str, Any]) -> bytes:
    named = fields.get("properties", {})
    if not isinstance(named, dict) or not all(
        isinstance(value, str | int | float | bool) or value is None for value in named.values()
    ):
        raise MalformedRequest(reason="'properties' must be an object of texts, numbers and truth values.")
    if not named:
        return b""
    if any(type(value) is int and not -(2**63) <= value < 2**63 for value in named.values()):
        raise MalformedRequest(reason="A whole number of 'properties' has more than 64 bits.")
    encoded = encode_application_properties(named)
    if len(encoded) > _PROPERTIES_BYTES_MAX:
        raise MalformedRequest(reason="The properties of a message have at most 64 KB.")
    return encoded


def _body(fields: Mapping[str, Any]) -> bytes:
    """Return the bytes of `body`, or of `body_hex`; with `is_json`, the text must be JSON."""
    digits = optional_text(fields, "body_hex")
    if digits is not None:
        try:
            return bytes.fromhex(digits)
        except ValueError:
            raise MalformedRequest(reason="'body_hex' must be pairs of hexadecimal digits.") from None
    text = optional_text(fields, "body") or ""
    if fields.get("is_json"):
        try:
            loads(text)
        except AsterismError:
            raise MalformedRequest(reason="The body is not JSON.") from None
    return text.encode("utf-8", "surrogatepass")


def id_text(fields: Mapping[str, Any], name: str) -> str | None:
    """Return the id of a message or session, or a partition key; None if it is absent."""
    text = optional_text(fields, name)
    if text is not None and len(text) > _ID_CHARACTERS_MAX:
        raise MalformedRequest(reason=f"'{name}' has at most {_ID_CHARACTERS_MAX} characters.")
    return text


def _ascii(text: str, name: str) -> str:
    if not text.isascii():
        raise MalformedRequest(reason=f"'{name}' has characters other than those of ASCII.")
    return text
