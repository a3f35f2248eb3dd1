"""List Containers."""

from __future__ import annotations

from typing import Final

from asterism.apis.blob.containers.listing import read_includes
from asterism.apis.blob.context import BlobCall, now_ticks
from asterism.apis.blob.etags import etag_text, http_date
from asterism.apis.blob.names import SYSTEM_CONTAINERS
from asterism.apis.blob.record_headers import duration_text
from asterism.apis.storage.headers import read_whole
from asterism.apis.storage.metadata import metadata_xml
from asterism.apis.storage.xml_text import attribute, leaf, node, text_leaf, xml_response, xml_safe
from asterism.apis.transports.http import Response
from asterism.models.blobs.container import Container
from asterism.models.blobs.leases import LeaseState, is_locked, state_of
from asterism.models.blobs.store import ContainerPlace, place_of
from asterism.values.ticks import TICKS_PER_SECOND

PAGE_ENTRIES_MAX: Final = 5_000
_INCLUDES: Final = frozenset({"metadata", "deleted", "system"})
_DAY_TICKS: Final = 24 * 3600 * TICKS_PER_SECOND


async def list_containers(call: BlobCall) -> Response:
    query = call.query
    includes = read_includes(query.get("include"), _INCLUDES)
    limit = min(read_whole(query, "maxresults", minimum=1, maximum=1 << 31) or PAGE_ENTRIES_MAX, PAGE_ENTRIES_MAX)
    # One more than the page: it is the place at which the next begins.
    found = call.context.store.list_containers(
        call.account.name,
        prefix=query.get("prefix") or "",
        start=_read_marker(query.get("marker") or ""),
        limit=limit + 1,
        deleted="deleted" in includes,
        without=frozenset() if "system" in includes else SYSTEM_CONTAINERS,
    )
    now = now_ticks(call)
    with_metadata = "metadata" in includes
    shown = "".join(_container_xml(container, now, with_metadata=with_metadata) for container in found[:limit])
    following = _write_marker(place_of(found[limit])) if len(found) > limit else ""
    asked = "".join(
        text_leaf(element, xml_safe(query[name]))
        for element, name in (("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults"))
        if query.get(name)
    )
    return xml_response(
        200,
        f"<EnumerationResults ServiceEndpoint={attribute(call.base_url + '/')}>{asked}"
        f"{node('Containers', shown)}{leaf('NextMarker', following)}</EnumerationResults>",
    )


def _write_marker(place: ContainerPlace) -> str:
    """Return the name of a container, and for a deleted one its version behind a character that no name has."""
    return f"{place.name}!{place.deleted_version}" if place.deleted_version else place.name


def _read_marker(text: str) -> ContainerPlace:
    name, _, deleted_version = text.partition("!")
    return ContainerPlace(name, deleted_version)


def _container_xml(container: Container, now: int, *, with_metadata: bool) -> str:
    state = container.state
    head = leaf("Name", container.name)
    properties = leaf("Last-Modified", http_date(state.modified_at)) + leaf("Etag", etag_text(state.etag))
    lease_state = state_of(state.lease, now)
    properties += leaf("LeaseStatus", "locked" if is_locked(state.lease, now) else "unlocked")
    properties += leaf("LeaseState", lease_state.value)
    if state.lease is not None and lease_state is LeaseState.LEASED:
        properties += leaf("LeaseDuration", duration_text(state.lease))
    if state.public_access is not None:
        properties += leaf("PublicAccess", state.public_access)
    properties += leaf("DefaultEncryptionScope", state.default_encryption_scope or "$account-encryption-key")
    properties += leaf("DenyEncryptionScopeOverride", state.denies_scope_override)
    # Single blobs have them, containers do not.
    properties += leaf("HasImmutabilityPolicy", False)
    properties += leaf("HasLegalHold", False)
    properties += leaf("ImmutableStorageWithVersioningEnabled", state.has_version_immutability)
    if state.deleted_at is not None:
        head += leaf("Deleted", True) + leaf("Version", state.deleted_version or "")
        properties += leaf("DeletedTime", http_date(state.deleted_at))
        if state.retained_until is not None:
            properties += leaf("RemainingRetentionDays", max(0, (state.retained_until - now) // _DAY_TICKS))
    tail = metadata_xml(state.metadata) if with_metadata else ""
    return node("Container", f"{head}{node('Properties', properties)}{tail}")
