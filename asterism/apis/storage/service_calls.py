"""Calls about the service itself, which blobs and queues share: its properties, the statistics of its secondary
location, and keys for user delegation."""

from __future__ import annotations

import base64
from typing import Any, Final

from asterism.access.sas_grants import ResourceType
from asterism.access.shared_access import SERVICE_LETTERS
from asterism.access.user_delegation import DELEGATION_DAYS_MAX, DelegationFields, user_delegation_key
from asterism.apis.storage.call import Call
from asterism.apis.storage.headers import VERSION, VERSION_DEFAULT, XML_HEADERS, time_text
from asterism.apis.storage.refusals import (
    invalid_query_parameter,
    invalid_xml_document,
    invalid_xml_value,
    not_authenticated,
)
from asterism.apis.storage.routes import Needs
from asterism.apis.storage.service_properties import (
    change_properties,
    read_properties,
    stored_properties,
    write_properties,
)
from asterism.apis.storage.statistics import statistics_xml
from asterism.apis.storage.xml_text import (
    DOCUMENT_BYTES_MAX,
    children,
    leaf,
    node,
    read_document,
    text_of,
    xml_response,
)
from asterism.apis.transports.http import Response
from asterism.values.ticks import TICKS_PER_SECOND, ticks_of

READ_SERVICE: Final = Needs(ResourceType.SERVICE, "r")
WRITE_SERVICE: Final = Needs(ResourceType.SERVICE, "w")
SERVICE_BODY_BYTES_MAX: Final = DOCUMENT_BYTES_MAX
_DAY_SECONDS: Final = 24 * 3600
# Of the clock of a client that asks for a key from now on.
_SKEW_SECONDS_MAX: Final = 15 * 60


async def get_properties(call: Call[Any]) -> Response:
    rules = call.door.rules
    properties = await stored_properties(rules.documents, call.account.name, rules.service)
    return Response(200, list(XML_HEADERS), write_properties(properties))


async def set_properties(call: Call[Any]) -> Response:
    rules = call.door.rules
    given = read_properties(call.request.body, rules.service)
    await change_properties(rules.documents, call.account.name, rules.service, given)
    return Response(202, [])


async def get_statistics(call: Call[Any]) -> Response:
    if not call.is_secondary:
        raise invalid_query_parameter("comp", "stats", "Only a secondary location has statistics.")
    return xml_response(200, statistics_xml(call.now))


async def get_user_delegation_key(call: Call[Any]) -> Response:
    """Issue a key that signs shared access signatures in the name of the holder of the bearer token."""
    holder = call.sender.holder
    if holder is None:
        raise not_authenticated("Only a bearer token gets a key for user delegation.")
    parts = children(read_document(call.request.body, "KeyInfo"))
    start, expiry = text_of(parts.get("Start")), text_of(parts.get("Expiry"))
    _check_times(call.now, start, expiry)
    fields = DelegationFields(
        object_id=holder.object_id,
        tenant_id=holder.tenant_id,
        start=start or _time(call.now),
        expiry=expiry,
        service=SERVICE_LETTERS[call.door.rules.service],
        version=call.headers.get(VERSION) or VERSION_DEFAULT,
        delegated_tenant_id=text_of(parts.get("DelegatedUserTid")),
    )
    key = user_delegation_key(call.account.keys[0], fields)
    elements = [
        leaf("SignedOid", fields.object_id),
        leaf("SignedTid", fields.tenant_id),
        leaf("SignedStart", fields.start),
        leaf("SignedExpiry", fields.expiry),
        leaf("SignedService", fields.service),
        leaf("SignedVersion", fields.version),
        *([leaf("SignedDelegatedUserTid", fields.delegated_tenant_id)] if fields.delegated_tenant_id else []),
        leaf("Value", base64.b64encode(key).decode("ascii")),
    ]
    return xml_response(200, node("UserDelegationKey", "".join(elements)))


def _check_times(now: float, start: str, expiry: str) -> None:
    begins, ends = ticks_of(start) if start else int(now * TICKS_PER_SECOND), ticks_of(expiry)
    if begins is None:
        raise invalid_xml_value("Start", start)
    if ends is None:
        raise invalid_xml_value("Expiry", expiry)
    longest = DELEGATION_DAYS_MAX * _DAY_SECONDS
    if ends <= begins or ends / TICKS_PER_SECOND > now + longest + _SKEW_SECONDS_MAX:
        raise invalid_xml_document(
            f"A key for user delegation expires after its start, and at most {DELEGATION_DAYS_MAX} days from now."
        )


def _time(wall_seconds: float) -> str:
    return f"{time_text(wall_seconds)[:19]}Z"
