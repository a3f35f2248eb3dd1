"""Encoding of strings as bytes that sort as in the service: by UTF-16 code unit (ordinal order).

UTF-8 sorts by code point, and the two differ: a character beyond U+FFFF is a pair of surrogates in UTF-16, which comes
before U+E000. So such a character is written here as its two surrogates, three bytes each; every other string is plain
UTF-8. No byte is 0xFF, and every string has an encoding, including those with lone surrogates.
"""

from __future__ import annotations

import hashlib

# Terminator of a string that others may follow: below every byte that can continue it, and unlike the escaped NUL.
_END = b"\x00\x01"
_NUL = b"\x00"
_NUL_ESCAPED = b"\x00\xff"
_LAST_OF_ONE_UNIT = "\uffff"

# A part of a stored key is at most this long; a longer one is cut here and followed by a digest of the whole. Two such
# parts and a family byte fit in the 500 bytes of a key.
PART_BYTES_MAX = 228
DIGEST_BYTES = 20


def ordered_text(text: str) -> bytes:
    """Return bytes that compare as the strings do; not cut, and not terminated."""
    if text.isascii():
        return text.encode()
    if max(text) > _LAST_OF_ONE_UNIT:
        text = "".join(map(_as_units, text))
    return text.encode("utf-8", "surrogatepass")


def _as_units(character: str) -> str:
    if character <= _LAST_OF_ONE_UNIT:
        return character
    above = ord(character) - 0x10000
    return chr(0xD800 + (above >> 10)) + chr(0xDC00 + (above & 0x3FF))


def text_of(ordered: bytes) -> str:
    """Return the string of bytes made by `ordered_text`; of a prefix of such bytes, as many whole characters."""
    try:
        return ordered.decode()
    except UnicodeDecodeError:
        units = ordered.decode("utf-8", "surrogatepass") if _is_whole(ordered) else _beginning(ordered)
        return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def _is_whole(ordered: bytes) -> bool:
    try:
        ordered.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _beginning(ordered: bytes) -> str:
    # A character has at most three bytes here, so a cut one lacks one or two of them.
    for shorter in (ordered[:-1], ordered[:-2]):
        if _is_whole(shorter):
            return shorter.decode("utf-8", "surrogatepass")
    raise ValueError("not a prefix of an ordered text")


def leading_part(text: str) -> bytes:
    """Return a string as a part of a key before other parts: terminated, so that no part is a prefix of another."""
    ordered = ordered_text(text)
    if _NUL in ordered:
        ordered = ordered.replace(_NUL, _NUL_ESCAPED)
    return cut_part(ordered + _END)


def last_part(text: str) -> bytes:
    """Return a string as the last part of a key."""
    return cut_part(ordered_text(text))


def cut_part(part: bytes) -> bytes:
    """Return the part itself or, if it is too long, its first bytes and a digest. Parts that share their first bytes
    then sort at random: readers in order must sort them by their strings."""
    if len(part) <= PART_BYTES_MAX:
        return part
    return part[:PART_BYTES_MAX] + hashlib.blake2b(part, digest_size=DIGEST_BYTES).digest()


def end_of_leading_part(key: bytes) -> int | None:
    """Return the end of the string that a key begins with, or None if it was cut."""
    found = key.find(_END, 0, PART_BYTES_MAX)
    return None if found < 0 else found + len(_END)


def text_of_leading_part(part: bytes) -> tuple[str, bool]:
    """Return the string of a part, and True if it is whole."""
    end = end_of_leading_part(part)
    kept = part[:PART_BYTES_MAX].rstrip(_NUL) if end is None else part[: end - len(_END)]
    return text_of(kept.replace(_NUL_ESCAPED, _NUL)), end is not None
