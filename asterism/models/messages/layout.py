"""The keys of queues and topics inside a partition (DESIGN.md has them byte by byte).

All of them are routed by their key: behind the family is the point, which is the number of the fragment. Most go on
with the *channel*: the number of the subscription (0 for a queue, and for the topic itself) and the sub-queue.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import Final

from asterism.values.ordered_text import leading_part, text_of_leading_part

# point, channel, sequence number -> message (records.py)
MESSAGES: Final = b"\x20"
# point, number of a body -> content that several subscriptions share
BODIES: Final = b"\x21"
# point, number of a body -> how many messages refer to it, and its length
REFERENCES: Final = b"\x22"
# point, channel, sequence number -> the state of a message, where it is not the default (records.py)
STATES: Final = b"\x23"
# point, channel, group, session id, sequence number -> the session id, if it was cut in the key
SESSION_MESSAGES: Final = b"\x24"
# point, channel, session id -> moment of the last change, session id, state
SESSIONS: Final = b"\x25"
# point, channel, sequence number -> token, end of the lock
LOCKS: Final = b"\x26"
# point -> next sequence number
TAIL: Final = b"\x27"
# point, digest of a message id -> moment until which it is remembered, sequence number
DUPLICATES: Final = b"\x28"
# point, moment, digest -> nothing
DUPLICATES_DUE: Final = b"\x29"
# point, channel -> counters of active, deferred and scheduled messages, and bytes
COUNTERS: Final = b"\x2a"
# point, moment, kind, channel, sequence number -> nothing
DUE: Final = b"\x2b"
# point, source of a forwarded message -> moment of its arrival
FORWARDED: Final = b"\x2c"
# point, channel -> moment of the last use, of entities that are deleted when they are idle
ACTIVITY: Final = b"\x2d"
# point, channel, sequence number -> nothing; a message that may lie behind the cursors of other processes
RETURNED: Final = b"\x2e"
# point, channel, session id -> token, end of the lock
SESSION_LOCKS: Final = b"\x2f"

# Everything that a channel owns by its key.
CHANNEL_FAMILIES: Final = (
    MESSAGES,
    STATES,
    SESSION_MESSAGES,
    SESSIONS,
    LOCKS,
    COUNTERS,
    ACTIVITY,
    RETURNED,
    SESSION_LOCKS,
)

CHANNEL_BYTES: Final = 4
NUMBER_BYTES: Final = 8
DIGEST_BYTES: Final = 16
SUBSCRIPTIONS_MAX: Final = 2**24 - 1

# Groups of the messages of a session: those to be received, and those set aside (deferred or scheduled).
READY: Final = b"\x00"
ASIDE: Final = b"\x01"

# Kinds of due entries.
ACTIVATION: Final = 1
EXPIRY: Final = 2

# The expiry of a message that never expires: behind every moment.
NEVER: Final = 2**63 - 1

_NUMBER = struct.Struct(">Q")
_DUE = struct.Struct(f">QB{CHANNEL_BYTES}sQ")
_SOURCE = struct.Struct(f">H{CHANNEL_BYTES}sQ")
TOKEN: Final = struct.Struct(">H6s8s")

pack_number = _NUMBER.pack


def unpack_number(value: bytes) -> int:
    return int.from_bytes(value[:NUMBER_BYTES], "big")


def channel_of(subscription: int, sub_queue: int) -> bytes:
    return (subscription << 8 | sub_queue).to_bytes(CHANNEL_BYTES, "big")


def parts_of_channel(channel: bytes) -> tuple[int, int]:
    """Return the subscription and the sub-queue."""
    number = int.from_bytes(channel, "big")
    return number >> 8, number & 0xFF


def number_in(key: bytes) -> int:
    """Return the sequence number that a key ends with."""
    return int.from_bytes(key[-NUMBER_BYTES:], "big")


# --- sessions -------------------------------------------------------------------------------------------------------


def session_part(session_id: str) -> bytes:
    """Return a session id as it stands in keys: terminated, and cut if it is long."""
    return leading_part(session_id)


def session_of(part: bytes, value: bytes) -> str:
    """Return the session id of an entry whose key has `part`; `value` has it if it was cut."""
    return value.decode("utf-8", "surrogatepass") if value else text_of_leading_part(part)[0]


def session_value(session_id: str, part: bytes) -> bytes:
    """Return the value of an entry under a part of a session id: the id, if the part does not have all of it."""
    return b"" if text_of_leading_part(part)[1] else session_id.encode("utf-8", "surrogatepass")


# --- other keys -----------------------------------------------------------------------------------------------------


def due_key(point: bytes, moment: int, kind: int, channel: bytes, number: int) -> bytes:
    return DUE + point + _DUE.pack(moment, kind, channel, number)


def unpack_due(key: bytes) -> tuple[int, int, bytes, int]:
    """Return the moment, the kind, the channel and the sequence number."""
    moment, kind, channel, number = _DUE.unpack(key[-_DUE.size :])
    return moment, kind, channel, number


def duplicate_digest(message_id: str) -> bytes:
    return hashlib.blake2b(message_id.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def source_of(keyspace_rid: bytes, fragment: int, channel: bytes, number: int) -> bytes:
    """Return the name of a message that is forwarded: it is the same whatever process forwards it, and when."""
    return keyspace_rid + _SOURCE.pack(fragment, channel, number)


def unpack_source(source: bytes) -> tuple[bytes, int, bytes, int]:
    """Return the keyspace, the fragment, the channel and the sequence number of a forwarded message."""
    fragment, channel, number = _SOURCE.unpack(source[-_SOURCE.size :])
    return source[: -_SOURCE.size], fragment, channel, number


def token_of(fragment: int, number: int, random: bytes) -> bytes:
    """Return a lock token, which locates its message."""
    return TOKEN.pack(fragment, number.to_bytes(6, "big"), random)


def tokens_of(fragment: int, numbers: Sequence[int], randoms: bytes) -> list[bytes]:
    """Return the lock tokens of several messages of a fragment, each with 8 of the random bytes."""
    first = fragment << 48
    return [
        _NUMBER.pack(first | number) + randoms[at : at + 8]
        for number, at in zip(numbers, range(0, len(randoms), 8), strict=True)
    ]


def place_of_token(token: bytes) -> tuple[int, int]:
    """Return the fragment and the sequence number of a token."""
    return int.from_bytes(token[:2], "big"), int.from_bytes(token[2:8], "big")


def shown_number(fragment: int, number: int, *, is_partitioned: bool) -> int:
    return fragment << 48 | number if is_partitioned else number


def place_of_number(shown: int) -> tuple[int, int]:
    """Return the fragment and the sequence number inside it."""
    return shown >> 48 & 0xFFFF, shown & 0xFFFF_FFFF_FFFF
