"""The two performatives of the hot path, transfer and disposition, by hand: their fields have few forms.

Whatever the quick way does not know goes through the general decoder of `performatives.py`, with the same result.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, Final, NamedTuple

from asterism.apis.amqp.engine.frame_codec import encode_frame
from asterism.apis.amqp.engine.performatives import decode_performative, is_uint, is_uint_or_null
from asterism.values.amqp.types import Described, InvalidAmqp, ULong
from asterism.values.amqp.value_codec import encode_list_of

_UINT32: Final = struct.Struct(">I")
_unpack_uint32 = _UINT32.unpack_from

# Constructors.
_NULL, _TRUE, _FALSE, _UINT_0, _SMALL_UINT, _UINT = 0x40, 0x41, 0x42, 0x43, 0x52, 0x70

_BOOLEANS: Final = b"\x40\x41\x42"

ACCEPTED_STATE: Final = Described(ULong(0x24), [])


class Transfer(NamedTuple):
    handle: int
    # None in frames that continue a delivery.
    delivery_id: int | None
    tag: bytes | None
    format: int
    is_settled: bool
    has_more: bool
    # As it came: a transaction, or None.
    state: Any
    is_aborted: bool
    payload: bytes


class Disposition(NamedTuple):
    # True: about deliveries that this side sent.
    is_from_receiver: bool
    first: int
    last: int
    is_settled: bool
    state: Any


def decode_transfer(body: bytes) -> Transfer:
    """Return the transfer in the body of a frame. Raises InvalidAmqp."""
    try:
        quick = _quick_transfer(body)
    except (IndexError, struct.error):
        quick = None
    return _any_transfer(body) if quick is None else quick


def _quick_transfer(body: bytes) -> Transfer | None:
    """Return a transfer without a state and of the usual forms, or None."""
    if body[1] != 0x53:
        return None
    if body[3] == 0xC0:
        end, count, at = 5 + body[4], body[5], 6
    elif body[3] == 0xD0:
        end, count, at = 8 + _unpack_uint32(body, 4)[0], _unpack_uint32(body, 8)[0], 12
    else:
        return None
    if end > len(body) or not 5 <= count <= 11:
        return None
    # Handle, delivery-id.
    code = body[at]
    if code == _SMALL_UINT:
        handle, at = body[at + 1], at + 2
    elif code == _UINT:
        handle, at = _unpack_uint32(body, at + 1)[0], at + 5
    elif code == _UINT_0:
        handle, at = 0, at + 1
    else:
        return None
    code = body[at]
    delivery_id: int | None
    if code == _SMALL_UINT:
        delivery_id, at = body[at + 1], at + 2
    elif code == _UINT:
        delivery_id, at = _unpack_uint32(body, at + 1)[0], at + 5
    elif code == _UINT_0:
        delivery_id, at = 0, at + 1
    elif code == _NULL:
        delivery_id, at = None, at + 1
    else:
        return None
    # Tag.
    tag: bytes | None = None
    if body[at] == 0xA0:
        tag_end = at + 2 + body[at + 1]
        tag, at = body[at + 2 : tag_end], tag_end
    elif body[at] == _NULL:
        at += 1
    else:
        return None
    # Format.
    code = body[at]
    message_format = 0
    if code == _UINT:
        message_format, at = _unpack_uint32(body, at + 1)[0], at + 5
    elif code == _SMALL_UINT:
        message_format, at = body[at + 1], at + 2
    elif code in (_UINT_0, _NULL):
        at += 1
    else:
        return None
    flags = _flags_of(body[at:end])
    if flags is None or end - at != count - 4:
        return None
    return Transfer(handle, delivery_id, tag, message_format, *flags, None, False, body[end:])


@lru_cache(maxsize=64)
def _flags_of(fields: bytes) -> tuple[bool, bool] | None:
    """Return `settled` and `more` of the last fields of a transfer, one byte each: behind them come four that are null
    or false, and `batchable`, which means nothing here. None: there are others."""
    settled, more, unused, batchable = fields[:1], fields[1:2], fields[2:6], fields[6:]
    if not settled or settled.strip(_BOOLEANS) or more.strip(_BOOLEANS):
        return None
    if unused.strip(b"\x40\x42") or batchable.strip(_BOOLEANS) or len(batchable) > 1:
        return None
    return settled == b"\x41", more == b"\x41"


def _any_transfer(body: bytes) -> Transfer:
    _, fields, end = decode_performative(body)
    handle, delivery_id, tag, message_format, settled, more, _, state, _, aborted, _ = fields
    if not (
        is_uint(handle)
        and is_uint_or_null(delivery_id)
        and isinstance(tag, bytes | None)
        and is_uint_or_null(message_format)
    ):
        raise InvalidAmqp("a field of the transfer does not have its type")
    return Transfer(
        handle,
        delivery_id,
        tag,
        message_format or 0,
        settled is True,
        more is True,
        state,
        aborted is True,
        body[end:],
    )


def decode_disposition(body: bytes) -> Disposition:
    """Return the disposition in the body of a frame. Raises InvalidAmqp."""
    try:
        quick = _quick_disposition(body)
    except (IndexError, struct.error):
        quick = None
    return _any_disposition(body) if quick is None else quick


def _quick_disposition(body: bytes) -> Disposition | None:
    """Return a disposition whose state is that of acceptance, with all fields, or None."""
    if body[1] != 0x53 or body[3] != 0xC0 or body[5] != 6 or body[6] not in (_TRUE, _FALSE):
        return None
    code, at = body[7], 8
    if code == _SMALL_UINT:
        first, at = body[at], at + 1
    elif code == _UINT:
        first, at = _unpack_uint32(body, at)[0], at + 4
    else:
        return None
    code, at = body[at], at + 1
    if code == _SMALL_UINT:
        last, at = body[at], at + 1
    elif code == _UINT:
        last, at = _unpack_uint32(body, at)[0], at + 4
    elif code == _NULL:
        last = first
    else:
        return None
    # Settled, the state, and `batchable`.
    code, state = body[at], body[at + 1 : -1]
    if code not in _BOOLEANS or body[-1] not in _BOOLEANS or len(body) != 5 + body[4]:
        return None
    if state not in (b"\x00\x53\x24\x45", b"\x00\x53\x24\xc0\x01\x00"):
        return None
    return Disposition(body[6] == _TRUE, first, last, code == _TRUE, ACCEPTED_STATE)


def _any_disposition(body: bytes) -> Disposition:
    _, (role, first, last, settled, state, _), _ = decode_performative(body)
    if not isinstance(role, bool) or not is_uint(first) or not is_uint_or_null(last):
        raise InvalidAmqp("a field of the disposition does not have its type")
    return Disposition(role, first, first if last is None else last, settled is True, state)


# --- encoding -------------------------------------------------------------------------------------------------------

# The head of the frame; the descriptor and the head of the list; the role, and the first and the last delivery-id
# behind their constructors; `settled`. A state follows, and a null for `batchable`.
_DISPOSITION: Final = struct.Struct(">IBBH4sBBBBIBIB")
_DISPOSITION_STATE_BYTES_MAX: Final = 255 - 14


def encode_disposition(channel: int, *, is_from_receiver: bool, first: int, last: int, state: bytes) -> bytes:
    """Return the frame that settles a range of deliveries with an encoded state."""
    role = _TRUE if is_from_receiver else _FALSE
    state_bytes = len(state)
    if state_bytes > _DISPOSITION_STATE_BYTES_MAX:
        ids = [b"\x70" + _UINT32.pack(delivery_id) for delivery_id in (first, last)]
        return encode_frame(channel, b"\x00\x53\x15" + encode_list_of([bytes((role,)), *ids, b"\x41", state, b"\x40"]))
    head = _DISPOSITION.pack(
        _DISPOSITION.size + state_bytes + 1,
        2,
        0,
        channel,
        b"\x00\x53\x15\xc0",
        14 + state_bytes,
        6,
        role,
        _UINT,
        first,
        _UINT,
        last,
        _TRUE,
    )
    return head + state + b"\x40"


# The head of the frame; the descriptor and the head of the list; the handle, the delivery-id and the head of the tag.
# The tag follows, and then the format, `settled`, `more` and five nulls.
_TRANSFER: Final = struct.Struct(">IBBH4sBBBBBIBB")
_TRANSFER_BYTES: Final = _TRANSFER.size + 8
# The same without an id, a tag and a format, which continue a delivery: clients take any frame with an id for the
# first of a message.
_CONTINUATION: Final = struct.Struct(">IBBH4sBBBB10s")
_TRANSFER_ENDS: Final = {
    (is_settled, has_more): bytes((_TRUE if is_settled else _FALSE, _TRUE if has_more else _FALSE)) + b"\x40" * 5
    for is_settled in (False, True)
    for has_more in (False, True)
}


def transfer_payload_bytes_max(frame_bytes_max: int, tag: bytes) -> int:
    """Return the size of the payload that fits into the first frame of a delivery."""
    return frame_bytes_max - _TRANSFER_BYTES - len(tag)


def continuation_payload_bytes_max(frame_bytes_max: int) -> int:
    """Return the size of the payload that fits into each later frame of a delivery."""
    return frame_bytes_max - _CONTINUATION.size


def encode_transfer(
    channel: int, handle: int, *, delivery_id: int, tag: bytes, is_settled: bool, has_more: bool, payload: bytes
) -> bytes:
    """Return the first frame of a delivery. The handle has one byte, as those that this side agrees to."""
    tag_bytes = len(tag)
    head = _TRANSFER.pack(
        _TRANSFER_BYTES + tag_bytes + len(payload),
        2,
        0,
        channel,
        b"\x00\x53\x14\xc0",
        18 + tag_bytes,
        11,
        _SMALL_UINT,
        handle,
        _UINT,
        delivery_id,
        0xA0,
        tag_bytes,
    )
    return b"".join((head, tag, b"\x43", _TRANSFER_ENDS[is_settled, has_more], payload))


def encode_continuation(channel: int, handle: int, *, is_settled: bool, has_more: bool, payload: bytes) -> bytes:
    """Return a later frame of a delivery."""
    return (
        _CONTINUATION.pack(
            _CONTINUATION.size + len(payload),
            2,
            0,
            channel,
            b"\x00\x53\x14\xc0",
            13,
            11,
            _SMALL_UINT,
            handle,
            b"\x40\x40\x40" + _TRANSFER_ENDS[is_settled, has_more],
        )
        + payload
    )
