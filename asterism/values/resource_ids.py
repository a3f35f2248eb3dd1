"""Resource ids in the service's own layout, and the links built of them.

A database is 4 bytes. A container adds 4 whose first byte has its high bit set, a user 4 where it is clear. A child of
a container adds 8, a little-endian number whose highest four bits are its kind; a permission adds 8 to its user. An
offer is 3 bytes alone. The text is base64 with '-' for '/', so that it fits in a path.
"""

from __future__ import annotations

import binascii
import struct
from enum import IntEnum

DATABASE_RID_BYTES = 4
COLLECTION_RID_BYTES = 8
USER_RID_BYTES = 8
CHILD_RID_BYTES = 16

_COLLECTION_FLAG = 0x80
# One bit of the 32 distinguishes containers from users, four bits of the 64 the kinds of children.
OWNED_NUMBER_LIMIT = 2**31
CHILD_NUMBER_LIMIT = 2**60
_pack_child_number = struct.Struct("<Q").pack


class ChildKind(IntEnum):
    """Kinds of a container's children, by their four bits."""

    DOCUMENT = 0
    CONFLICT = 4
    PARTITION_KEY_RANGE = 5
    USER_DEFINED_FUNCTION = 6
    TRIGGER = 7
    STORED_PROCEDURE = 8


_CHILD_KINDS_BY_BITS = {kind.value: kind for kind in ChildKind}


def to_text(rid: bytes) -> str:
    return binascii.b2a_base64(rid, newline=False).decode("ascii").replace("/", "-")


def from_text(text: str) -> bytes | None:
    """Return the bytes of a resource id's text, or None if `text` is not a resource id."""
    try:
        rid = binascii.a2b_base64(text.replace("-", "/").encode("ascii"), strict_mode=True)
    except (ValueError, UnicodeEncodeError):
        return None
    # Spare bits at the end would give one id several texts.
    return rid if rid and to_text(rid) == text else None


def collection_rid(database: bytes, number: int) -> bytes:
    return database + _owned_number(number, flag=_COLLECTION_FLAG)


def user_rid(database: bytes, number: int) -> bytes:
    return database + _owned_number(number, flag=0)


def _owned_number(number: int, *, flag: int) -> bytes:
    if not 0 <= number < OWNED_NUMBER_LIMIT:
        raise ValueError("a container's or user's number has 31 bits")
    # The flag takes bit 7 of the first byte, so the number steps over that bit.
    return bytes((flag | (number & 0x7F),)) + (number >> 7).to_bytes(3, "little")


def child_rid(collection: bytes, number: int, *, kind: ChildKind) -> bytes:
    if not 0 <= number < CHILD_NUMBER_LIMIT:
        raise ValueError("a child's number has 60 bits")
    return collection + _pack_child_number(kind << 60 | number)


def pkrange_rid(collection: bytes, number: int) -> bytes:
    return child_rid(collection, number, kind=ChildKind.PARTITION_KEY_RANGE)


def permission_rid(user: bytes, number: int) -> bytes:
    if not 0 <= number < CHILD_NUMBER_LIMIT:
        raise ValueError("a permission's number has 60 bits")
    return user + _pack_child_number(number)


def child_kind(rid: bytes) -> ChildKind | None:
    """Return the kind of a container's child, or None if the id is of something else."""
    if len(rid) != CHILD_RID_BYTES or not rid[4] & _COLLECTION_FLAG:
        return None
    return _CHILD_KINDS_BY_BITS.get(rid[-1] >> 4)


def child_number(rid: bytes) -> int:
    """Return the number of a child within its container (or user)."""
    return int.from_bytes(rid[COLLECTION_RID_BYTES:], "little") & (CHILD_NUMBER_LIMIT - 1)


class DocumentLinks:
    """Make the ids and links of a container's documents; every write needs one of each, so this is built for speed."""

    __slots__ = ("_collection", "_link_start")

    def __init__(self, collection: bytes) -> None:
        self._collection = collection
        self._link_start = f"{self_link_of_collection(collection)}docs/"

    def rid_text(self, number: int) -> str:
        """Return the text of the resource id of the container's document with this number."""
        rid = self._collection + _pack_child_number(number)
        return binascii.b2a_base64(rid, newline=False).decode("ascii").replace("/", "-")

    def self_link(self, rid_text: str) -> str:
        return f"{self._link_start}{rid_text}/"


def self_link_of_database(database: bytes) -> str:
    return f"dbs/{to_text(database)}/"


def self_link_of_collection(collection: bytes) -> str:
    return f"{self_link_of_database(collection[:DATABASE_RID_BYTES])}colls/{to_text(collection)}/"


def self_link_of_user(user: bytes) -> str:
    return f"{self_link_of_database(user[:DATABASE_RID_BYTES])}users/{to_text(user)}/"


def self_link_of_child(child: bytes, *, segment: str) -> str:
    """Return the link of a container's child; `segment` is its part of the path: docs, sprocs, pkranges."""
    return f"{self_link_of_collection(child[:COLLECTION_RID_BYTES])}{segment}/{to_text(child)}/"


def self_link_of_permission(permission: bytes) -> str:
    return f"{self_link_of_user(permission[:USER_RID_BYTES])}permissions/{to_text(permission)}/"


def self_link_of_offer(offer: bytes) -> str:
    return f"offers/{to_text(offer)}/"
