"""Find Blobs by Tags, in the whole account or in one container."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from asterism.apis.blob.containers.listing import read_includes
from asterism.apis.blob.context import BlobCall, container_of
from asterism.apis.blob.etags import moment_text
from asterism.apis.blob.listing_xml import name_xml
from asterism.apis.blob.record_headers import is_current_version
from asterism.apis.blob.tag_filter import CONTAINER, TagSearch, parse_search
from asterism.apis.blob.tags import tag_set_xml
from asterism.apis.storage.headers import read_whole
from asterism.apis.storage.refusals import invalid_query_parameter, missing_query_parameter
from asterism.apis.storage.xml_text import attribute, leaf, node, text_leaf, xml_response
from asterism.apis.transports.http import Response
from asterism.models.blobs.container import Container
from asterism.models.blobs.record import BlobRecord
from asterism.models.blobs.tags_search import TagTest

PAGE_ENTRIES_MAX: Final = 5_000
_MARKER: Final = re.compile(r"3!([a-z0-9$-]{1,63})!([A-Za-z0-9_-]*)", re.ASCII)
_MARKER_CHARACTERS_MAX: Final = 8_192
_INCLUDES: Final = frozenset({"none", "versions"})


async def find_in_container(call: BlobCall) -> Response:
    return await _find(call, [container_of(call)])


async def find_in_account(call: BlobCall) -> Response:
    store, account = call.context.store, call.account.name
    return await _find(call, store.list_containers(account, limit=1 << 31))


async def _find(call: BlobCall, containers: list[Container]) -> Response:
    where = call.query.get("where")
    if not where:
        raise missing_query_parameter("where")
    search = parse_search(where)
    read_includes(call.query.get("include"), _INCLUDES)
    limit = read_whole(call.query, "maxresults", minimum=1, maximum=1 << 31) or PAGE_ENTRIES_MAX
    at_container, at_name = _read_marker(call.query.get("marker") or "")
    found: list[str] = []
    following = ""
    for container in containers:
        if container.name < at_container or not _is_searched(search, container):
            continue
        left = min(limit, PAGE_ENTRIES_MAX) - len(found)
        if left == 0:
            following = _write_marker(container, "")
            break
        after = at_name if container.name == at_container else None
        page = await container.find_by_tags(_tests(search), after or None, left)
        found += [_blob_xml(container, record, search) for record in page.entries]
        if page.next is not None:
            following = _write_marker(container, page.next)
            break
    return xml_response(
        200,
        f"<EnumerationResults ServiceEndpoint={attribute(call.base_url + '/')}>{text_leaf('Where', where)}"
        f"{node('Blobs', ''.join(found))}{leaf('NextMarker', following)}</EnumerationResults>",
    )


def _is_searched(search: TagSearch, container: Container) -> bool:
    """Return False for a container that the search excludes."""
    of_container = TagSearch(tuple(test for test in search.tests if test.name == CONTAINER))
    return of_container.matches({}, container=container.name)


def _tests(search: TagSearch) -> list[TagTest]:
    tests = [TagTest(test.name, test.comparison.value, test.value) for test in search.tests if test.name != CONTAINER]
    if not tests:
        raise invalid_query_parameter("where", "", "A search compares at least one tag.")
    return tests


def _blob_xml(container: Container, record: BlobRecord, search: TagSearch) -> str:
    shown = {name: record.tags[name] for name in search.tag_names if name in record.tags}
    text = name_xml(record.name) + leaf("ContainerName", container.name) + node("Tags", tag_set_xml(shown))
    if record.version is not None:
        text += leaf("VersionId", moment_text(record.version))
        text += leaf("IsCurrentVersion", is_current_version(record))
    return node("Blob", text)


def _write_marker(container: Container, name: str) -> str:
    encoded = base64.urlsafe_b64encode(name.encode("utf-8", "surrogatepass")).decode().rstrip("=")
    return f"3!{container.name}!{encoded}"


def _read_marker(text: str) -> tuple[str, str]:
    """Return the container and the name at which a search continues; empty texts at its beginning."""
    if not text:
        return "", ""
    found = _MARKER.fullmatch(text) if len(text) <= _MARKER_CHARACTERS_MAX else None
    try:
        if found is None:
            raise ValueError("another form")
        container, name = found.groups()
        return container, base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        raise invalid_query_parameter("marker", text, "The marker is not from a search of this server.") from None
