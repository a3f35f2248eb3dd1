"""The depth of documents: a deeper one than the codec reads must not be made, since it could never be read again."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.failure import MongoFailure

# Levels of documents and arrays inside each other, the document itself among them. The codec reads one more, which is
# the array that $push and $addToSet may create around their argument.
NESTING_MAX = 200


def nesting(value: Any) -> int:
    """Return the levels of documents and arrays in a value: 0 for a scalar. A loop, since the value may be too deep for
    recursion."""
    levels = 0
    level = [value]
    while True:
        inner: list[Any] = []
        has_containers = False
        for element in level:
            if type(element) is dict:
                has_containers = True
                inner.extend(element.values())
            elif type(element) is list:
                has_containers = True
                inner.extend(element)
        if not has_containers:
            return levels
        levels += 1
        level = inner


def check_nesting(levels: int) -> None:
    if levels > NESTING_MAX:
        raise MongoFailure(15, f"Document exceeds maximum nested object depth: {NESTING_MAX}")
