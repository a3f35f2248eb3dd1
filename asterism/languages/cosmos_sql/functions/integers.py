"""Arithmetic on 64-bit integers that wraps around, as processors do it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

from asterism.languages.cosmos_sql.functions.arguments import of_integers
from asterism.languages.cosmos_sql.functions.function import Function
from asterism.values.undefined import UNDEFINED

_BITS = 64
_ALL_BITS = (1 << _BITS) - 1
_SIGN_BIT = 1 << (_BITS - 1)


def wrap(value: int) -> int:
    """The 64 low bits as a signed integer."""
    return ((value & _ALL_BITS) ^ _SIGN_BIT) - _SIGN_BIT


def _quotient(left: int, right: int) -> object:
    """Division that drops the fraction."""
    if right == 0:
        return UNDEFINED
    magnitude = abs(left) // abs(right)
    return wrap(magnitude if (left < 0) == (right < 0) else -magnitude)


def _remainder(left: int, right: int) -> object:
    """What `_quotient` leaves over; it has the sign of the dividend."""
    if right == 0:
        return UNDEFINED
    magnitude = abs(left) % abs(right)
    return -magnitude if left < 0 else magnitude


def _two(run: Callable[[int, int], int]) -> Function:
    return Function(2, 2, of_integers(lambda left, right: wrap(run(left, right))))


INTEGER_FUNCTIONS: Final[dict[str, Function]] = {
    "INTADD": _two(operator.add),
    "INTSUB": _two(operator.sub),
    "INTMUL": _two(operator.mul),
    "INTDIV": Function(2, 2, of_integers(_quotient)),
    "INTMOD": Function(2, 2, of_integers(_remainder)),
    "INTBITAND": _two(operator.and_),
    "INTBITOR": _two(operator.or_),
    "INTBITXOR": _two(operator.xor),
    "INTBITNOT": Function(1, 1, of_integers(operator.invert)),
    # Only the six low bits of the distance count, as in the processor's own instruction.
    "INTBITLEFTSHIFT": _two(lambda left, right: left << (right & (_BITS - 1))),
    "INTBITRIGHTSHIFT": _two(lambda left, right: left >> (right & (_BITS - 1))),
}
