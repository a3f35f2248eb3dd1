"""The environment of expressions beyond their row: a user's functions, the clock, subqueries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from asterism.languages.cosmos_sql.compiling.distance import DistanceFunctionOf
from asterism.languages.cosmos_sql.compiling.scope import Scope
from asterism.languages.cosmos_sql.functions.context import EvaluationContext
from asterism.languages.cosmos_sql.syntax import tree
from asterism.reading.limits import QueryMeter
from asterism.reading.row_source import Row

# A user's functions by name. Arguments and result are JSON values, or UNDEFINED.
Udfs = Mapping[str, Callable[..., object]]
# The results of a subquery for a row of the query around it.
Results = Callable[[Row], Iterator[object]]


@dataclass(frozen=True, slots=True)
class Environment:
    udfs: Udfs
    # The time and random numbers; None if functions that need them are refused.
    context: EvaluationContext | None
    meter: QueryMeter
    compile_subquery: Callable[[tree.Query, Scope, Environment], Results]
    distance_function_of: DistanceFunctionOf

    def results_of(self, query: tree.Query, scope: Scope) -> Results:
        """Return a compiled subquery within `scope`."""
        return self.compile_subquery(query, scope, self)
