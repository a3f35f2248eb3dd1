"""Arithmetic on 64-bit integers that wraps around, as in processors."""

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
    """Return the 64 low bits as a signed integer."""
    return ((value & _ALL_BITS) ^ _SIGN_BIT) - _SIGN_BIT


def _quotient(left: int, right: int) -> object:
    """Divide and drop the fraction."""
    if right == 0:
        return UNDEFINED
    magnitude = abs(left) // abs(right)
    return wrap(magnitude if (left < 0) == (right < 0) else -magnitude)


def _remainder(left: int, right: int) -> object:
    """Return the remainder of `_quotient`, which has the sign of the dividend."""
    if right == 0:
        return UNDEFINED
    magnitude = abs(left) % abs(right)
    return -magnitude if left < 0 else magnitude


def _binary(run: Callable[[int, int], int]) -> Function:
    return Function(2, 2, of_integers(lambda left, right: wrap(run(left, right))))


INTEGER_FUNCTIONS: Final[dict[str, Function]] = {
    "INTADD": _binary(operator.add),
    "INTSUB": _binary(operator.sub),
    "INTMUL": _binary(operator.mul),
    "INTDIV": Function(2, 2, of_integers(_quotient)),
    "INTMOD": Function(2, 2, of_integers(_remainder)),
    "INTBITAND": _binary(operator.and_),
    "INTBITOR": _binary(operator.or_),
    "INTBITXOR": _binary(operator.xor),
    "INTBITNOT": Function(1, 1, of_integers(operator.invert)),
    # Only the six low bits of the shift count, as in the processor's own instruction.
    "INTBITLEFTSHIFT": _binary(lambda left, right: left << (right & (_BITS - 1))),
    "INTBITRIGHTSHIFT": _binary(lambda left, right: left >> (right & (_BITS - 1))),
}
