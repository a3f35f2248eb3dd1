"""The XML of the protocol: service properties and access policies."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape

from asterism.apis.table.errors import Refusal
from asterism.limits import KIB

# Five rules or policies of the largest size take a tenth of it.
DOCUMENT_BYTES_MAX = 128 * KIB
DECLARATION = '<?xml version="1.0" encoding="utf-8"?>'


def invalid_document(message: str = "XML specified is not syntactically valid.") -> Refusal:
    return Refusal(400, "InvalidXmlDocument", message, is_xml=True)


def invalid_value(name: str) -> Refusal:
    return Refusal(
        400,
        "InvalidXmlNodeValue",
        f"The value for one of the XML nodes is not in the correct format: {name}.",
        is_xml=True,
    )


def read_document(body: bytes, root: str) -> ElementTree.Element:
    """Return the root of a document. A DTD is refused: with it, a few bytes can stand for gigabytes."""
    if len(body) > DOCUMENT_BYTES_MAX:
        raise invalid_document("The document is too large.")
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body:
        raise invalid_document()
    try:
        element = ElementTree.fromstring(body)
    except (ElementTree.ParseError, ValueError, LookupError):
        raise invalid_document() from None
    if local_name(element) != root:
        raise invalid_document()
    return element


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
