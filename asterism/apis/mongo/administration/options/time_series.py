"""`timeseries`: the fields of a time series collection, and the width of its buckets."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.mongo.arguments import NUMBER, TEXT, as_int, check_document
from asterism.apis.mongo.commands import FieldRule
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document

# The seconds that a bucket spans at most, by granularity.
_SPANS: Final = {"seconds": 3600, "minutes": 86_400, "hours": 2_592_000}
# A year.
_SPAN_SECONDS_MAX: Final = 31_536_000
_BUCKET_FIELDS: Final = {
    "granularity": FieldRule(TEXT),
    "bucketMaxSpanSeconds": FieldRule(NUMBER),
    "bucketRoundingSeconds": FieldRule(NUMBER),
}
_FIELDS: Final = {"timeField": FieldRule(TEXT, is_required=True), "metaField": FieldRule(TEXT), **_BUCKET_FIELDS}


def read_time_series(value: Document) -> Document:
    """Return the options of a time series collection, complete."""
    check_document("create.timeseries", value, _FIELDS)
    time_field, meta_field = value["timeField"], value.get("metaField")
    for name, field in (("timeField", time_field), ("metaField", meta_field)):
        if field is not None and "\0" in field:
            raise MongoFailure(2, f"The '{name}' cannot contain null bytes")
        if field is not None and "." in field:
            raise MongoFailure(72, f"'{name}' must not be a dotted path")
    if meta_field == "_id":
        raise MongoFailure(72, "The field 'metaField' cannot be '_id'")
    if meta_field == time_field:
        raise MongoFailure(72, "The field 'metaField' must not be the same as 'timeField'")
    stored: Document = {"timeField": time_field}
    if meta_field is not None:
        stored["metaField"] = meta_field
    return stored | _read_buckets(value)


def _read_buckets(value: Document) -> Document:
    granularity = value.get("granularity")
    if granularity is not None and granularity not in _SPANS:
        raise MongoFailure(
            2, f"Enumeration value '{granularity}' for field 'timeseries.granularity' is not a valid value."
        )
    span, rounding = _read_span(value, "bucketMaxSpanSeconds"), _read_span(value, "bucketRoundingSeconds")
    if span is None and rounding is None:
        chosen = granularity or "seconds"
        return {"granularity": chosen, "bucketMaxSpanSeconds": _SPANS[chosen]}
    if granularity is not None:
        # The default of a granularity is the same as not to say it.
        if rounding is not None or span != _SPANS[granularity]:
            raise MongoFailure(72, "Timeseries granularity cannot be set together with the seconds of buckets")
        return {"granularity": granularity, "bucketMaxSpanSeconds": span}
    if span != rounding:
        raise MongoFailure(72, "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' must be set and equal")
    return {"bucketMaxSpanSeconds": span, "bucketRoundingSeconds": rounding}


def _read_span(value: Document, name: str) -> int | None:
    given: Any = value.get(name)
    if given is None:
        return None
    seconds = as_int(given)
    if not 1 <= seconds <= _SPAN_SECONDS_MAX:
        raise MongoFailure(2, f"BSON field 'timeseries.{name}' value must be between 1 and {_SPAN_SECONDS_MAX}")
    return seconds


def change_time_series(before: Document, value: Document) -> Document:
    """Return the options after `collMod`: buckets may only become wider."""
    check_document("collMod.timeseries", value, _BUCKET_FIELDS)
    if all(value.get(name) is None for name in _BUCKET_FIELDS):
        return before
    wanted = _read_buckets(value)
    if wanted["bucketMaxSpanSeconds"] < before["bucketMaxSpanSeconds"]:
        raise MongoFailure(72, "Invalid transition for timeseries: the span of buckets can only be increased")
    kept = {name: before[name] for name in ("timeField", "metaField") if name in before}
    return kept | wanted
