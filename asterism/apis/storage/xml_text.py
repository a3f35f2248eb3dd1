"""XML of the storage protocols: documents that clients send, and the parts of those that they get."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from asterism.apis.storage.refusals import invalid_xml_document
from asterism.apis.transports.http import Response
from asterism.limits import KIB

# Five rules or policies of the largest size take a tenth of it.
DOCUMENT_BYTES_MAX: Final = 128 * KIB
DECLARATION: Final = '<?xml version="1.0" encoding="utf-8"?>'
_TYPE: Final = ("content-type", "application/xml")
# Characters that no XML document can hold, not even as a reference.
_IMPOSSIBLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# A parser reads a bare carriage return as a line break.
_RETURN: Final = {"\r": "&#13;"}


def read_document(body: bytes, root: str, *, bytes_max: int = DOCUMENT_BYTES_MAX) -> ElementTree.Element:
    """Return the root of a document. A DTD is refused: with it, a few bytes can stand for gigabytes."""
    if len(body) > bytes_max:
        raise invalid_xml_document("The document is too large.")
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body:
        raise invalid_xml_document()
    parser = ElementTree.XMLParser(target=_TreeWithoutTypes())
    try:
        parser.feed(body)
        element = parser.close()
    except (ElementTree.ParseError, ValueError, LookupError):
        raise invalid_xml_document() from None
    if local_name(element) != root:
        raise invalid_xml_document()
    return element


class _TreeWithoutTypes(ElementTree.TreeBuilder):
    """Refuses a DTD where the parser meets it: the search of the bytes misses those of other encodings."""

    def doctype(self, name: str, public_id: str | None, system: str | None) -> None:  # noqa: ARG002
        raise ValueError("a document with a DTD")


def local_name(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def children(element: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {local_name(child): child for child in element}


def text_of(element: ElementTree.Element | None) -> str:
    return (element.text or "").strip() if element is not None else ""


def node(name: str, content: str) -> str:
    return f"<{name}>{content}</{name}>" if content else f"<{name} />"


def leaf(name: str, value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return node(name, escape(text))


def text_leaf(name: str, text: str) -> str:
    """Return an element whose text arrives as it is, line breaks included. See `xml_safe` for what no XML can hold."""
    return node(name, escape(text, _RETURN))


def attribute(value: str) -> str:
    """Return the value of an attribute in its quotes."""
    return quoteattr(value)


def has_impossible_characters(text: str) -> bool:
    """Return True for a text with characters that XML cannot hold."""
    return _IMPOSSIBLE.search(text) is not None


def xml_safe(text: str) -> str:
    """Return a text with a question mark in place of every character that XML cannot hold."""
    return _IMPOSSIBLE.sub("?", text)


def document(content: str) -> bytes:
    return f"{DECLARATION}{content}".encode("utf-8", "replace")


def xml_response(status: int, content: str, more_headers: Iterable[tuple[str, str]] = ()) -> Response:
    return Response(status, [_TYPE, *more_headers], document(content))
