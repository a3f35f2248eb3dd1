"""The description of a query in a plan, in the shape that clients read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from asterism.languages.cosmos_sql.plans.distinct import NOT_DISTINCT
from asterism.languages.cosmos_sql.plans.window import NO_WINDOW, ClientWindow

_LISTS_AND_SETS: Final = frozenset({"MakeList", "MakeSet"})


@dataclass(frozen=True, slots=True)
class QueryInfo:
    distinct_type: str = NOT_DISTINCT
    window: ClientWindow = NO_WINDOW
    # `Ascending` or `Descending` for each expression.
    order_by: tuple[str, ...] = ()
    order_by_expressions: tuple[str, ...] = ()
    group_by_expressions: tuple[str, ...] = ()
    # The aggregate of a SELECT VALUE.
    aggregates: tuple[str, ...] = ()
    # Of a list with aggregates or groups: each property with its aggregate, or with None.
    aggregate_types: tuple[tuple[str, str | None], ...] = ()
    # Empty if the client's text is sent unchanged.
    rewritten_query: str = ""
    has_select_value: bool = False
    # Set if the client counts the distinct results; empty if the count has no name.
    distinct_count_alias: str | None = None
    # True if a partition answers only when it has seen all its rows.
    has_non_streaming_order_by: bool = False

    def to_json(self) -> dict[str, object]:
        alias = self.distinct_count_alias
        return {
            # The Python client treats a missing kind as DISTINCT.
            "distinctType": self.distinct_type,
            "top": self.window.top,
            "offset": self.window.offset,
            "limit": self.window.limit,
            "orderBy": list(self.order_by),
            "orderByExpressions": list(self.order_by_expressions),
            "groupByExpressions": list(self.group_by_expressions),
            "groupByAliases": [name for name, _ in self.aggregate_types],
            "aggregates": list(self.aggregates),
            "groupByAliasToAggregateType": dict(self.aggregate_types),
            "rewrittenQuery": self.rewritten_query,
            "hasSelectValue": self.has_select_value,
            "dCountInfo": None if alias is None else {"dCountAlias": alias},
            "hasNonStreamingOrderBy": self.has_non_streaming_order_by,
        }

    def features(self) -> Iterator[str]:
        """Yield the features that the client must support, in the order in which the service lists these names."""
        listed = [operator for _, operator in self.aggregate_types if operator is not None]
        operators = [*self.aggregates, *listed]
        needs = {
            "Aggregate": bool(operators),
            "Distinct": self.distinct_type != NOT_DISTINCT,
            "GroupBy": bool(self.group_by_expressions),
            "MultipleAggregates": len(operators) > 1,
            "MultipleOrderBy": len(self.order_by) > 1,
            "OffsetAndLimit": self.window.offset is not None,
            "OrderBy": bool(self.order_by),
            "Top": self.window.top is not None,
            # Merging groups includes merging their aggregates.
            "NonValueAggregate": bool(listed) and not self.group_by_expressions,
            "DCount": self.distinct_count_alias is not None,
            "NonStreamingOrderBy": self.has_non_streaming_order_by,
            "ListAndSetAggregate": not _LISTS_AND_SETS.isdisjoint(operators),
            "CountIf": "CountIf" in operators,
        }
        return (name for name, is_needed in needs.items() if is_needed)
