"""The types of properties: their names, their limits, and the values that they are kept as.

A property is kept as a JSON value: as it is for String, Int32, Boolean and finite Double; as a text with its type
beside it for the others.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from asterism.limits import KIB

INT32 = range(-(2**31), 2**31)
INT64 = range(-(2**63), 2**63)

# The service's limits for a single property: 64 KB either way, of UTF-16 for a text.
STRING_UTF16_UNITS_MAX: Final = 32 * KIB
BINARY_BYTES_MAX: Final = 64 * KIB


class EdmType(StrEnum):
    STRING = "Edm.String"
    INT32 = "Edm.Int32"
    INT64 = "Edm.Int64"
    DOUBLE = "Edm.Double"
    BOOLEAN = "Edm.Boolean"
    DATETIME = "Edm.DateTime"
    GUID = "Edm.Guid"
    BINARY = "Edm.Binary"


# The JSON value that a property is kept as.
Kept = str | int | float | bool

# The types that a JSON value does not show; kept, and answered, with an annotation.
ANNOTATED: Final = frozenset({EdmType.INT64.value, EdmType.DATETIME.value, EdmType.GUID.value, EdmType.BINARY.value})


def utf16_units(text: str) -> int:
    """Return the length of a text as the service counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def type_of(kept: object, annotation: str | None) -> EdmType:
    """Return the type of a kept value."""
    if annotation is not None:
        return EdmType(annotation)
    kind = type(kept)
    if kind is str:
        return EdmType.STRING
    if kind is bool:
        return EdmType.BOOLEAN
    return EdmType.INT32 if kind is int else EdmType.DOUBLE


def size_bytes(kept: object, annotation: str | None) -> int:
    """Return what a value counts towards the size of its entity: strings in UTF-16, the others by their width."""
    match type_of(kept, annotation):
        case EdmType.STRING:
            return 4 + 2 * utf16_units(str(kept))
        case EdmType.BINARY:
            text = str(kept)
            return 4 + len(text) * 3 // 4 - text.count("=", -2)
        case EdmType.INT32:
            return 4
        case EdmType.BOOLEAN:
            return 1
        case EdmType.GUID:
            return 16
        case _:
            return 8
