"""Functions that test the type of a value. Undefined has no type, and testing it is not an error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, cast

from asterism.languages.cosmos_sql.compiling.semantics import is_number, is_primitive
from asterism.languages.cosmos_sql.functions.arguments import integer_of
from asterism.languages.cosmos_sql.functions.date_text import parse_date_time
from asterism.languages.cosmos_sql.functions.function import Function
from asterism.values.json.order import as_double
from asterism.values.undefined import UNDEFINED


def _test(accepts: Callable[[object], bool]) -> Function:
    return Function(1, 1, accepts)


def _is_finite(value: object) -> bool:
    return is_number(value) and math.isfinite(as_double(cast(float, value)))


TYPE_FUNCTIONS: Final[dict[str, Function]] = {
    "IS_ARRAY": _test(lambda value: type(value) is list),
    "IS_BOOL": _test(lambda value: type(value) is bool),
    "IS_DATETIME": _test(lambda value: type(value) is str and parse_date_time(value) is not None),
    "IS_DEFINED": _test(lambda value: value is not UNDEFINED),
    "IS_FINITE_NUMBER": _test(_is_finite),
    "IS_INTEGER": _test(lambda value: integer_of(value) is not None),
    "IS_NULL": _test(lambda value: value is None),
    "IS_NUMBER": _test(is_number),
    "IS_OBJECT": _test(lambda value: type(value) is dict),
    "IS_PRIMITIVE": _test(is_primitive),
    "IS_STRING": _test(lambda value: type(value) is str),
}
