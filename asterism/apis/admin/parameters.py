"""What a request to the admin door names: containers and partition ranges."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from asterism.apis.admin.console import Console
from asterism.apis.http import Request
from asterism.errors import MalformedRequest
from asterism.keyspaces.keyspace import Keyspace
from asterism.values.json_text import loads


def query_parameters(request: Request) -> dict[str, str]:
    """The last value of each parameter of the query string."""
    return {name: values[-1] for name, values in parse_qs(request.query_string, keep_blank_values=True).items()}


def body_object(request: Request) -> dict[str, Any]:
    told = loads(request.body)
    if not isinstance(told, dict):
        raise MalformedRequest(reason="The body must be a JSON object.")
    return told


def text_of(told: dict[str, Any], name: str) -> str:
    value = told.get(name)
    if not isinstance(value, str) or not value:
        raise MalformedRequest(reason=f"'{name}' is missing, or is not a text.")
    return value


def keyspace_of(console: Console, told: dict[str, Any]) -> Keyspace:
    """The container that a request names by `database` and `container`, or the table by `account` and `table`."""
    if "table" in told:
        return console.table(text_of(told, "account"), text_of(told, "table"))
    return console.keyspace(text_of(told, "database"), text_of(told, "container"))


def range_id_of(value: object) -> int:
    """A partition range's id, as a number or as the text that clients of the data doors see."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise MalformedRequest(reason='A partition range is named by its id, a whole number such as "0".')
