"""Frames of AMQP 1.0 for loads: templates for those that a load sends often, and short readings of what comes back.

Other frames go through the codec of values: a connection has a handful of them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

from asterism.values.amqp.types import Described, Symbol, UByte, UInt, ULong, UShort
from asterism.values.amqp.value_codec import decode_value, encode_value

SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
HEADER_BYTES: Final = len(AMQP_HEADER)

# Codes of performatives.
OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
SASL_MECHANISMS, SASL_INIT, SASL_OUTCOME = 0x40, 0x41, 0x44
SOURCE, TARGET, ACCEPTED = 0x28, 0x29, 0x24
AMQP_FRAME, SASL_FRAME = 0, 1

# Of a target: its messages outlive the server.
DURABLE: Final = 2
BATCH_FORMAT: Final = 0x80013700
# Before the performative: size, where the body begins, type, channel; and 00 53 with the code.
_FRAME_HEAD: Final = struct.Struct(">IBBH")
BODY_AT: Final = _FRAME_HEAD.size
CODE_AT: Final = BODY_AT + 2
LIST_AT: Final = BODY_AT + 3

_UINT32: Final = struct.Struct(">I")
_TRANSFER_NUMBERS: Final = struct.Struct(">IBBI")
_NULL, _TRUE, _FALSE = 0x40, 0x41, 0x42
_UINT0, _SMALL_UINT, _UINT, _BINARY8, _BINARY32 = 0x43, 0x52, 0x70, 0xA0, 0xB0
_LIST0, _LIST8, _LIST32 = 0x45, 0xC0, 0xD0
_ACCEPTED_STATE: Final = bytes((0, 0x53, ACCEPTED))


def frame(code: int, fields: Sequence[Any], *, payload: bytes = b"", kind: int = AMQP_FRAME) -> bytes:
    """Return a frame of channel 0."""
    body = bytes((0, 0x53, code)) + encode_value(list(fields)) + payload
    return _FRAME_HEAD.pack(BODY_AT + len(body), 2, kind, 0) + body


def split_frames(data: bytes) -> tuple[list[tuple[int, int]], int]:
    """Return where the whole frames begin and end, and where the rest begins."""
    found, start, length = [], 0, len(data)
    while length - start >= BODY_AT:
        end = start + _UINT32.unpack_from(data, start)[0]
        if end > length:
            break
        found.append((start, end))
        start = end
    return found, start


def fields_of(data: bytes, start: int) -> list[Any]:
    """Return the fields of the performative in the frame that begins there, through the codec of values."""
    described, _ = decode_value(data, start + BODY_AT)
    return list(described.value)


# --- frames that a load sends often -----------------------------------------------------------------------------------


class TransferTemplate:
    """Transfers of one message on handle 0, not settled. The delivery id is the tag too."""

    def __init__(self, payload: bytes, *, message_format: int = 0) -> None:
        # All fields are written, as the official clients do: behind `more` there are five without a value.
        fields = encode_value(UInt(message_format)) + bytes((_FALSE, _FALSE, *[_NULL] * 5))
        numbers = bytes((_UINT0, _UINT)) + _TRANSFER_NUMBERS.pack(0, _BINARY8, 4, 0)
        body = bytes((0, 0x53, TRANSFER, _LIST8, 1 + len(numbers) + len(fields), 11))
        size = BODY_AT + len(body) + len(numbers) + len(fields) + len(payload)
        self._head = _FRAME_HEAD.pack(size, 2, AMQP_FRAME, 0) + body + numbers[:2]
        self._tail = fields + payload
        self.size = size

    def frames(self, first: int, count: int) -> bytes:
        """Return transfers with consecutive ids."""
        head, tail, numbers = self._head, self._tail, _TRANSFER_NUMBERS.pack
        parts: list[bytes] = []
        for number in range(first, first + count):
            parts += (head, numbers(number, _BINARY8, 4, number), tail)
        return b"".join(parts)


_DISPOSITION_FIELDS: Final = bytes((_TRUE, _UINT))
_DISPOSITION_END: Final = bytes((_NULL, _FALSE)) + _ACCEPTED_STATE + bytes((_LIST0, _NULL))
_DISPOSITION_BYTES: Final = BODY_AT + 6 + len(_DISPOSITION_FIELDS) + 4 + len(_DISPOSITION_END)
_DISPOSITION_HEAD: Final = (
    _FRAME_HEAD.pack(_DISPOSITION_BYTES, 2, AMQP_FRAME, 0)
    + bytes((0, 0x53, DISPOSITION, _LIST8, _DISPOSITION_BYTES - BODY_AT - 5, 6))
    + _DISPOSITION_FIELDS
)


def acceptances(delivery_ids: Sequence[int]) -> bytes:
    """Return a disposition for each delivery, as clients that complete message by message send them; not settled."""
    pack, head, end = _UINT32.pack, _DISPOSITION_HEAD, _DISPOSITION_END
    return b"".join([part for number in delivery_ids for part in (head, pack(number), end)])


# --- frames that a load receives often --------------------------------------------------------------------------------


def _list_start(data: bytes, at: int) -> int:
    """Return where the first field of a list begins."""
    constructor = data[at]
    if constructor == _LIST8:
        return at + 3
    return at + 9 if constructor == _LIST32 else at + 1


def _number(data: bytes, at: int) -> tuple[int | None, int]:
    """Return an unsigned number, None for null, and where the next field begins."""
    constructor = data[at]
    if constructor == _UINT:
        return _UINT32.unpack_from(data, at + 1)[0], at + 5
    if constructor == _SMALL_UINT:
        return data[at + 1], at + 2
    return (0 if constructor == _UINT0 else None), at + 1


def _is_true(data: bytes, at: int) -> bool:
    return data[at] == _TRUE or data[at : at + 2] == b"\x56\x01"


def transfer_id(data: bytes, start: int) -> int | None:
    """Return the delivery id of the transfer in the frame that begins there; None for a later part of a delivery."""
    _, at = _number(data, _list_start(data, start + LIST_AT))
    return _number(data, at)[0]


def disposition_range(data: bytes, start: int, end: int) -> tuple[int, int, bool]:
    """Return the first and the last delivery id of a disposition, and whether its state is `accepted`."""
    at = _list_start(data, start + LIST_AT)
    first, at = _number(data, at + (2 if data[at] == 0x56 else 1))
    last, _ = _number(data, at)
    first = first or 0
    return first, first if last is None else last, data.find(_ACCEPTED_STATE, at, end) >= 0


# --- frames of a connection's beginning -------------------------------------------------------------------------------


def sasl_plain(user: str, password: str) -> bytes:
    response = b"\0".join((b"", user.encode(), password.encode()))
    return frame(SASL_INIT, [Symbol("PLAIN"), response, None], kind=SASL_FRAME)


def open_frame(container: str, host: str) -> bytes:
    fields = [container, host, UInt(1 << 20), UShort(10), None, None, None, None, None, None]
    return frame(OPEN, fields)


def begin_frame(window: int) -> bytes:
    return frame(BEGIN, [None, UInt(0), UInt(window), UInt(window), UInt(10), None, None, None])


def attach_frame(name: str, address: str, *, receives: bool, is_settled: bool = False) -> bytes:
    """Return the attach of a link with handle 0.

    A receiver locks messages and settles them in the second place, unless they are sent settled: then they are deleted.
    """
    source = Described(ULong(SOURCE), [address if receives else name, *[None] * 10])
    # A peer that creates queues for links makes a durable one of it.
    target = Described(ULong(TARGET), [name if receives else address, UInt(DURABLE), *[None] * 5])
    modes = [UByte(1 if is_settled else 0), UByte(1 if receives and not is_settled else 0)]
    initial = None if receives else UInt(0)
    fields = [name, UInt(0), receives, *modes, source, target, None, None, initial]
    return frame(ATTACH, [*fields, None, None, None, None])


def flow_frame(*, window: int, received: int, sent: int, deliveries: int, credit: int) -> bytes:
    """Return a flow for the session and for its link: so much credit after so many deliveries."""
    session = [UInt(received), UInt(window), UInt(sent), UInt(window)]
    return frame(FLOW, [*session, UInt(0), UInt(deliveries), UInt(credit), None, False, False, None])
