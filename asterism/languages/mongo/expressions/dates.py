"""All operators on dates and times, from the modules that define them."""

from __future__ import annotations

from asterism.languages.mongo.expressions import date_arithmetic, date_parts, date_strings, timestamps
from asterism.languages.mongo.expressions.operator import Operator

OPERATORS: tuple[Operator, ...] = (
    *date_parts.OPERATORS,
    *date_strings.OPERATORS,
    *date_arithmetic.OPERATORS,
    *timestamps.OPERATORS,
)
