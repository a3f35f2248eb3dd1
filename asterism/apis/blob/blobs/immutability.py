"""Immutability policies and legal holds of blobs, snapshots and versions."""

from __future__ import annotations

from typing import Final

from asterism.apis.blob.context import BlobCall, blob_container_of, now_ticks, which_of
from asterism.apis.blob.etags import http_date
from asterism.apis.blob.holds import check_permits_holds
from asterism.apis.blob.request_headers import read_conditions, read_flag, read_immutability
from asterism.apis.storage.refusals import invalid_header_value, missing_header
from asterism.apis.transports.http import Response
from asterism.models.blobs.changes import UNLOCKED, DeleteImmutability, SetImmutability, SetLegalHold
from asterism.models.blobs.container import Container

UNTIL: Final = "x-ms-immutability-policy-until-date"
MODE: Final = "x-ms-immutability-policy-mode"
LEGAL_HOLD: Final = "x-ms-legal-hold"


async def set_policy(call: BlobCall) -> Response:
    container = _immutable_container(call)
    policy = read_immutability(call.headers)
    if policy.until is None:
        raise missing_header(UNTIL)
    if policy.until <= now_ticks(call):
        raise invalid_header_value(UNTIL, call.headers.get(UNTIL) or "", "The policy would end in the past.")
    mode = policy.mode or UNLOCKED
    conditions = read_conditions(call.headers)
    change = SetImmutability(policy.until, mode)
    await container.change(call.resource.name, change, which_of(call), conditions)
    return Response(200, [(UNTIL, http_date(policy.until)), (MODE, mode)])


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
