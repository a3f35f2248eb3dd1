"""Lists of containers and of blobs, page by page."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from asterism.cli.storage_client import StorageClient, text_in

# The service's limit.
_PAGE_ENTRIES_MAX: Final = 5000


@dataclass(frozen=True, slots=True)
class ListedContainer:
    name: str
    modified: str
    public_access: str | None


@dataclass(frozen=True, slots=True)
class ListedBlob:
    """A blob; or, without a kind, the beginning that several names share, which ends with the delimiter."""

    name: str
    kind: str | None
    size: int
    modified: str
    content_type: str


def list_containers(client: StorageClient, prefix: str) -> Iterator[ListedContainer]:
    for page in _pages(client, "", {"comp": "list", "prefix": prefix}):
        for element in page.iter("Container"):
            properties = _properties(element)
            yield ListedContainer(
                _name(element), text_in(properties, "Last-Modified"), text_in(properties, "PublicAccess") or None
            )


def list_blobs(client: StorageClient, container: str, prefix: str, delimiter: str = "") -> Iterator[ListedBlob]:
    """Yield the blobs in the order of their names; with a delimiter, what has it behind the prefix is one entry."""
    query = {"restype": "container", "comp": "list", "prefix": prefix}
    if delimiter:
        query["delimiter"] = delimiter
    for page in _pages(client, container, query):
        for element in page.iterfind("Blobs/*"):
            properties = _properties(element)
            yield ListedBlob(
                _name(element),
                text_in(properties, "BlobType") or None,
                int(text_in(properties, "Content-Length") or 0),
                text_in(properties, "Last-Modified"),
                text_in(properties, "Content-Type"),
            )


def _pages(client: StorageClient, path: str, query: dict[str, str]) -> Iterator[ElementTree.Element]:
    query = {**query, "maxresults": str(_PAGE_ENTRIES_MAX)}
    while True:
        page = client.ask("GET", path, query=query).xml
        yield page
        marker = page.findtext("NextMarker")
        if not marker:
            return
        query["marker"] = marker


def _properties(element: ElementTree.Element) -> ElementTree.Element:
    found = element.find("Properties")
    return ElementTree.Element("Properties") if found is None else found


def _name(element: ElementTree.Element) -> str:
    """Return the name of an entry, which is escaped where XML cannot express it."""
    found = element.find("Name")
    if found is None:
        return ""
    return unquote(found.text or "") if found.get("Encoded") == "true" else found.text or ""
