"""The tags of a blob: their rules, the header `x-ms-tags` and the document `Tags`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import unquote_plus, urlencode
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from asterism.apis.blob.refused_input import RefusedInput, invalid_document
from asterism.limits import KIB

TAGS_MAX: Final = 10
TAG_NAME_CHARACTERS_MAX: Final = 128
TAG_VALUE_CHARACTERS_MAX: Final = 256
# Ten tags of the largest size, each character percent-encoded, take 12 KiB.
TAGS_BYTES_MAX: Final = 16 * KIB

_PERMITTED: Final = re.compile(r"[a-zA-Z0-9 +\-./:=_]*")


def checked_tags(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the tags in the order of their names; RefusedInput if they break a rule."""
    tags: dict[str, str] = {}
    for name, value in pairs:
        if not name:
            raise RefusedInput(400, "EmptyTagName", "The name of one of the tag key-value pairs is empty.")
        if name in tags:
            raise RefusedInput(400, "DuplicateTagNames", "The tag names specified are not unique.")
        if len(name) > TAG_NAME_CHARACTERS_MAX or len(value) > TAG_VALUE_CHARACTERS_MAX or len(tags) == TAGS_MAX:
            raise RefusedInput(
                400,
                "TagsTooLarge",
                "The tags specified exceed the maximum permissible limit. A blob has at most "
                f"{TAGS_MAX} tags, with names of at most {TAG_NAME_CHARACTERS_MAX} characters and values of at most "
                f"{TAG_VALUE_CHARACTERS_MAX}.",
            )
        if not _PERMITTED.fullmatch(name) or not _PERMITTED.fullmatch(value):
            raise RefusedInput(
                400,
                "InvalidTag",
                "The tags specified are invalid. They contain characters that are not permitted: "
                "use letters, digits, blanks and + - . / : = _",
            )
        tags[name] = value
    return dict(sorted(tags.items()))


def tags_from_header(header: str) -> dict[str, str]:
    """Return the tags of `x-ms-tags`, which has the form of a query: `name=value&name=value`."""
    if len(header) > TAGS_BYTES_MAX:
        raise RefusedInput(400, "TagsTooLarge", "The tags specified exceed the maximum permissible limit.")
    pairs: list[tuple[str, str]] = []
    for part in filter(None, header.split("&")):
        name, equals, value = part.partition("=")
        if not equals:
            raise RefusedInput(400, "InvalidTag", "The tags specified are invalid: write name=value&name=value.")
        pairs.append((unquote_plus(name), unquote_plus(value)))
    return checked_tags(pairs)


def tags_to_header(tags: Mapping[str, str]) -> str:
    return urlencode(tags)


def tags_from_xml(body: bytes) -> dict[str, str]:
    """Return the tags of a document `Tags`."""
    if len(body) > TAGS_BYTES_MAX:
        raise RefusedInput(400, "TagsTooLarge", "The tags specified exceed the maximum permissible limit.")
    # With a DTD, a few bytes can stand for gigabytes. In UTF-16 the parser still bounds the growth of entities.
    if b"<!" in body.replace(b"\0", b""):
        raise invalid_document("The document must not have a DTD, comments or CDATA.")
    try:
        root = ElementTree.fromstring(body)
    except (ElementTree.ParseError, ValueError, LookupError):
        raise invalid_document() from None
    if _name(root) != "Tags":
        raise invalid_document("The root of the document must be Tags.")
    tag_set = _child(root, "TagSet")
    if tag_set is None:
        raise invalid_document("Tags must have an element TagSet.")
    return checked_tags(_pair(tag) for tag in tag_set)


def tags_to_xml(tags: Mapping[str, str]) -> str:
    """Return the document `Tags`."""
    return f'<?xml version="1.0" encoding="utf-8"?><Tags>{tag_set_xml(tags)}</Tags>'


def tag_set_xml(tags: Mapping[str, str]) -> str:
    """Return the element `TagSet`, which listings and found blobs carry too."""
    pairs = "".join(
        f"<Tag><Key>{escape(name)}</Key><Value>{escape(value)}</Value></Tag>" for name, value in tags.items()
    )
    return f"<TagSet>{pairs}</TagSet>"


def _pair(tag: ElementTree.Element) -> tuple[str, str]:
    key, value = _child(tag, "Key"), _child(tag, "Value")
    if _name(tag) != "Tag" or key is None or value is None or len(key) or len(value):
        raise invalid_document("A TagSet has elements Tag, each with the texts Key and Value.")
    return key.text or "", value.text or ""


def _child(element: ElementTree.Element, name: str) -> ElementTree.Element | None:
    return next((child for child in element if _name(child) == name), None)


def _name(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]
