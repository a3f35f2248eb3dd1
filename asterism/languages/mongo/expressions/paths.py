"""Paths of the aggregation language: `$a.b` and `$$variable.a.b`, read from documents and checked when compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import MISSING

# The depth of BSON that the server accepts; a longer path leads nowhere and is refused.
PATH_COMPONENTS_MAX = 200

# The fields of a reference (DBRef), the only names that may begin with a dollar sign.
REFERENCE_FIELDS = ("$ref", "$id", "$db")

Read = Callable[[Any], Any]


def read_path(value: Any, parts: tuple[str, ...]) -> Any:
    """Return the value at a path, or MISSING. An array on the way gives the array of what its documents have there;
    a numeric component is a name and never an index."""
    for position, part in enumerate(parts):
        if isinstance(value, dict):
            value = value.get(part, MISSING)
        elif isinstance(value, list):
            rest = parts[position:]
            found = (read_path(element, rest) for element in value if isinstance(element, dict))
            return [element for element in found if element is not MISSING]
        else:
            return MISSING
    return value


def compile_read(parts: tuple[str, ...]) -> Read:
    """Return `read_path` for fixed parts, faster for the short paths that nearly all are."""
    if not parts:
        return lambda value: value
    if len(parts) > 1:
        return lambda value: read_path(value, parts)
    name = parts[0]
    return lambda value: value.get(name, MISSING) if type(value) is dict else read_path(value, parts)


def split_path(path: str, *, too_long_code: int = 5984700) -> tuple[str, ...]:
    """Return the components of a path without its `$`, or refuse it."""
    if not path:
        raise MongoFailure(40352, "FieldPath cannot be constructed with empty string")
    if path.endswith("."):
        raise MongoFailure(40353, f"FieldPath must not end with a '.'. Path was '{path}'")
    parts = tuple(path.split("."))
    for part in parts:
        check_field_name(part)
    if len(parts) > PATH_COMPONENTS_MAX:
        raise MongoFailure(too_long_code, "FieldPath is too long")
    return parts


def check_field_name(name: str) -> None:
    """Refuse a name that cannot be a component of a path."""
    if not name:
        raise MongoFailure(
            15998, "FieldPath field names may not be empty strings. Consider using $getField or $setField"
        )
    if name[0] == "$" and name not in REFERENCE_FIELDS:
        raise MongoFailure(
            16410, f"FieldPath field names may not start with '$'. Consider using $getField or $setField. Got '{name}'"
        )
    if "\0" in name:
        raise MongoFailure(16411, "FieldPath field names may not contain '\\0'")
    if "." in name:
        raise MongoFailure(16412, f"FieldPath field names may not contain '.'. Consider using $getField. Got '{name}'")
