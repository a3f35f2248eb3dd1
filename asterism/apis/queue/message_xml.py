"""The XML of messages: the text that a request carries, and the lists that answers have."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from asterism.apis.storage.headers import http_date
from asterism.apis.storage.refusals import body_too_large, invalid_xml_document
from asterism.apis.storage.xml_text import children, leaf, node, read_document, text_leaf, xml_safe
from asterism.limits import KIB
from asterism.models.queues.messages import Message
from asterism.values.ticks import TICKS_PER_SECOND

# The service's limit, of the text as UTF-8.
TEXT_BYTES_MAX: Final = 64 * KIB
# A text in which every character is escaped takes six times its bytes.
BODY_BYTES_MAX: Final = 6 * TEXT_BYTES_MAX + KIB
# The expiration of a message that never expires.
NEVER_DATE: Final = "Fri, 31 Dec 9999 23:59:59 GMT"


def read_text(body: bytes) -> bytes:
    """Return the text of the message in a request."""
    parts = children(read_document(_with_returns(body), "QueueMessage", bytes_max=BODY_BYTES_MAX * 2))
    element = parts.get("MessageText")
    if element is None or len(element):
        raise invalid_xml_document()
    text = (element.text or "").encode()
    if len(text) > TEXT_BYTES_MAX:
        raise body_too_large(TEXT_BYTES_MAX)
    return text


def _with_returns(body: bytes) -> bytes:
    """Return the document with its carriage returns as references. Clients write them as they are, and a parser would
    read them as line breaks."""
    if b"\r" not in body or b"<![CDATA[" in body:
        return body
    start = body.find(b">", body.find(b"<MessageText"))
    end = body.rfind(b"</MessageText")
    if not 0 <= start < end:
        return body
    return body[:start] + body[start:end].replace(b"\r", b"&#13;") + body[end:]


def write_put(message: Message) -> str:
    return node("QueueMessagesList", node("QueueMessage", _head(message) + _receipt(message)))


def write_taken(messages: Iterable[Message]) -> str:
    return node(
        "QueueMessagesList",
        "".join(node("QueueMessage", _head(message) + _receipt(message) + _content(message)) for message in messages),
    )


def write_peeked(messages: Iterable[Message]) -> str:
    """Return messages without their receipts: a peek gives no right to change them."""
    return node(
        "QueueMessagesList",
        "".join(node("QueueMessage", _head(message) + _content(message)) for message in messages),
    )


def date_of(ticks: int) -> str:
    return _date_of_second(ticks // TICKS_PER_SECOND)


# The messages of a second share their dates: of insertion, of expiry, and of their next visibility.
@lru_cache(maxsize=256)
def _date_of_second(wall_seconds: int) -> str:
    return http_date(wall_seconds)


def _head(message: Message) -> str:
    expires_at = message.expires_at
    return (
        leaf("MessageId", message.id_text)
        + leaf("InsertionTime", date_of(message.state.inserted_at))
        + leaf("ExpirationTime", NEVER_DATE if expires_at is None else date_of(expires_at))
    )


def _receipt(message: Message) -> str:
    return leaf("PopReceipt", message.receipt) + leaf("TimeNextVisible", date_of(message.visible_at))


def _content(message: Message) -> str:
    text = message.text.decode("utf-8", "replace")
    return leaf("DequeueCount", message.state.dequeue_count) + text_leaf("MessageText", xml_safe(text))
