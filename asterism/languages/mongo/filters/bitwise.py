"""$bitsAllSet, $bitsAllClear, $bitsAnySet and $bitsAnyClear over integers and binary data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.integers import INT64_MAX, INT64_MIN, whole_number
from asterism.languages.mongo.filters.predicate import Predicate, Scope, bad_value
from asterism.values.bson.types import Binary, Decimal128, Int64

POSITION_MAX = 2**31 - 1
# A position beyond the bits of an integer is the bit of its sign, so that higher ones need not be told apart.
_SIGN_POSITION = 64
_OLD_BINARY_SUBTYPE = 2


class Bits:
    """The bits that an operand names: a mask, or positions that may be too high for one."""

    def __init__(self, *, mask: int = 0, positions: frozenset[int] = frozenset()) -> None:
        self._mask = mask
        self._positions = positions

    def mask_below(self, end: int) -> int:
        """Return the mask in which the bit `end` stands for itself and all higher ones."""
        mask = self._mask & ((1 << end) - 1)
        if self._mask >> end:
            mask |= 1 << end
        for position in self._positions:
            mask |= 1 << min(position, end)
        return mask


def _bits(operand: Any, name: str) -> Bits:
    if type(operand) is list:
        return Bits(positions=frozenset(_position(element, name) for element in operand))
    if type(operand) in (bytes, Binary):
        return Bits(mask=int.from_bytes(_wire_bytes(operand), "little"))
    if type(operand) not in (int, Int64, float, Decimal128):
        raise bad_value(f"{name} takes an Array, a number, or a BinData but received: {operand!r}")
    mask = whole_number(operand)
    if mask is None or mask > INT64_MAX:
        raise MongoFailure(9, f"{name} bit mask must be an integer of 64 bits")
    if mask < 0:
        raise MongoFailure(9, f"{name} bit mask must be a non-negative number")
    return Bits(mask=mask)


def _position(element: Any, name: str) -> int:
    position = whole_number(element)
    if position is None or position > POSITION_MAX:
        raise bad_value(f"{name} bit positions must be an integer")
    if position < 0:
        raise bad_value(f"{name} bit positions must be >= 0")
    return position


def _wire_bytes(value: bytes) -> bytes:
    """Return the bytes as they are stored: the old subtype 2 repeats the length before them."""
    if getattr(value, "subtype", 0) == _OLD_BINARY_SUBTYPE:
        return len(value).to_bytes(4, "little") + value
    return value


def _compile_bits(name: str, holds: Callable[[int, int], bool]) -> Callable[[Any, Scope], Predicate]:
    def compile_bits(operand: Any, _scope: Scope) -> Predicate:
        bits = _bits(operand, f"${name}")
        integer_mask = bits.mask_below(_SIGN_POSITION)

        def test(value: Any) -> bool:
            if type(value) in (bytes, Binary):
                # Binary data has zeros beyond its end, which one bit there stands for.
                stored = _wire_bytes(value)
                return holds(int.from_bytes(stored, "little"), bits.mask_below(8 * len(stored)))
            whole = whole_number(value)
            if whole is None or not INT64_MIN <= whole <= INT64_MAX:
                return False
            # Python extends the sign of an integer as far as needed, as the server does beyond 64 bits.
            return holds(whole, integer_mask)

        return Predicate(name, test)

    return compile_bits


compile_bits_all_set = _compile_bits("bitsAllSet", lambda bits, mask: bits & mask == mask)
compile_bits_all_clear = _compile_bits("bitsAllClear", lambda bits, mask: bits & mask == 0)
compile_bits_any_set = _compile_bits("bitsAnySet", lambda bits, mask: bits & mask != 0)
compile_bits_any_clear = _compile_bits("bitsAnyClear", lambda bits, mask: bits & mask != mask)
