"""Pop receipts: texts that name one state of one message, and so prove that it was not taken or updated since.

A receipt has the generation of the queue and the moment from which the message is visible. Both stand in the key of the
message's entry, which every take and every update replaces. So a receipt needs no store of its own, and stays valid
when the server restarts or the queue is moved to another partition.
"""

from __future__ import annotations

import binascii
import re
import struct
from base64 import b64decode, b64encode
from typing import NamedTuple

from asterism.models.queues.layout import GENERATION_BYTES, NEVER

_RECEIPT = struct.Struct(f">{GENERATION_BYTES}sQ")
_RECEIPT_TEXT_LENGTH = len(b64encode(bytes(_RECEIPT.size)))
_ID = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})", re.ASCII | re.IGNORECASE)


class Receipt(NamedTuple):
    generation: bytes
    visible_at: int


def receipt_text(generation: bytes, visible_at: int) -> str:
    return b64encode(_RECEIPT.pack(generation, visible_at)).decode()


def read_receipt(text: str) -> Receipt | None:
    """Return the receipt of a text, or None if it names no state of a message."""
    if len(text) != _RECEIPT_TEXT_LENGTH:
        return None
    try:
        receipt = Receipt(*_RECEIPT.unpack(b64decode(text, validate=True)))
    except (binascii.Error, struct.error, ValueError):
        return None
    return receipt if receipt.visible_at < NEVER else None


def message_id_text(message_id: bytes) -> str:
    digits = message_id.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def read_message_id(text: str) -> bytes | None:
    """Return the id of a text, or None if no message can have it."""
    found = _ID.fullmatch(text)
    return None if found is None else bytes.fromhex("".join(found.groups()))
