"""Paths of update operators: components by dots, with the positional `$`, `$[]` and `$[identifier]` among them."""

from __future__ import annotations

import re
from functools import cmp_to_key

from asterism.languages.mongo.failure import MongoFailure

Parts = tuple[str, ...]

POSITIONAL = "$"
ALL_ELEMENTS = "$[]"

# Writing beyond the end of an array fills the gap with nulls, which must not be a way to exhaust the memory.
PADDING_MAX = 1_500_000

_IDENTIFIER = re.compile(r"[a-z][a-zA-Z0-9]*\Z")


def parse_path(path: str) -> Parts:
    """Split a path and check its components."""
    parts = tuple(path.split("."))
    for part in parts:
        if not part:
            raise MongoFailure(56, f"The update path '{path}' contains an empty field name, which is not allowed.")
    if is_positional(parts[0]):
        raise MongoFailure(2, f"Cannot have positional (i.e. '$') element in the first position in path '{path}'")
    if parts.count(POSITIONAL) > 1:
        raise MongoFailure(2, f"Too many positional (i.e. '$') elements found in path '{path}'")
    return parts


def is_positional(part: str) -> bool:
    return part == POSITIONAL or is_array_update(part)


def is_array_update(part: str) -> bool:
    return part.startswith("$[") and part.endswith("]")


def identifier_of(part: str) -> str:
    """Return the identifier between the brackets; empty for all elements."""
    return part[2:-1]


def is_identifier(text: str) -> bool:
    return _IDENTIFIER.match(text) is not None


def element_index(part: str) -> int | None:
    """Return the index that a component means in an array, or None when it is a name."""
    return int(part) if part.isascii() and part.isdigit() else None


def _compare_names(left: str, right: str) -> int:
    left_index, right_index = element_index(left), element_index(right)
    if left_index is not None and right_index is not None and left_index != right_index:
        return -1 if left_index < right_index else 1
    return -1 if left < right else int(left > right)


# The order in which fields are updated, and so in which new ones are appended: numbers by value, other names by bytes.
name_order = cmp_to_key(_compare_names)
