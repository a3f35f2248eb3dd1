"""CRC-32C, the checksum that a client may put behind a message.

The standard library has no such function, and a loop over the bytes of a message of 48 MB would stop the server for
seconds. A message is therefore folded first, as one large integer: the half that is processed first is multiplied by
the remainder of its distance and added to the other half, until a few bytes are left. Addition is XOR here.
"""

from __future__ import annotations

from functools import lru_cache

# The polynomial of Castagnoli with its bits reversed, as the algorithm uses it.
_POLYNOMIAL = 0x82F63B78
_ALL_ONES = 0xFFFFFFFF
# Messages up to this size are not folded.
_LOOP_BYTES_MAX = 512


def _table() -> list[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (_POLYNOMIAL if number & 1 else 0)
        table.append(number)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """Return the checksum of the bytes."""
    if len(data) <= _LOOP_BYTES_MAX:
        return _remainder(data, _ALL_ONES) ^ _ALL_ONES
    # The first bits of the message are the lowest ones; the start value is added to them.
    folded = int.from_bytes(data, "little") ^ _ALL_ONES
    bits = len(data) * 8
    while bits > _LOOP_BYTES_MAX * 8:
        first = (bits - 32) // 16 * 8
        rest = bits - first
        head = folded & ((1 << first) - 1)
        folded >>= first
        factor = _power(rest)
        for place in range(32):
            # Reversed, the coefficient of x^0 is the highest bit.
            if factor >> (31 - place) & 1:
                folded ^= head << (rest - first - place)
        bits = rest
    return _remainder(folded.to_bytes(bits // 8, "little"), 0) ^ _ALL_ONES


def _remainder(data: bytes, register: int) -> int:
    for byte in data:
        register = register >> 8 ^ _TABLE[(register ^ byte) & 0xFF]
    return register


@lru_cache(maxsize=256)
def _power(exponent: int) -> int:
    """Return the remainder of x to the power of the exponent, its bits reversed."""
    result, square = 1 << 31, 1 << 30
    while exponent:
        if exponent & 1:
            result = _product(result, square)
        square = _product(square, square)
        exponent >>= 1
    return result


def _product(left: int, right: int) -> int:
    total = 0
    for place in range(31, -1, -1):
        if left >> place & 1:
            total ^= right
        right = right >> 1 ^ (_POLYNOMIAL if right & 1 else 0)
    return total
