"""The performatives of AMQP and SASL as lists of fields under descriptors.

Every field is written, nulls included, and descriptors take their one-byte form: clients index into the lists, and read
the third byte as the descriptor without a look at the second. Lists that arrive may end early.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, Final

from asterism.apis.amqp.engine.frame_codec import AMQP_FRAME, encode_frame
from asterism.values.amqp.types import InvalidAmqp, Symbol
from asterism.values.amqp.value_codec import decode_value, encode_list_of, encode_value


class Performative(enum.IntEnum):
    OPEN = 0x10
    BEGIN = 0x11
    ATTACH = 0x12
    FLOW = 0x13
    TRANSFER = 0x14
    DISPOSITION = 0x15
    DETACH = 0x16
    END = 0x17
    CLOSE = 0x18
    SASL_MECHANISMS = 0x40
    SASL_INIT = 0x41
    SASL_CHALLENGE = 0x42
    SASL_RESPONSE = 0x43
    SASL_OUTCOME = 0x44


_UINT_MAX: Final = 0xFFFFFFFF

# The number of fields of each.
_FIELD_COUNTS: Final[dict[int, int]] = {
    Performative.OPEN: 10,
    Performative.BEGIN: 8,
    Performative.ATTACH: 14,
    Performative.FLOW: 11,
    Performative.TRANSFER: 11,
    Performative.DISPOSITION: 6,
    Performative.DETACH: 3,
    Performative.END: 1,
    Performative.CLOSE: 1,
    Performative.SASL_MECHANISMS: 1,
    Performative.SASL_INIT: 3,
    Performative.SASL_CHALLENGE: 1,
    Performative.SASL_RESPONSE: 1,
    Performative.SASL_OUTCOME: 2,
}
_CODE_OF_SYMBOL: Final[dict[str, int]] = {
    **{
        f"amqp:{code.name.lower()}:list": code.value
        for code in Performative
        if code.value < Performative.SASL_MECHANISMS
    },
    **{
        f"amqp:{code.name.lower().replace('_', '-')}:list": code.value
        for code in Performative
        if code.value >= Performative.SASL_MECHANISMS
    },
}


def performative_code(body: bytes) -> int:
    """Return the code of the performative that a frame begins with. Raises InvalidAmqp for one that is not known."""
    if body[:2] == b"\x00\x53" and len(body) > 2:
        code: Any = body[2]
    elif body[:1] == b"\x00":
        descriptor, _ = decode_value(body, 1)
        code = _CODE_OF_SYMBOL.get(descriptor) if isinstance(descriptor, Symbol) else descriptor
    else:
        code = None
    # Descriptors may be values of any type, lists among them.
    if not isinstance(code, int) or code not in _FIELD_COUNTS:
        raise InvalidAmqp("the frame does not begin with a performative")
    return int(code)


def decode_performative(body: bytes) -> tuple[int, list[Any], int]:
    """Return the code and all fields of a performative, and where the payload begins. Raises InvalidAmqp."""
    code = performative_code(body)
    start = 3 if body[1] == 0x53 else decode_value(body, 1)[1]
    fields, end = decode_value(body, start)
    count = _FIELD_COUNTS[code]
    if type(fields) is not list or len(fields) > count:
        raise InvalidAmqp("the performative is not a list of its fields")
    fields += [None] * (count - len(fields))
    return code, fields, end


def is_uint(value: Any) -> bool:
    """Return whether a field is an unsigned number of 32 bits, as handles, ids, counts and windows are."""
    return isinstance(value, int) and 0 <= value <= _UINT_MAX


def is_uint_or_null(value: Any) -> bool:
    return value is None or is_uint(value)


def encode_performative(
    channel: int, code: Performative, fields: Sequence[Any], *, kind: int = AMQP_FRAME, payload: bytes = b""
) -> bytes:
    """Return the frame of a performative; fields are written up to its last, those that are not given as nulls."""
    encoded = [encode_value(field) for field in fields]
    encoded += [b"\x40"] * (_FIELD_COUNTS[code] - len(encoded))
    return encode_frame(channel, bytes((0, 0x53, code)) + encode_list_of(encoded) + payload, kind=kind)
