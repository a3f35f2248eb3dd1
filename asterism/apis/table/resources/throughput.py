"""The throughput that a table of Cosmos DB is created with."""

from __future__ import annotations

from asterism.apis.storage.refusals import Refusal
from asterism.apis.table import headers
from asterism.apis.transports.http import Headers
from asterism.errors import MalformedRequest
from asterism.throughput.budgets import Autoscale, Manual, Throughput
from asterism.values.json.text import loads


def throughput_of(given: Headers) -> Throughput | None:
    """Return the throughput in the headers of a create, or None if they leave it to the server."""
    manual, autoscale = given.get(headers.OFFER_THROUGHPUT), given.get(headers.AUTOSCALE_SETTINGS)
    if manual is not None and autoscale is not None:
        raise _refused("Throughput is manual or autoscale, not both.")
    if manual is not None:
        return Manual(_whole(manual))
    if autoscale is None:
        return None
    try:
        settings = loads(autoscale)
    except MalformedRequest as error:
        raise _refused(error.reason) from None
    ceiling = settings.get("maxThroughput") if isinstance(settings, dict) else None
    if type(ceiling) is not int:
        raise _refused("The autoscale settings need a whole number as 'maxThroughput'.")
    return Autoscale(ceiling, 0)


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise _refused(f"The value of {headers.OFFER_THROUGHPUT} is not a whole number.")
    return int(text)


def _refused(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)
