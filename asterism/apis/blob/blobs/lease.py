"""Lease Blob."""

from __future__ import annotations

from dataclasses import replace

from asterism.apis.blob.context import BlobCall, blob_container_of, now_ticks
from asterism.apis.blob.leases import lease_answer, read_lease_action
from asterism.apis.blob.record_headers import change_headers
from asterism.apis.blob.request_headers import read_conditions
from asterism.apis.transports.http import Response
from asterism.models.blobs.changes import ChangeOfLease


async def lease_blob(call: BlobCall) -> Response:
    action = read_lease_action(call)
    # The id of the lease is the action's, not a condition.
    conditions = replace(read_conditions(call.headers), lease_id=None)
    record = await blob_container_of(call).change(call.resource.name, ChangeOfLease(action), conditions=conditions)
    return lease_answer(action, record.lease, change_headers(record.etag, record.modified_at), now_ticks(call))
