"""`NaN` and `Infinity` in results: JSON has no such numbers, so they are written as the strings of these names.

The JSON text writer of the service's own client library does the same, and its SQL parser uses these names for the
literals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from asterism.languages.cosmos_sql.syntax import tree
from asterism.reading.row_source import Evaluator


def has_special_numbers(nodes: Iterable[tree.Node]) -> bool:
    """Return whether one of a query's nodes is the literal of such a number."""
    return any(
        isinstance(node, tree.Literal) and type(node.value) is float and not math.isfinite(node.value) for node in nodes
    )


def with_names_of_numbers(project: Evaluator) -> Evaluator:
    """Return `project` with strings for the numbers that JSON does not have."""
    return lambda row: _with_names(project(row))


def _with_names(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list):
        return [_with_names(element) for element in value]
    if isinstance(value, dict):
        return {name: _with_names(member) for name, member in value.items()}
    return value
