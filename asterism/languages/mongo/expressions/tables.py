"""The table of operators, put together from the modules that define them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from asterism.languages.mongo.expressions.operator import Operator

_MODULES = (
    "accumulators_as_expressions",
    "arithmetic",
    "array",
    "array_functions",
    "bitwise",
    "boolean",
    "comparison",
    "conditional",
    "conversion",
    "dates",
    "javascript",
    "misc",
    "objects",
    "powers",
    "regexes",
    "rounding",
    "sets",
    "strings",
    "trigonometry",
)


def collect_operators() -> Iterator[Operator]:
    for name in _MODULES:
        try:
            module = import_module(f"asterism.languages.mongo.expressions.{name}")
        except ModuleNotFoundError as problem:
            if problem.name is None or not problem.name.endswith(name):
                raise
            continue
        yield from module.OPERATORS
