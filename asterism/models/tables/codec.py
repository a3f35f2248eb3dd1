"""The properties of an entity as bytes: the members of a JSON object as the protocol writes it, without its braces.

Most answers need no decoding: the stored bytes are a part of the answer. A filter on properties first searches for
names and values as bytes, and decodes only what is left. A property whose type a JSON value does not show has a member
`<name>@odata.type` before it; names contain no `@`, so the two cannot be confused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from asterism.limits import MIB
from asterism.models.tables.entities import FailureReason
from asterism.models.tables.property_types import Kept, size_bytes, utf16_units
from asterism.values.json.text import dumps, loads_stored

ANNOTATION: Final = "@odata.type"
_ANNOTATION_BYTES: Final = ANNOTATION.encode()

# The service counts 255, with its own three.
PROPERTIES_MAX: Final = 252
ENTITY_BYTES_MAX: Final = MIB

# The least that a property takes in the encoded bytes: two quotes, a colon, a digit, and a comma.
_ENCODED_PROPERTY_BYTES_MIN: Final = 6


def encode(members: Mapping[str, Kept]) -> bytes:
    """Encode members as `decode` returns them: values, and annotations where a type needs one."""
    return dumps(members)[1:-1]


def decode(properties: bytes) -> dict[str, Kept]:
    return cast("dict[str, Kept]", loads_stored(b"{%b}" % properties))


def has_annotations(properties: bytes) -> bool:
    """Return False only if no property has an annotation."""
    return _ANNOTATION_BYTES in properties


def merge(stored: bytes, given: bytes) -> bytes | FailureReason:
    """Return `stored` with the properties of `given` in place of those with the same name, or the reason for which the
    result is too much for a single entity."""
    if not given:
        return stored
    if not stored:
        return given
    members, changes = decode(stored), decode(given)
    for name in changes:
        # The type may have changed to one that needs no annotation.
        if name + ANNOTATION not in changes:
            members.pop(name + ANNOTATION, None)
    members.update(changes)
    merged = encode(members)
    return excess(merged, members) or merged


def excess(properties: bytes, members: Mapping[str, Kept]) -> FailureReason | None:
    """Return the reason for which the properties are too much for a single entity, or None. They are counted only if
    the number of bytes leaves a doubt."""
    size = len(properties)
    if size >= PROPERTIES_MAX * _ENCODED_PROPERTY_BYTES_MIN and property_count(members) > PROPERTIES_MAX:
        return FailureReason.TOO_MANY_PROPERTIES
    # A character is at most two bytes in UTF-16 for each that it takes here, and a property eight bytes more.
    if size * 2 + 8 * len(members) > ENTITY_BYTES_MAX and entity_size_bytes(members) > ENTITY_BYTES_MAX:
        return FailureReason.TOO_LARGE
    return None


def property_count(members: Mapping[str, Kept]) -> int:
    return len(members) - sum(name.endswith(ANNOTATION) for name in members)


def entity_size_bytes(members: Mapping[str, Kept]) -> int:
    """Return the size of the user's properties as the service counts it; keys add at most 2 KB."""
    return 4 + sum(
        8 + 2 * utf16_units(name) + size_bytes(members[name], cast("str | None", members.get(name + ANNOTATION)))
        for name in members
        if not name.endswith(ANNOTATION)
    )
