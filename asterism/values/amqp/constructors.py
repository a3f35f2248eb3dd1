"""The constructors of AMQP values, the byte that says the type and the width, and values as spans of bytes."""

from __future__ import annotations

from typing import Final

from asterism.values.amqp.types import InvalidAmqp

_CODES: Final = frozenset(
    b"\x40\x41\x42\x43\x44\x45\x50\x51\x52\x53\x54\x55\x56\x60\x61\x70\x71\x72\x73\x74\x80\x81\x82\x83\x84\x94\x98"
    b"\xa0\xa1\xa3\xb0\xb1\xb3\xc0\xc1\xd0\xd1\xe0\xf0"
)
_WIDTH_OF_CLASS: Final = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16, 0xA: -1, 0xB: -4, 0xC: -1, 0xD: -4, 0xE: -1, 0xF: -4}
# The bytes behind each constructor: their number, or minus the width of the length that says it; None: no constructor.
WIDTHS: Final = [_WIDTH_OF_CLASS[code >> 4] if code in _CODES else None for code in range(256)]

# Described values within described values, as deep as decoding goes.
_DESCRIPTORS_MAX: Final = 32


def skip_value(data: bytes, offset: int) -> int:
    """Return the offset behind the value that begins at an offset, without a look into it.

    The end is within the data. Raises InvalidAmqp and nothing else.
    """
    size = len(data)
    for _ in range(_DESCRIPTORS_MAX):
        if offset >= size:
            break
        code = data[offset]
        if code == 0:
            # The descriptor, and then the value behind it.
            offset = skip_plain_value(data, offset + 1)
            continue
        return skip_plain_value(data, offset)
    raise InvalidAmqp("the value is cut short")


def skip_plain_value(data: bytes, offset: int) -> int:
    """Return the offset behind a value that has no descriptor."""
    size = len(data)
    if offset >= size:
        raise InvalidAmqp("the value is cut short")
    width = WIDTHS[data[offset]]
    if width is None:
        raise InvalidAmqp(f"0x{data[offset]:02x} is not the constructor of a value")
    end = offset + 1 + width
    if width == -1 and offset + 1 < size:
        end = offset + 2 + data[offset + 1]
    elif width == -4 and offset + 4 < size:
        end = offset + 5 + int.from_bytes(data[offset + 1 : offset + 5], "big")
    elif width < 0:
        end = size + 1
    if end > size:
        raise InvalidAmqp("the value is cut short")
    return end
