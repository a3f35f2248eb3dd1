"""Immutability policies and legal holds of blobs, snapshots and versions."""

from __future__ import annotations

from asterism.apis.blob.context import BlobCall, blob_container_of, now_ticks, which_of
from asterism.apis.blob.etags import http_date
from asterism.apis.blob.holds import check_permits_holds
from asterism.apis.blob.request_headers import (
    IMMUTABILITY_MODE,
    IMMUTABLE_UNTIL,
    LEGAL_HOLD,
    read_conditions,
    read_flag,
    read_immutability,
)
from asterism.apis.storage.refusals import missing_header
from asterism.apis.transports.http import Response
from asterism.models.blobs.changes import UNLOCKED, DeleteImmutability, SetImmutability, SetLegalHold
from asterism.models.blobs.container import Container


async def set_policy(call: BlobCall) -> Response:
    container = _immutable_container(call)
    policy = read_immutability(call.headers, now=now_ticks(call))
    if policy.until is None:
        raise missing_header(IMMUTABLE_UNTIL)
    mode = policy.mode or UNLOCKED
    conditions = read_conditions(call.headers)
    change = SetImmutability(policy.until, mode)
    await container.change(call.resource.name, change, which_of(call), conditions)
    return Response(200, [(IMMUTABLE_UNTIL, http_date(policy.until)), (IMMUTABILITY_MODE, mode)])


async def delete_policy(call: BlobCall) -> Response:
    container = _immutable_container(call)
    await container.change(call.resource.name, DeleteImmutability(), which_of(call))
    return Response(200, [])


async def set_legal_hold(call: BlobCall) -> Response:
    container = _immutable_container(call)
    if not call.headers.get(LEGAL_HOLD):
        raise missing_header(LEGAL_HOLD)
    has_hold = read_flag(call.headers, LEGAL_HOLD)
    await container.change(call.resource.name, SetLegalHold(has_hold), which_of(call))
    return Response(200, [(LEGAL_HOLD, str(has_hold).lower())])


def _immutable_container(call: BlobCall) -> Container:
    container = blob_container_of(call)
    check_permits_holds(container)
    return container
