"""The built-in functions that run: one line each, with how many arguments they take.

A function receives the values of its arguments, undefined among them, and returns a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from asterism.query.semantics import is_number, is_primitive
from asterism.values.ordering import as_double
from asterism.values.undefined import UNDEFINED


@dataclass(frozen=True, slots=True)
class Function:
    arguments_min: int
    arguments_max: int
    run: Callable[..., object]

    def arguments_sentence(self, name: str) -> str:
        """What the service says of a call with another number of arguments."""
        low, high = self.arguments_min, self.arguments_max
        count = f"{low}" if low == high else f"{low} to {high}"
        return f"The {name} function requires {count} argument(s)."


def _test(accepts: Callable[[object], bool]) -> Function:
    return Function(1, 1, accepts)


def _is_finite(value: object) -> bool:
    return is_number(value) and math.isfinite(as_double(cast(float, value)))


def _is_integer(value: object) -> bool:
    # The service's integers are those of 64 bits.
    return _is_finite(value) and cast(float, value) % 1 == 0 and -(2**63) <= cast(float, value) < 2**63


FUNCTIONS: Final[dict[str, Function]] = {
    "IS_ARRAY": _test(lambda value: type(value) is list),
    "IS_BOOL": _test(lambda value: type(value) is bool),
    "IS_DEFINED": _test(lambda value: value is not UNDEFINED),
    "IS_FINITE_NUMBER": _test(_is_finite),
    "IS_INTEGER": _test(_is_integer),
    "IS_NULL": _test(lambda value: value is None),
    "IS_NUMBER": _test(is_number),
    "IS_OBJECT": _test(lambda value: type(value) is dict),
    "IS_PRIMITIVE": _test(is_primitive),
    "IS_STRING": _test(lambda value: type(value) is str),
    "IIF": Function(3, 3, lambda condition, yes, no: yes if condition is True else no),
}
