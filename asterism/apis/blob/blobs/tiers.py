"""Set Blob Tier."""

from __future__ import annotations

from typing import Final

from asterism.apis.blob.context import BlobCall, blob_container_of, which_of
from asterism.apis.blob.request_headers import PAGE_TIERS, read_conditions, read_tier
from asterism.apis.storage.refusals import invalid_header_value
from asterism.apis.transports.http import Response
from asterism.models.blobs.changes import SetTier

_PRIORITIES: Final = {"standard": "Standard", "high": "High"}
_PRIORITY: Final = "x-ms-rehydrate-priority"


async def set_tier(call: BlobCall) -> Response:
    """Move a blob to another tier; 202 while it comes back from the archive."""
    container = blob_container_of(call)
    asked = call.headers.get("x-ms-access-tier") or ""
    tier = read_tier(call.headers, is_page=asked.lower() in PAGE_TIERS, is_required=True)
    record = await container.change(
        call.resource.name, SetTier(tier or "", read_priority(call)), which_of(call), read_conditions(call.headers)
    )
    return Response(200 if record.archive_status is None else 202, [])


def read_priority(call: BlobCall) -> str | None:
    text = call.headers.get(_PRIORITY)
    if not text:
        return None
    priority = _PRIORITIES.get(text.lower())
    if priority is None:
        raise invalid_header_value(_PRIORITY, text)
    return priority
