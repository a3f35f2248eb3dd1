"""The built-in functions that run, a module for each family."""

from __future__ import annotations

from typing import Final

from asterism.languages.cosmos_sql.functions.arrays import ARRAY_FUNCTIONS
from asterism.languages.cosmos_sql.functions.choices import CHOICE_FUNCTIONS
from asterism.languages.cosmos_sql.functions.context import EvaluationContext
from asterism.languages.cosmos_sql.functions.conversion import CONVERSION_FUNCTIONS
from asterism.languages.cosmos_sql.functions.dates import DATE_FUNCTIONS
from asterism.languages.cosmos_sql.functions.full_text import FULL_TEXT_FUNCTIONS
from asterism.languages.cosmos_sql.functions.function import Function
from asterism.languages.cosmos_sql.functions.integers import INTEGER_FUNCTIONS
from asterism.languages.cosmos_sql.functions.mathematics import MATH_FUNCTIONS
from asterism.languages.cosmos_sql.functions.regular_expressions import REGULAR_EXPRESSION_FUNCTIONS
from asterism.languages.cosmos_sql.functions.sets import SET_FUNCTIONS
from asterism.languages.cosmos_sql.functions.spatial import SPATIAL_FUNCTIONS
from asterism.languages.cosmos_sql.functions.strings import STRING_FUNCTIONS
from asterism.languages.cosmos_sql.functions.types import TYPE_FUNCTIONS

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
