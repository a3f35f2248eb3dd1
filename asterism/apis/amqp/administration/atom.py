"""Atom, as Service Bus speaks it: entries and feeds around descriptions, in requests and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from asterism.apis.amqp.administration.durations import write_moment
from asterism.apis.storage.refusals import Refusal
from asterism.apis.storage.xml_text import (
    attribute,
    children,
    leaf,
    node,
    read_document,
    xml_safe,
)
from asterism.apis.transports.http import Response
from asterism.errors import MalformedRequest

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

ATOM: Final = "http://www.w3.org/2005/Atom"
CONNECT: Final = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
INSTANCE: Final = "http://www.w3.org/2001/XMLSchema-instance"
SCHEMA: Final = "http://www.w3.org/2001/XMLSchema"
_TYPE: Final = f"{{{INSTANCE}}}type"
# A description with rules of all twelve kinds and a filter of 1,024 characters takes a tenth of it.
DOCUMENT_BYTES_MAX: Final = 1024 * 1024
_ENTRY_TYPE: Final = ("content-type", "application/atom+xml;type=entry;charset=utf-8")
_FEED_TYPE: Final = ("content-type", "application/atom+xml;type=feed;charset=utf-8")


# --- requests -------------------------------------------------------------------------------------------------------


def read_content(body: bytes) -> Element:
    """Return the description in an entry, such as the element QueueDescription; MalformedRequest without one."""
    try:
        entry = read_document(body, "entry", bytes_max=DOCUMENT_BYTES_MAX)
    except Refusal as refusal:
        raise MalformedRequest(reason=f"The body is not an Atom entry. {refusal.message}") from None
    content = children(entry).get("content")
    if content is None or len(content) != 1:
        raise MalformedRequest(reason="The entry does not have a content with a single description.")
    return content[0]


def text_of(element: Element) -> str:
    return element.text or ""


def instance_type(element: Element) -> str:
    """Return the type that an element says it has, without its prefix; empty if it says none."""
    return element.get(_TYPE, "").rpartition(":")[2]


# --- answers --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of an answer: a name, the address, and the XML of its description."""

    name: str
    # Below the namespace, without a slash at its beginning.
    path: str
    content: str
    created_ms: int
    updated_ms: int


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list, and the places of the next part, if there is more."""

    entries: Sequence[Entry]
    next_skip: int | None = None
    top: int = 0


def entry_response(status: int, base: str, entry: Entry, api_version: str) -> Response:
    """`base` is the address of the namespace, as `https://host`."""
    return Response(status, [_ENTRY_TYPE], _encode(_entry(base, entry, api_version, is_root=True)))


def feed_response(base: str, path: str, title: str, page: Page, api_version: str, *, now_ms: int) -> Response:
    query = f"api-version={quote(api_version)}"
    address = f"{base}/{quote(path)}?{query}"
    links = f'<link rel="self" href={attribute(address)}/>'
    if page.next_skip is not None:
        # Clients take the second link for the next page.
        more = f"{base}/{quote(path)}?$skip={page.next_skip}&$top={page.top}&{query}"
        links += f'<link rel="next" href={attribute(more)}/>'
    entries = "".join(_entry(base, entry, api_version, is_root=False) for entry in page.entries)
    content = (
        f'<feed xmlns="{ATOM}"><title type="text">{title}</title>{leaf("id", address)}'
        f"{leaf('updated', write_moment(now_ms))}{links}{entries}</feed>"
    )
    return Response(200, [_FEED_TYPE], _encode(content))


def empty_feed_response(base: str, path: str, *, now_ms: int) -> Response:
    """Answer a request for an entity that does not exist: clients make their error of it."""
    return feed_response(base, path, "Publicly Listed Services", Page(()), "2021-05", now_ms=now_ms)


def _entry(base: str, entry: Entry, api_version: str, *, is_root: bool) -> str:
    address = f"{base}/{quote(entry.path)}?api-version={quote(api_version)}"
    parts = (
        leaf("id", address),
        f'<title type="text">{_escaped(entry.name)}</title>',
        leaf("published", write_moment(entry.created_ms)),
        leaf("updated", write_moment(entry.updated_ms)),
        node("author", leaf("name", base.partition("://")[2].partition(".")[0])),
        f'<link rel="self" href={attribute(address)}/>',
        f'<content type="application/xml">{entry.content}</content>',
    )
    namespace = f' xmlns="{ATOM}"' if is_root else ""
    return f"<entry{namespace}>{''.join(parts)}</entry>"


def described(name: str, content: str) -> str:
    """Return the element of a description with the namespaces that its children use."""
    return f'<{name} xmlns="{CONNECT}" xmlns:i="{INSTANCE}">{content}</{name}>'


def error_response(status: int, detail: str) -> Response:
    content = f"<Error>{leaf('Code', status)}{leaf('Detail', xml_safe(detail))}</Error>"
    return Response(status, [("content-type", "application/xml; charset=utf-8")], _encode(content))


def _escaped(text: str) -> str:
    return leaf("x", text)[3:-4]


def _encode(content: str) -> bytes:
    return content.encode("utf-8", "replace")
