"""Operators of trigonometry, in doubles, or in decimals if an argument is one."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from asterism.languages.mongo.expressions import decimal_functions
from asterism.languages.mongo.expressions.operator import Operator, positional
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.numbers import decimal_of, from_decimal, to_decimal
from asterism.values.bson.types import Decimal128

_NOT_A_NUMBER: Final = 28765
_ATAN2_NOT_A_NUMBER: Final = 51044
_OUT_OF_RANGE: Final = 50989


class Domain(NamedTuple):
    """The numbers that a function is defined for."""

    least: float
    most: float
    includes_ends: bool = True

    def contains(self, value: float | Decimal) -> bool:
        if self.includes_ends:
            return self.least <= value <= self.most
        return self.least < value < self.most


_ANYTHING: Final = Domain(-math.inf, math.inf)
_FINITE: Final = Domain(-math.inf, math.inf, includes_ends=False)
_FROM_MINUS_ONE_TO_ONE: Final = Domain(-1.0, 1.0)

# name, function of doubles, function of decimals, domain
_FUNCTIONS: Final[tuple[tuple[str, Callable[[float], float], Callable[[Decimal], Decimal], Domain], ...]] = (
    ("$sin", math.sin, decimal_functions.sin, _FINITE),
    ("$cos", math.cos, decimal_functions.cos, _FINITE),
    ("$tan", math.tan, decimal_functions.tan, _FINITE),
    ("$asin", math.asin, decimal_functions.asin, _FROM_MINUS_ONE_TO_ONE),
    ("$acos", math.acos, decimal_functions.acos, _FROM_MINUS_ONE_TO_ONE),
    ("$atan", math.atan, decimal_functions.atan, _ANYTHING),
    ("$sinh", math.sinh, decimal_functions.sinh, _ANYTHING),
    ("$cosh", math.cosh, decimal_functions.cosh, _ANYTHING),
    ("$tanh", math.tanh, decimal_functions.tanh, _ANYTHING),
    ("$asinh", math.asinh, decimal_functions.asinh, _ANYTHING),
    ("$acosh", math.acosh, decimal_functions.acosh, Domain(1.0, math.inf)),
    ("$atanh", math.atanh, decimal_functions.atanh, _FROM_MINUS_ONE_TO_ONE),
    ("$degreesToRadians", lambda value: value * (math.pi / 180), decimal_functions.radians, _ANYTHING),
    ("$radiansToDegrees", lambda value: value * (180 / math.pi), decimal_functions.degrees, _ANYTHING),
)


def _function(
    name: str, of_double: Callable[[float], float], of_decimal: Callable[[Decimal], Decimal], domain: Domain
) -> Operator:
    def compute(value: Any) -> Any:
        if not is_number(value):
            raise MongoFailure(_NOT_A_NUMBER, f"{name} only supports numeric types, not {type_name(value)}")
        if type(value) is Decimal128:
            number = decimal_of(value)
            if number.is_nan():
                return value
            _check_domain(name, domain, number)
            return from_decimal(of_decimal(number))
        double = float(value)
        if math.isnan(double):
            return double
        _check_domain(name, domain, double)
        return _of_double(of_double, double)

    return positional(name, compute, 1, 1, null_if_null=True)


def _check_domain(name: str, domain: Domain, value: float | Decimal) -> None:
    if not domain.contains(value):
        raise MongoFailure(
            _OUT_OF_RANGE, f"cannot apply {name} to {value}, value must be in the domain of the function"
        )


def _of_double(function: Callable[[float], float], value: float) -> float:
    try:
        return function(value)
    except OverflowError:
        # Of the hyperbolic functions, which grow beyond all doubles.
        return math.copysign(math.inf, value) if function is math.sinh else math.inf
    except ValueError:
        # The poles of atanh.
        return math.copysign(math.inf, value)


def _arc_tangent_of_two(y: Any, x: Any) -> Any:
    for value in (y, x):
        if not is_number(value):
            raise MongoFailure(_ATAN2_NOT_A_NUMBER, f"$atan2 only supports numeric types, not {type_name(value)}")
    if type(y) is Decimal128 or type(x) is Decimal128:
        return from_decimal(decimal_functions.atan2(to_decimal(y), to_decimal(x)))
    return math.atan2(float(y), float(x))


OPERATORS: tuple[Operator, ...] = (
    *(_function(*row) for row in _FUNCTIONS),
    positional("$atan2", _arc_tangent_of_two, 2, 2, null_if_null=True),
)
