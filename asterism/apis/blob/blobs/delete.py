"""Delete Blob and Undelete Blob: the blob itself, its snapshots, a single snapshot or version."""

from __future__ import annotations

from typing import Final

from asterism.access.sas_grants import ResourceType
from asterism.apis.blob.context import BlobCall, blob_container_of, which_of
from asterism.apis.blob.request_headers import read_conditions, read_date_ticks
from asterism.apis.storage.refusals import Refusal, condition_not_met, invalid_header_value, invalid_query_parameter
from asterism.apis.storage.routes import Needs
from asterism.apis.transports.http import Response
from asterism.models.blobs.calls import CURRENT, SnapshotDeletion, Version, Which
from asterism.models.blobs.container import Container
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.rules import AccountRules
from asterism.values.ticks import TICKS_PER_SECOND

_DELETE: Final = Needs(ResourceType.OBJECT, "d", "d")
_DELETE_VERSION: Final = Needs(ResourceType.OBJECT, "x", "x")
_DELETE_FOR_GOOD: Final = Needs(ResourceType.OBJECT, "y", "y")
_SNAPSHOTS: Final = "x-ms-delete-snapshots"


async def delete_blob(call: BlobCall) -> Response:
    which = which_of(call)
    is_permanent = _is_permanent(call)
    if is_permanent:
        call.allow(_DELETE_FOR_GOOD)
    else:
        call.allow(_DELETE_VERSION if isinstance(which, Version) else _DELETE)
    container = blob_container_of(call)
    rules = await call.context.rule_book.rules_of(call.account.name)
    if is_permanent:
        await _check_permanent(call, container, which, rules)
    await _check_tier_time(call, container, which)
    snapshots = _snapshots(call)
    if snapshots is not None and which is not CURRENT:
        raise invalid_header_value(
            _SNAPSHOTS, snapshots.value, "A request that names a snapshot or a version deletes only that."
        )
    is_kept = await container.delete(
        call.resource.name,
        which,
        read_conditions(call.headers),
        rules,
        snapshots=snapshots,
        permanent=is_permanent,
    )
    return Response(202, [("x-ms-delete-type-permanent", "false" if is_kept else "true")])


async def _check_permanent(call: BlobCall, container: Container, which: Which, rules: AccountRules) -> None:
    """Refuse to remove for good what is not deleted yet: who may only do that must not delete anything besides."""
    if not rules.permanent_delete:
        raise Refusal(
            409,
            "PermanentDeleteNotEnabled",
            "Permanent deletion is not enabled. Set AllowPermanentDelete in the DeleteRetentionPolicy of the service "
            "properties.",
        )
    if which is not CURRENT:
        try:
            await container.find(call.resource.name, which)
        except BlobRefused as refused:
            if refused.failure is BlobFailure.NOT_FOUND:
                return
            raise
    raise Refusal(
        409,
        "BlobSnapshotNotSoftDeleted",
        "Only a snapshot or a version that is deleted already is removed for good.",
    )


async def _check_tier_time(call: BlobCall, container: Container, which: Which) -> None:
    """Refuse a deletion unless the tier of the blob was set in the time that the request names."""
    since = read_date_ticks(call.headers, "x-ms-access-tier-if-modified-since")
    until = read_date_ticks(call.headers, "x-ms-access-tier-if-unmodified-since")
    if since is None and until is None:
        return
    record = await container.find(call.resource.name, which)
    # Dates have whole seconds.
    changed_at = (record.tier_changed_at or record.created_at) // TICKS_PER_SECOND * TICKS_PER_SECOND
    if (since is not None and changed_at <= since) or (until is not None and changed_at > until):
        raise condition_not_met()


def _is_permanent(call: BlobCall) -> bool:
    text = call.query.get("deletetype")
    if not text:
        return False
    if text.lower() != "permanent":
        raise invalid_query_parameter("deletetype", text, "The only type of deletion that can be named is permanent.")
    return True


def _snapshots(call: BlobCall) -> SnapshotDeletion | None:
    text = call.headers.get(_SNAPSHOTS)
    if not text:
        return None
    try:
        return SnapshotDeletion(text.lower())
    except ValueError:
        raise invalid_header_value(_SNAPSHOTS, text) from None


async def undelete_blob(call: BlobCall) -> Response:
    await blob_container_of(call).undelete(call.resource.name)
    return Response(200, [])
