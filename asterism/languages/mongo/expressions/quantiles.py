"""Percentiles and medians of numbers, shared by expressions, groups and windows."""

from __future__ import annotations

import math
from typing import Any

from asterism.languages.mongo.expressions.widths import DECIMAL, width_of
from asterism.languages.mongo.failure import MongoFailure

METHODS = ("approximate", "discrete", "continuous")


def check_method(operator: str, method: Any) -> str:
    if type(method) is not str or method not in METHODS:
        raise MongoFailure(2, f"{operator} requires 'method' to be one of {', '.join(METHODS)}")
    return method


def check_probabilities(probabilities: Any) -> list[float]:
    """Return the `p` of `$percentile`, an array of numbers between 0 and 1."""
    if not isinstance(probabilities, list) or not probabilities:
        raise MongoFailure(7750301, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0]")
    result = []
    for value in probabilities:
        if width_of(value) is None:
            raise MongoFailure(7750301, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0]")
        number = as_double(value)
        if not 0 <= number <= 1:
            raise MongoFailure(
                7750303, f"The $percentile 'p' field must contain numbers from [0.0, 1.0], found {value}"
            )
        result.append(number)
    return result


def as_double(value: Any) -> float:
    return float(value.to_decimal()) if width_of(value) == DECIMAL else float(value)


def numbers_among(values: list[Any]) -> list[float]:
    """Return the numbers among values as sorted doubles; not-a-number is left out."""
    doubles = (as_double(value) for value in values if width_of(value) is not None)
    return sorted(number for number in doubles if not math.isnan(number))


def quantile(ordered: list[float], probability: float, method: str) -> float | None:
    """Return the number below which a part of the sorted numbers lies. All numbers are at hand, so that the
    approximate method is exact here."""
    if not ordered:
        return None
    if method != "continuous":
        return ordered[max(math.ceil(probability * len(ordered)) - 1, 0)]
    position = probability * (len(ordered) - 1)
    below = math.floor(position)
    above = math.ceil(position)
    if ordered[below] == ordered[above]:
        return ordered[below]
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
