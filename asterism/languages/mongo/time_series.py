"""The options of a time-series collection, read and completed."""

from __future__ import annotations

from typing import Any, Final

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.integers import truncated_int64
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.types import DatetimeMS, Decimal128, Document

_TEXTS = ("timeField", "metaField", "granularity")
_SPANS = ("bucketMaxSpanSeconds", "bucketRoundingSeconds")
# The span of a bucket for each granularity: an hour, a day, thirty days.
GRANULARITY_SPANS: Final = {"seconds": 3600, "minutes": 86_400, "hours": 2_592_000}
SPAN_SECONDS_MAX = 31_536_000


def read_time_series(specification: Any, place: str) -> Document:
    """Return the options with their defaults, as they are stored and shown; `place` names them in messages."""
    if type(specification) is not dict:
        raise _wrong_type(place, specification, "object")
    for name, value in specification.items():
        if name not in _TEXTS and name not in _SPANS:
            raise MongoFailure(40415, f"BSON field '{place}.{name}' is an unknown field.")
        if value is None:
            continue
        if name in _TEXTS and type(value) is not str:
            raise _wrong_type(f"{place}.{name}", value, "string")
        if name in _SPANS and not is_number(value):
            raise _wrong_type(f"{place}.{name}", value, "number")
    given = {name: value for name, value in specification.items() if value is not None}
    if "timeField" not in given:
        raise MongoFailure(40414, f"BSON field '{place}.timeField' is missing but a required field")
    options: Document = {"timeField": given["timeField"]}
    if "metaField" in given:
        options["metaField"] = given["metaField"]
    granularity = given.get("granularity")
    if granularity is not None and granularity not in GRANULARITY_SPANS:
        raise MongoFailure(2, f"Enumeration value '{granularity}' for field '{place}.granularity' is not a valid value")
    spans = {name: _span(given[name], f"{place}.{name}") for name in _SPANS if name in given}
    if not spans:
        granularity = granularity or "seconds"
        return {**options, "granularity": granularity, "bucketMaxSpanSeconds": GRANULARITY_SPANS[granularity]}
    if granularity is not None:
        raise MongoFailure(72, "Cannot set both 'granularity' and 'bucketMaxSpanSeconds' of a time-series collection")
    if len(spans) < 2 or len(set(spans.values())) > 1:
        raise MongoFailure(72, "'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' must be given together and be equal")
    span = spans["bucketMaxSpanSeconds"]
    return {**options, "bucketRoundingSeconds": span, "bucketMaxSpanSeconds": span}


def _span(value: Any, place: str) -> int:
    # A decimal is rounded half to even, a double cut off.
    seconds = truncated_int64(round(value.to_decimal()) if _is_finite_decimal(value) else value)
    if seconds is None or not 1 <= seconds <= SPAN_SECONDS_MAX:
        raise MongoFailure(
            2, f"BSON field '{place}' value must be from 1 to {SPAN_SECONDS_MAX}, actual value '{value}'"
        )
    return seconds


def _is_finite_decimal(value: Any) -> bool:
    return type(value) is Decimal128 and bool(value.to_decimal().is_finite()) and value.to_decimal().adjusted() < 40


def check_measurement(document: Document, options: Document) -> None:
    """Refuse a document that is no measurement: its time field is not a date."""
    if type(document.get(options["timeField"])) is not DatetimeMS:
        raise MongoFailure(2, f"'{options['timeField']}' must be present and contain a valid BSON UTC datetime value")


def _wrong_type(place: str, value: Any, wanted: str) -> MongoFailure:
    return MongoFailure(14, f"BSON field '{place}' is the wrong type '{type_name(value)}', expected type '{wanted}'")
