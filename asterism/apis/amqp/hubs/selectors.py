"""The filter by which a receiver says where it begins: `amqp.annotation.x-opt-offset > '12'` and the like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from asterism.apis.amqp.errors import ARGUMENT_ERROR
from asterism.apis.amqp.nodes import AmqpError
from asterism.models.event_logs.events import FromLatest, FromSequence, FromStart, FromTime, Place
from asterism.values.amqp.message import text_of

SELECTOR_FILTER: Final = "apache.org:selector-filter:string"
_START: Final = "-1"
_LATEST: Final = "@latest"
# Longer numbers are no offsets: sequence numbers have 63 bits.
_SELECTOR = re.compile(
    r"\s*amqp\.annotation\.(?P<name>[a-z-]+)\s*(?P<operator>>=?)\s*(?P<quote>'?)(?P<value>@latest|-?[0-9]{1,20})"
    r"(?P=quote)\s*",
    re.ASCII,
)
_SEQUENCE_NAMES: Final = ("x-opt-offset", "x-opt-sequence-number")
# The second is that of older clients.
_TIME_NAMES: Final = ("x-opt-enqueued-time", "x-opt-enqueuedtimeutc")


def place_of(filters: Mapping[str, Any]) -> Place:
    """Return the place at which a receiver begins; AmqpError if the filter cannot be understood."""
    if SELECTOR_FILTER not in filters:
        return FromStart()
    selector = text_of(filters[SELECTOR_FILTER])
    found = None if selector is None else _SELECTOR.fullmatch(selector)
    place = None if found is None else _place(found["name"], found["operator"] == ">=", found["value"])
    if place is None:
        raise AmqpError(
            ARGUMENT_ERROR,
            "The filter of the receiver cannot be understood. Compare x-opt-offset, x-opt-sequence-number or "
            "x-opt-enqueued-time with a number, as in: amqp.annotation.x-opt-offset > '12'.",
        )
    return place


def _place(name: str, is_inclusive: bool, value: str) -> Place | None:
    if name in _TIME_NAMES:
        return None if value == _LATEST else FromTime(int(value), is_inclusive)
    if name not in _SEQUENCE_NAMES:
        return None
    if value == _LATEST:
        return FromLatest()
    return FromStart() if value == _START else FromSequence(int(value), is_inclusive)
