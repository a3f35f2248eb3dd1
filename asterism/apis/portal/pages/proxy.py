"""Requests of a page's scripts to another door: `/api/{account}/{target}/{path}`."""

from __future__ import annotations

from typing import Final

from asterism.apis.portal.call import Portal, PortalCall
from asterism.apis.portal.peer_client import ACCOUNT_HEADER, TARGETS
from asterism.apis.portal.rendering import COMMON_HEADERS
from asterism.apis.transports.http import Response
from asterism.errors import ResourceNotFound

# Headers of the doors' protocols that scripts may set; credentials and cookies stay here.
_PASSED: Final = (
    "accept",
    "a-im",
    "content-type",
    "dataserviceversion",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "maxdataserviceversion",
    "prefer",
    "x-ms-consistency-level",
    "x-ms-continuation",
    "x-ms-cosmos-allow-tentative-writes",
    "x-ms-documentdb-is-query",
    "x-ms-documentdb-is-upsert",
    "x-ms-documentdb-isquery",
    "x-ms-documentdb-partitionkey",
    "x-ms-documentdb-partitionkeyrangeid",
    "x-ms-documentdb-populateindexmetrics",
    "x-ms-documentdb-populatequerymetrics",
    "x-ms-documentdb-populatequotainfo",
    "x-ms-documentdb-post-trigger-include",
    "x-ms-documentdb-pre-trigger-include",
    "x-ms-documentdb-query-enablecrosspartition",
    "x-ms-documentdb-script-enable-logging",
    "x-ms-documentdb-query-iscontinuationexpected",
    "x-ms-max-item-count",
    "x-ms-offer-throughput",
    "x-ms-cosmos-offer-autopilot-settings",
    "x-ms-session-token",
    "x-ms-cosmos-is-partition-key-delete-pending",
)
# Answers of a door may be read again by it only: a page shows what is there now.
_FENCES: Final = [("cache-control", "no-store"), ("content-security-policy", "default-src 'none'"), *COMMON_HEADERS]


async def forward(portal: Portal, call: PortalCall) -> Response:
    target, request = call.parts["target"], call.request
    if target not in TARGETS:
        raise ResourceNotFound(kind="door", name=target[:64])
    given = request.headers
    passed = {name: value for name in _PASSED if (value := given.get(name)) is not None}
    assert ACCOUNT_HEADER not in passed, "whose data a request is about follows from its path"
    answer = await portal.client.ask(
        call.visitor,
        target,
        call.parts["account"],
        method=request.method,
        path=call.parts["rest"],
        query_string=request.query_string,
        headers=passed,
        body=request.body,
        client_gone=request.client_gone,
    )
    kept = [(name, value) for name, value in answer.headers if name.lower() not in ("cache-control", "set-cookie")]
    answer.headers = [*kept, *_FENCES]
    return answer
