"""Headers and parameters that the storage protocols share: their names, those of every answer, and checked values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from asterism.apis.storage.refusals import invalid_header_value, invalid_query_parameter, out_of_range_query_parameter
from asterism.apis.transports.http import HeaderList, Headers
from asterism.values.ticks import TICKS_PER_SECOND, timestamp_text

AUTHORIZATION: Final = "authorization"
CLIENT_REQUEST_ID: Final = "x-ms-client-request-id"
DATE: Final = "date"
REQUEST_ID: Final = "x-ms-request-id"
SIGNED_DATE: Final = "x-ms-date"
VERSION: Final = "x-ms-version"
METADATA_PREFIX: Final = "x-ms-meta-"
XML_HEADERS: Final[HeaderList] = [("content-type", "application/xml")]

# A longer name of a request is not echoed in its response.
_ECHOED_CHARACTERS_MAX: Final = 1024
# For requests that name none.
VERSION_DEFAULT: Final = "2026-10-06"
_VERSION: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
# Clients speak versions that are published months ahead; a date that is years ahead is a mistake.
_VERSION_YEARS_AHEAD_MAX: Final = 3
_DAY_SECONDS: Final = 24 * 3600
# Headers of browsers and libraries that no door reads; cookies are those of all ports of a host.
_NOT_READ: Final = frozenset({"cookie", "referer", "user-agent"})
_WHOLE: Final = re.compile(r"-?\d{1,18}", re.ASCII)


def http_date(wall_seconds: float) -> str:
    return datetime.fromtimestamp(wall_seconds, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")


def time_text(wall_seconds: float) -> str:
    """Return a time as `2026-11-19T02:00:00.0000000Z`: clients refuse texts without the Z."""
    return timestamp_text(int(wall_seconds * TICKS_PER_SECOND))


def add_common(answer: HeaderList, given: Headers, request_id: str, *, server: str, now_wall_seconds: float) -> None:
    """Add the headers of every response: the server, the request, and the version that the client speaks."""
    names = {name for name, _ in answer}
    if "server" not in names:
        answer.append(("server", server))
    if DATE not in names:
        answer.append((DATE, _shared_date(int(now_wall_seconds))))
    answer.append((REQUEST_ID, request_id))
    version = given.get(VERSION)
    answer.append((VERSION, version if version is not None and _VERSION.fullmatch(version) else VERSION_DEFAULT))
    client_request_id = given.get(CLIENT_REQUEST_ID)
    if client_request_id is not None and len(client_request_id) <= _ECHOED_CHARACTERS_MAX:
        answer.append((CLIENT_REQUEST_ID, client_request_id))


def check_headers(given: Headers) -> None:
    """Refuse a header whose value has bytes beyond ASCII. The listener may have no value for it, so it would count as
    absent: a condition, a checksum or a lease would silently not hold."""
    for name in given.keys():  # noqa: SIM118 - a protocol
        value = given.get(name)
        # Metadata have a code of their own for it.
        if (value is None or not value.isascii()) and name not in _NOT_READ and not name.startswith(METADATA_PREFIX):
            raise invalid_header_value(name, value or "", "The value of a header has characters beyond ASCII.")


# The answers of a second share one text.
@lru_cache(maxsize=2)
def _shared_date(wall_seconds: int) -> str:
    return http_date(wall_seconds)


def check_version(given: Headers, now_wall_seconds: float) -> None:
    """Refuse a version that is no date, or one that is years ahead. All others are spoken: new ones add headers."""
    version = given.get(VERSION)
    if version is None:
        return
    year = _year_of(version)
    if year is None or year > _year_of_day(now_wall_seconds // _DAY_SECONDS) + _VERSION_YEARS_AHEAD_MAX:
        raise invalid_header_value(VERSION, version)


@lru_cache(maxsize=2)
def _year_of_day(day: float) -> int:
    """Return the year of a day since 1970."""
    return datetime.fromtimestamp(day * _DAY_SECONDS, UTC).year


@lru_cache(maxsize=256)
def _year_of(version: str) -> int | None:
    if not _VERSION.fullmatch(version):
        return None
    try:
        return date.fromisoformat(version).year
    except ValueError:
        return None


def read_query(query_string: str, *, of_tables: bool = False) -> dict[str, str]:
    """Return the parameters of a URL, the last value of each name. For blobs and queues names are in lower case, as
    signatures have them, and a plus is a plus. For tables it is a space, as in a form: older clients write filters this
    way, and all clients encode a plus."""
    parameters: dict[str, str] = {}
    if not query_string:
        return parameters
    if of_tables:
        query_string = query_string.replace("+", " ")
    for pair in query_string.split("&"):
        name, _, value = pair.partition("=")
        if name:
            known = unquote(name)
            parameters[known if of_tables else known.lower()] = unquote(value) if "%" in value else value
    return parameters


def read_whole(
    query: Mapping[str, str], name: str, *, minimum: int, maximum: int, default: int | None = None
) -> int | None:
    """Return a parameter that is a whole number; refuse any other text, and a number out of its range."""
    text = query.get(name)
    if text is None or text == "":
        return default
    if not _WHOLE.fullmatch(text):
        raise invalid_query_parameter(name, text, "The value is not a whole number.")
    if not minimum <= int(text) <= maximum:
        raise out_of_range_query_parameter(name, text, minimum=minimum, maximum=maximum)
    return int(text)


def bool_header(given: Headers, name: str, *, default: bool = False) -> bool:
    text = given.get(name)
    if text is None:
        return default
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise invalid_header_value(name, text)
    return lowered == "true"
