"""The headers of the protocol: their names, those of every response, and the metadata level of a request."""

from __future__ import annotations

from typing import Final

from asterism.apis.storage.headers import CLIENT_REQUEST_ID, REQUEST_ID, VERSION
from asterism.apis.storage.refusals import Refusal, invalid_input
from asterism.apis.table.entities.entity_json import Metadata
from asterism.apis.transports.http import HeaderList, Headers

CHARGE: Final = "x-ms-request-charge"
IF_MATCH: Final = "if-match"
METHOD_OVERRIDE: Final = "x-http-method"
NEXT_PARTITION_KEY: Final = "x-ms-continuation-NextPartitionKey"
NEXT_ROW_KEY: Final = "x-ms-continuation-NextRowKey"
NEXT_TABLE_NAME: Final = "x-ms-continuation-NextTableName"
PREFER: Final = "prefer"
PREFERENCE_APPLIED: Final = "preference-applied"
OFFER_THROUGHPUT: Final = "x-ms-offer-throughput"
AUTOSCALE_SETTINGS: Final = "x-ms-cosmos-offer-autopilot-settings"

COMMON: Final[HeaderList] = [
    ("cache-control", "no-cache"),
    ("server", "Asterism-Table/1.0"),
    ("x-content-type-options", "nosniff"),
]
_VERSION_DEFAULT: Final = "2019-02-02"
# A longer name of a request is not echoed in its response.
_ECHOED_CHARACTERS_MAX: Final = 1024

JSON_TYPES: Final = {level: f"application/json;odata={level.value};streaming=true;charset=utf-8" for level in Metadata}
_DATA_SERVICE_VERSION: Final = ("dataserviceversion", "3.0;")
JSON_HEADERS: Final[dict[Metadata, HeaderList]] = {
    level: [("content-type", JSON_TYPES[level]), _DATA_SERVICE_VERSION] for level in Metadata
}

# The usual texts of clients; any other Accept is parsed.
_USUAL_ACCEPT: Final[dict[str | None, Metadata]] = {
    "application/json;odata=minimalmetadata": Metadata.MINIMAL,
    "application/json;odata=nometadata": Metadata.NONE,
    "application/json;odata=fullmetadata": Metadata.FULL,
    "application/json": Metadata.MINIMAL,
    "*/*": Metadata.MINIMAL,
    None: Metadata.MINIMAL,
}


def add_common(answer: HeaderList, given: Headers, request_id: str) -> None:
    """Add the headers of every response: the server, the request, and the version that the client speaks."""
    answer += COMMON
    answer.append((REQUEST_ID, request_id))
    answer.append((VERSION, given.get(VERSION) or _VERSION_DEFAULT))
    client_request_id = given.get(CLIENT_REQUEST_ID)
    if client_request_id is not None and len(client_request_id) <= _ECHOED_CHARACTERS_MAX:
        answer.append((CLIENT_REQUEST_ID, client_request_id))


def metadata_level(given: Headers, query: dict[str, str]) -> Metadata:
    """Return the level that `$format`, or else `Accept`, asks for."""
    wanted = query.get("$format") if "$format" in query else given.get("accept")
    level = _USUAL_ACCEPT.get(wanted)
    return level if level is not None else _unusual_level(wanted or "")


def _unusual_level(wanted: str) -> Metadata:
    text = wanted.lower().replace(" ", "")
    for level in Metadata:
        if f"odata={level.value}" in text:
            return level
    if "atom" in text and "json" not in text and "*/*" not in text:
        raise Refusal(415, "AtomFormatNotSupported", "Atom format is not supported.")
    return Metadata.MINIMAL


def read_preference(given: Headers) -> str | None:
    """Return `return-content`, `return-no-content`, or None if the request has no preference."""
    wanted = given.get(PREFER)
    if wanted is None:
        return None
    for preference in ("return-no-content", "return-content"):
        if preference in wanted.lower():
            return preference
    return None


def read_if_match(given: Headers) -> str | None:
    wanted = given.get(IF_MATCH)
    if wanted is not None and not wanted.strip():
        raise invalid_input()
    return None if wanted is None else wanted.strip()
