"""List Blobs, flat or by hierarchy."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from asterism.access.sas_grants import ResourceType
from asterism.apis.blob.context import BlobCall, container_of, now_ticks
from asterism.apis.blob.listing_xml import Shown, blob_xml, name_xml, prefix_xml
from asterism.apis.storage.headers import read_whole
from asterism.apis.storage.refusals import invalid_query_parameter
from asterism.apis.storage.routes import Needs
from asterism.apis.storage.xml_text import attribute, has_impossible_characters, text_leaf, xml_response, xml_safe
from asterism.apis.transports.http import Response
from asterism.models.blobs.calls import ListPage, ListQuery, Marker
from asterism.models.blobs.record import BlobRecord, Role

PAGE_ENTRIES_MAX: Final = 5_000
_INCLUDES: Final = frozenset(
    {
        "copy",
        "deleted",
        "deletedwithversions",
        "immutabilitypolicy",
        "legalhold",
        "metadata",
        "permissions",
        "snapshots",
        "tags",
        "uncommittedblobs",
        "versions",
    }
)
# Public access is to blobs that are committed, and not deleted.
_NEVER_PUBLIC: Final = frozenset({"deleted", "deletedwithversions", "uncommittedblobs"})
_LIST: Final = Needs(ResourceType.CONTAINER, "l", "l")
_TAGS: Final = Needs(ResourceType.CONTAINER, "t", "t")
# The longest name of a blob, each of its characters of three bytes, in base64 and with room to spare.
_MARKER_CHARACTERS_MAX: Final = 8_192
_MARKER: Final = re.compile(r"2!(\d{0,19})!([A-Za-z0-9_-]+)", re.ASCII)


async def list_blobs(call: BlobCall) -> Response:
    container = container_of(call)
    query = call.query
    includes = read_includes(query.get("include"), _INCLUDES)
    if "tags" in includes:
        call.allow(_TAGS)
    if not _NEVER_PUBLIC.isdisjoint(includes):
        call.allow(_LIST)
    limit = read_whole(query, "maxresults", minimum=1, maximum=1 << 31)
    marker, delimiter = query.get("marker") or "", query.get("delimiter") or ""
    after = read_marker(marker)
    start_from = query.get("startfrom") or ""
    if after is None and start_from:
        after = Marker(start_from)
    end_before = query.get("endbefore") or ""
    page = await container.list(
        ListQuery(
            prefix=query.get("prefix") or "",
            delimiter=delimiter,
            after=after,
            limit=min(limit or PAGE_ENTRIES_MAX, PAGE_ENTRIES_MAX),
            snapshots="snapshots" in includes,
            versions="versions" in includes or "deletedwithversions" in includes,
            deleted="deleted" in includes,
            uncommitted="uncommittedblobs" in includes,
        )
    )
    shown = Shown(
        metadata="metadata" in includes,
        tags="tags" in includes,
        copy="copy" in includes,
        versions="versions" in includes or "deletedwithversions" in includes,
        immutability="immutabilitypolicy" in includes,
        legal_hold="legalhold" in includes,
    )
    now = now_ticks(call)
    entries, following = page.entries, page.next
    versions_only: frozenset[str] = frozenset()
    if "deletedwithversions" in includes:
        entries, versions_only = _without_previous_versions(page, keeps_all="versions" in includes)
    if end_before:
        kept = [entry for entry in entries if (entry if isinstance(entry, str) else entry.name) < end_before]
        following = following if len(kept) == len(entries) else None
        entries = kept
    blobs = "".join(
        [
            prefix_xml(entry)
            if isinstance(entry, str)
            else blob_xml(entry, shown, now, has_versions_only=entry.name in versions_only)
            for entry in entries
        ]
    )
    head = _asked(query, delimiter=delimiter)
    return xml_response(
        200,
        f"<EnumerationResults ServiceEndpoint={attribute(call.base_url + '/')} "
        f"ContainerName={attribute(container.name)}>{head}<Blobs>{blobs}</Blobs>"
        f"<NextMarker>{'' if following is None else write_marker(following)}</NextMarker></EnumerationResults>",
    )


def _without_previous_versions(page: ListPage, *, keeps_all: bool) -> tuple[list[BlobRecord | str], frozenset[str]]:
    """Return the entries of a page with the newest version of each blob, and the names that have previous ones only.
    The blob at the end of the page belongs to the next one if it has entries there."""
    newest: dict[str, BlobRecord] = {}
    for entry in page.entries:
        if not isinstance(entry, str) and entry.role is not Role.SNAPSHOT:
            newest[entry.name] = entry
    if page.next is not None:
        newest.pop(page.next.name, None)
    only = frozenset(name for name, record in newest.items() if record.role is Role.VERSION)
    if keeps_all:
        return page.entries, only
    chosen = [
        entry
        for entry in page.entries
        if isinstance(entry, str) or entry.role is Role.SNAPSHOT or newest.get(entry.name) is entry
    ]
    return chosen, only


def _asked(query: dict[str, str], *, delimiter: str) -> str:
    """Return what the request asked for, as the answer repeats it."""
    text = ""
    if query.get("prefix"):
        text += _asked_text("Prefix", query["prefix"])
    if query.get("marker"):
        text += text_leaf("Marker", xml_safe(query["marker"]))
    if query.get("maxresults"):
        text += text_leaf("MaxResults", query["maxresults"])
    if delimiter:
        text += _asked_text("Delimiter", delimiter)
    return text


def _asked_text(name: str, text: str) -> str:
    if not has_impossible_characters(text):
        return text_leaf(name, text)
    return name_xml(text).replace("Name", name)


def read_includes(text: str | None, known: frozenset[str]) -> frozenset[str]:
    """Return what a listing adds to its entries; a value that is not known is refused."""
    if not text:
        return frozenset()
    includes = frozenset(part.strip().lower() for part in text.split(",") if part.strip())
    if includes - known:
        raise invalid_query_parameter("include", text)
    return includes


# --- markers --------------------------------------------------------------------------------------------------------


def write_marker(marker: Marker) -> str:
    """Return the place at which a listing continues, as a text that XML and URLs carry unchanged."""
    name = base64.urlsafe_b64encode(marker.name.encode("utf-8", "surrogatepass")).decode().rstrip("=")
    return f"2!{'' if marker.moment is None else marker.moment}!{name}"


def read_marker(text: str) -> Marker | None:
    """Return the place of a marker; refuse a text that no answer had."""
    if not text:
        return None
    found = _MARKER.fullmatch(text) if len(text) <= _MARKER_CHARACTERS_MAX else None
    try:
        if found is None:
            raise ValueError("another form")
        moment, name = found.groups()
        decoded = base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode("utf-8", "surrogatepass")
        return Marker(decoded, int(moment) if moment else None)
    except (binascii.Error, ValueError):
        raise invalid_query_parameter("marker", text, "The marker is not from a listing of this server.") from None
