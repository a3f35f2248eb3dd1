"""`expireAfterSeconds` of time series and clustered collections."""

from __future__ import annotations

from typing import Any

from asterism.apis.mongo.arguments import as_int
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Int64

_MILLISECONDS_MAX = 2**63 - 1


def read_expiry(value: Any, *, now_seconds: int) -> Int64:
    """Return the seconds after which documents expire. They may not reach back to before 1970."""
    seconds = as_int(value)
    if seconds < 0:
        raise MongoFailure(72, "TTL index 'expireAfterSeconds' option must be within an acceptable range, not below 0")
    if seconds * 1000 > _MILLISECONDS_MAX or seconds > now_seconds:
        raise MongoFailure(72, "TTL index 'expireAfterSeconds' option must be within an acceptable range, too large")
    return Int64(seconds)
