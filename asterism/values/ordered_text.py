"""Texts as bytes that sort as the service sorts texts: by UTF-16 code unit, one after the other (ordinal order).

UTF-8 sorts by code point, and the two differ: a character beyond U+FFFF is a pair of surrogates in UTF-16, which comes
before U+E000. So such a character is written here as its two surrogates, three bytes each; every other text is plain
UTF-8. No byte of it is 0xFF, and every text has its bytes, halves of characters included.
"""

from __future__ import annotations

import hashlib

# What ends a text that others may follow: below every byte that can go on, and unlike the escaped NUL.
_END = b"\x00\x01"
_NUL = b"\x00"
_NUL_ESCAPED = b"\x00\xff"
_LAST_OF_ONE_UNIT = "\uffff"

# A part of a stored key is at most this long; of a longer one the beginning stands there, and a digest of the whole.
# Two such parts and a family byte fit in the 500 bytes of a key.
PART_BYTES_MAX = 228
DIGEST_BYTES = 20


def ordered_text(text: str) -> bytes:
    """Bytes that compare as the texts do; not cut, and not ended."""
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
    """The text of bytes that `ordered_text` made; of the beginning of such bytes, as much as is whole."""
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
    # A character has at most three bytes here, so one that was cut lacks one or two of them.
    for shorter in (ordered[:-1], ordered[:-2]):
        if _is_whole(shorter):
            return shorter.decode("utf-8", "surrogatepass")
    raise ValueError("not the beginning of an ordered text")


def leading_part(text: str) -> bytes:
    """A text as a part of a key that other parts follow: ended, so that no part is the beginning of another."""
    ordered = ordered_text(text)
    if _NUL in ordered:
        ordered = ordered.replace(_NUL, _NUL_ESCAPED)
    return cut_part(ordered + _END)


def last_part(text: str) -> bytes:
    """A text as the end of a key."""
    return cut_part(ordered_text(text))


def cut_part(part: bytes) -> bytes:
    """The part itself or, if it is too long, its beginning and a digest. Parts that share their beginning then sort by
    chance: who reads them in order has to sort them by what they were made of."""
    if len(part) <= PART_BYTES_MAX:
        return part
    return part[:PART_BYTES_MAX] + hashlib.blake2b(part, digest_size=DIGEST_BYTES).digest()


def end_of_leading_part(key: bytes) -> int | None:
    """Where the text that a key begins with ends; None if it was cut."""
    found = key.find(_END, 0, PART_BYTES_MAX)
    return None if found < 0 else found + len(_END)


def text_of_leading_part(part: bytes) -> tuple[str, bool]:
    """The text that a part was made of, and whether that is all of it."""
    end = end_of_leading_part(part)
    kept = part[:PART_BYTES_MAX].rstrip(_NUL) if end is None else part[: end - len(_END)]
    return text_of(kept.replace(_NUL_ESCAPED, _NUL)), end is not None
