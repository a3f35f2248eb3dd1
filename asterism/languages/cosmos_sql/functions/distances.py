"""The distance functions of vectors that a container's policy may name."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import mul
from typing import Final, TypeGuard

from asterism.languages.cosmos_sql.compiling.semantics import json_number
from asterism.values.undefined import UNDEFINED

Nearness = Callable[[object], object]

COSINE: Final = "cosine"
# The only function with small numbers for near vectors; the others have large numbers for them.
EUCLIDEAN: Final = "euclidean"

_NUMBERS: Final = {int, float}


def nearness_to(name: str, target: object) -> Nearness:
    """Return the function of a vector's nearness to `target`: undefined for other values and other lengths.

    `name` is one of DISTANCE_FUNCTIONS, in lower case.
    """
    if not _is_vector(target):
        return _undefined
    size = len(target)
    try:
        measure = DISTANCE_FUNCTIONS[name](list(map(float, target)))
    except OverflowError:
        return _undefined

    def nearness(value: object) -> object:
        if not _is_vector(value) or len(value) != size:
            return UNDEFINED
        try:
            return json_number(measure(value))
        except (OverflowError, ZeroDivisionError):
            return UNDEFINED

    return nearness


def _is_vector(value: object) -> TypeGuard[list[float]]:
    return type(value) is list and bool(value) and _NUMBERS.issuperset(map(type, value))


def _undefined(_value: object) -> object:
    return UNDEFINED


def _cosine(target: list[float]) -> Callable[[list[float]], float]:
    """Return the cosine similarity to `target`; vectors of length zero raise ZeroDivisionError."""
    origin = [0.0] * len(target)
    length = math.dist(target, origin)
    return lambda vector: sum(map(mul, target, vector)) / (length * math.dist(vector, origin))


def _dot_product(target: list[float]) -> Callable[[list[float]], float]:
    return lambda vector: sum(map(mul, target, vector))


def _euclidean(target: list[float]) -> Callable[[list[float]], float]:
    return lambda vector: math.dist(target, vector)


DISTANCE_FUNCTIONS: Final = {COSINE: _cosine, "dotproduct": _dot_product, EUCLIDEAN: _euclidean}
