"""The parameters of requests to the admin door: containers and partition ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request
from asterism.errors import MalformedRequest
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.values.json.text import loads

# Of a number in a query string: longer ones are above every maximum, and take time to read.
_DIGITS_MAX = 16


def query_parameters(request: Request) -> dict[str, str]:
    """Return the last value of each parameter of the query string."""
    return {name: values[-1] for name, values in parse_qs(request.query_string, keep_blank_values=True).items()}


def body_object(request: Request) -> dict[str, Any]:
    body = loads(request.body)
    if not isinstance(body, dict):
        raise MalformedRequest(reason="The body must be a JSON object.")
    return body


def text_of(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise MalformedRequest(reason=f"'{name}' is missing, or is not a text.")
    return value


def whole_number_of(parameters: Mapping[str, str], name: str, *, default: int, minimum: int, maximum: int) -> int:
    """Return a whole number of the query string, or the default if it is not there."""
    text = parameters.get(name)
    if text is None:
        return default
    is_number = text.isascii() and text.isdigit() and len(text) < _DIGITS_MAX
    if not is_number or not minimum <= int(text) <= maximum:
        raise MalformedRequest(reason=f"'{name}' must be a whole number from {minimum} to {maximum}.")
    return int(text)


def keyspace_of(services: AdminServices, fields: dict[str, Any]) -> Keyspace:
    """Return the container named by `database` and `container`, or what `account` and the parameter of a kind without
    databases name, as `table`."""
    for kind in services.collection_kinds:
        if kind.parameter is not None and kind.parameter in fields:
            return services.in_account(kind, text_of(fields, "account"), text_of(fields, kind.parameter))
    return services.keyspace(text_of(fields, "database"), text_of(fields, "container"))


def range_id_of(value: object) -> int:
    """Parse the id of a partition range, a number or the text that clients of the data doors see."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise MalformedRequest(reason='A partition range is named by its id, a whole number such as "0".')
