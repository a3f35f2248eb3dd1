"""Throughput in requests: two headers of a create, the content of an offer afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asterism.apis.nosql import headers
from asterism.apis.transports.http import Headers
from asterism.errors import MalformedRequest
from asterism.throughput.budgets import Autoscale, Manual, Throughput
from asterism.values.json.text import loads


def throughput_of(given: Headers) -> Throughput | None:
    """Return the throughput that a create asks for, or None if it leaves that to the server."""
    manual, autoscale = given.get(headers.OFFER_THROUGHPUT), given.get(headers.AUTOSCALE_SETTINGS)
    if manual is not None and autoscale is not None:
        raise MalformedRequest(
            reason=f"The headers {headers.OFFER_THROUGHPUT} and {headers.AUTOSCALE_SETTINGS} cannot both be given: "
            "throughput is manual or autoscale."
        )
    if autoscale is not None:
        return parse_autoscale(loads(autoscale))
    if manual is None:
        return None
    try:
        return Manual(int(manual))
    except ValueError:
        raise MalformedRequest(
            reason=f"The value '{manual[:32]}' specified for the header '{headers.OFFER_THROUGHPUT}' is invalid."
        ) from None


def throughput_in_content(content: object) -> Throughput:
    """Return the throughput in an offer's content, as a replace sends it. Clients send back what they read, changed in
    a single property, so the settings of autoscale count before the RU/s beside them."""
    if not isinstance(content, Mapping):
        raise MalformedRequest(reason="The offer needs 'content', an object.")
    autoscale = content.get("offerAutopilotSettings")
    if autoscale is not None:
        return parse_autoscale(autoscale)
    return Manual(_whole(content.get("offerThroughput"), what="content.offerThroughput"))


def parse_autoscale(settings: object) -> Autoscale:
    if not isinstance(settings, Mapping):
        raise MalformedRequest(reason="The autoscale settings must be an object with 'maxThroughput'.")
    increment = _at(settings, "autoUpgradePolicy", "throughputPolicy", "incrementPercent")
    return Autoscale(
        _whole(settings.get("maxThroughput"), what="maxThroughput"),
        0 if increment is None else _whole(increment, what="incrementPercent"),
    )


def autoscale_to_json(throughput: Autoscale) -> dict[str, Any]:
    policy = {"throughputPolicy": {"incrementPercent": throughput.increment_percent}}
    return {"maxThroughput": throughput.max_ru_per_second, "autoUpgradePolicy": policy}


def _at(value: object, *names: str) -> object:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _whole(value: object, *, what: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int:
        raise MalformedRequest(reason=f"The throughput's {what} must be a whole number.")
    return value
