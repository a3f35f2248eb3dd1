"""The built-in functions that run, a module for each family."""

from __future__ import annotations

from typing import Final

from asterism.query.functions.arrays import ARRAY_FUNCTIONS
from asterism.query.functions.choices import CHOICE_FUNCTIONS
from asterism.query.functions.context import EvaluationContext
from asterism.query.functions.conversion import CONVERSION_FUNCTIONS
from asterism.query.functions.dates import DATE_FUNCTIONS
from asterism.query.functions.full_text import FULL_TEXT_FUNCTIONS
from asterism.query.functions.function import Function
from asterism.query.functions.integers import INTEGER_FUNCTIONS
from asterism.query.functions.mathematics import MATH_FUNCTIONS
from asterism.query.functions.regular_expressions import REGULAR_EXPRESSION_FUNCTIONS
from asterism.query.functions.sets import SET_FUNCTIONS
from asterism.query.functions.spatial import SPATIAL_FUNCTIONS
from asterism.query.functions.strings import STRING_FUNCTIONS
from asterism.query.functions.types import TYPE_FUNCTIONS

__all__ = ["FUNCTIONS", "EvaluationContext", "Function"]

FUNCTIONS: Final[dict[str, Function]] = {
    **ARRAY_FUNCTIONS,
    **CHOICE_FUNCTIONS,
    **CONVERSION_FUNCTIONS,
    **DATE_FUNCTIONS,
    **FULL_TEXT_FUNCTIONS,
    **INTEGER_FUNCTIONS,
    **MATH_FUNCTIONS,
    **REGULAR_EXPRESSION_FUNCTIONS,
    **SET_FUNCTIONS,
    **SPATIAL_FUNCTIONS,
    **STRING_FUNCTIONS,
    **TYPE_FUNCTIONS,
}
