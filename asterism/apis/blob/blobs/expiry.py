"""Expiry of blobs: from a moment on they do not exist."""

from __future__ import annotations

from typing import Final

from asterism.apis.blob.context import BlobCall, blob_container_of, now_ticks
from asterism.apis.blob.record_headers import change_headers
from asterism.apis.blob.request_headers import read_conditions, read_date_ticks, read_number
from asterism.apis.storage.refusals import invalid_header_value, missing_header
from asterism.apis.transports.http import Headers, Response
from asterism.models.blobs.changes import ExpiryMode, SetExpiry

OPTION: Final = "x-ms-expiry-option"
TIME: Final = "x-ms-expiry-time"
# A hundred years: no blob is meant to expire later, and sums of ticks stay within 63 bits.
_MILLISECONDS_MAX: Final = 100 * 366 * 24 * 3600 * 1000
_MODES: Final = {mode.value.lower(): mode for mode in ExpiryMode}


async def set_expiry(call: BlobCall) -> Response:
    change = read_expiry(call.headers, now_ticks(call))
    conditions = read_conditions(call.headers)
    record = await blob_container_of(call).change(call.resource.name, change, conditions=conditions)
    return Response(200, change_headers(record.etag, record.modified_at))


def read_expiry(headers: Headers, now: int) -> SetExpiry:
    option = headers.get(OPTION)
    if not option:
        raise missing_header(OPTION)
    mode = _MODES.get(option.lower())
    if mode is None:
        raise invalid_header_value(OPTION, option)
    if mode is ExpiryMode.NEVER_EXPIRE:
        return SetExpiry(mode)
    text = headers.get(TIME)
    if not text:
        raise missing_header(TIME)
    if mode is ExpiryMode.ABSOLUTE:
        moment = read_date_ticks(headers, TIME)
        if moment is None or moment <= now:
            raise invalid_header_value(TIME, text, "The time of expiry is in the past.")
        return SetExpiry(mode, moment)
    milliseconds = read_number(headers, TIME)
    if not milliseconds or milliseconds > _MILLISECONDS_MAX:
        raise invalid_header_value(TIME, text, "The time of expiry is a number of milliseconds.")
    return SetExpiry(mode, milliseconds)
