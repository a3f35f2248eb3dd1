"""The bounds of capped collections."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.mongo.arguments import as_int
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Int64

# MongoDB's own: 2^50 bytes, and documents below 2^31.
SIZE_BYTES_MAX: Final = 2**50
DOCUMENTS_MAX: Final = 2**31 - 1


def read_size(path: str, value: Any) -> int:
    """Return the bytes that a capped collection may have."""
    size = as_int(value)
    if not 1 <= size <= SIZE_BYTES_MAX:
        raise MongoFailure(2, f"BSON field '{path}' value must be between 1 and {SIZE_BYTES_MAX}, actual '{size}'")
    return size


def read_max(path: str, value: Any) -> int:
    """Return the documents that a capped collection may have; 0 for any number of them."""
    documents = as_int(value)
    if documents > DOCUMENTS_MAX:
        raise MongoFailure(2, f"BSON field '{path}' value must be <= {DOCUMENTS_MAX}, actual value '{documents}'")
    return max(0, documents)


def shown_number(number: int) -> int | Int64:
    """Return a number in the narrower of the types that `listCollections` shows it in."""
    return number if number < 2**31 else Int64(number)
