"""The plan of a query over several partitions: ranges to ask, the text to send, and how the client merges the answers.

Nothing here runs a query or knows a partition. Callers check first that the query compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql.compiling.constant_steps import with_constant_steps
from asterism.languages.cosmos_sql.compiling.distance import (
    DistanceFunctionOf,
    is_descending,
    no_distance_function,
    vector_order,
)
from asterism.languages.cosmos_sql.compiling.grouping import (
    COMPOSED_AGGREGATES_REASON,
    has_aggregates,
    has_composed_aggregates,
    selected_expressions,
)
from asterism.languages.cosmos_sql.compiling.scope import Scope
from asterism.languages.cosmos_sql.compiling.window import window_of
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.plans.distinct import counted_distinct, distinct_type
from asterism.languages.cosmos_sql.plans.filter import pinned_keys, scope_of_items
from asterism.languages.cosmos_sql.plans.info import QueryInfo
from asterism.languages.cosmos_sql.plans.ranges import ANYWHERE, PlannedRange, RangeOfKey, planned_ranges
from asterism.languages.cosmos_sql.plans.rewrite import (
    aggregate_operator,
    rewrite_aggregates,
    rewrite_groups,
    rewrite_order,
    select_names,
)
from asterism.languages.cosmos_sql.plans.search import SearchInfo, search_info
from asterism.languages.cosmos_sql.plans.text import query_text, with_spelling
from asterism.languages.cosmos_sql.plans.window import (
    NO_WINDOW,
    ClientWindow,
    client_window,
    with_partition_window,
    without_window,
)
from asterism.languages.cosmos_sql.service_refusals import NO_ORDER_PATH, NO_ORDER_PATH_REASON, ORDERED_GROUPS_REASON
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.printer import to_text
from asterism.partitioning.computed_key import ComputedKey, keys_pinned
from asterism.reading.conditions import Condition, PropertyPath, Unrestricted, bounds_of

PLAN_VERSION: Final = 2


@dataclass(frozen=True, slots=True)
class QueryPlan:
    info: QueryInfo
    ranges: tuple[PlannedRange, ...]
    # Of an ORDER BY RANK; it replaces `info`, which is then empty.
    search: SearchInfo | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """The features that the client must support; see `check_features`."""
        return tuple((self.search or self.info).features())

    def to_json(self) -> dict[str, object]:
        info = {"queryInfo": self.info.to_json()} if self.search is None else _search_json(self.search)
        return {
            "partitionedQueryExecutionInfoVersion": PLAN_VERSION,
            **info,
            "queryRanges": [planned.to_json() for planned in self.ranges],
        }


def _search_json(search: SearchInfo) -> dict[str, dict[str, object]]:
    return {"hybridSearchQueryInfo": search.to_json()}


def needs_plan(query: tree.Query) -> bool:
    """Return whether the answers of several partitions cannot simply be concatenated."""
    has_window = query.select.top is not None or query.offset_limit is not None
    return query.from_clause is not None and (has_window or _merges_rows(query))


def make_plan(
    query: tree.Query,
    *,
    text: str,
    parameters: Mapping[str, object],
    partition_key_paths: tuple[PropertyPath, ...],
    range_of_key: RangeOfKey,
    computed_key: ComputedKey | None = None,
    conditions: Callable[[], Condition] = Unrestricted,
    distance_function_of: DistanceFunctionOf = no_distance_function,
) -> QueryPlan:
    """Return the plan of a query. `text` is the query's own; names of `parameters` have their at-sign, and `conditions`
    gives what of its filter an index can use.

    Raises MalformedQuery or MalformedRequest for queries whose results no client can merge.
    """
    counted = counted_distinct(query)
    filtered = query if counted is None else counted[0]
    scope = scope_of_items(filtered, parameters)
    if query.from_clause is None:
        has_select_value = isinstance(query.select.selection, tree.SelectValue)
        return QueryPlan(QueryInfo(has_select_value=has_select_value), (ANYWHERE,))
    keys = keys_pinned(
        partition_key_paths,
        computed_key,
        lambda paths: pinned_keys(filtered, scope, paths),
        lambda: bounds_of(conditions()),
    )
    ranges = planned_ranges(keys, range_of_key)
    if query.order_by is not None and query.order_by.by_rank:
        search = search_info(
            query,
            query.order_by,
            text=text,
            scope=scope,
            window=window_of(query, scope),
            distance_function_of=distance_function_of,
        )
        return QueryPlan(QueryInfo(), ranges, search)
    planner = _Planner(query, text, scope, ranges, distance_function_of)
    return QueryPlan(planner.info() if counted is None else planner.info_of_count(*counted), ranges)


class _Planner:
    def __init__(
        self,
        query: tree.Query,
        text: str,
        scope: Scope,
        ranges: tuple[PlannedRange, ...],
        distance_function_of: DistanceFunctionOf,
    ) -> None:
        self._query = query
        self._text = text
        self._scope = scope
        self._distance_function_of = distance_function_of
        self._window = self._client_window(is_one_partition=len(ranges) == 1 and ranges[0].is_point)

    def info(self) -> QueryInfo:
        query = self._query
        if has_composed_aggregates(query):
            raise MalformedRequest(reason=COMPOSED_AGGREGATES_REASON)
        info = self._base()
        if query.group_by is not None:
            return self._groups(info, query.group_by)
        if has_aggregates(query):
            return self._aggregates(info)
        if query.order_by is not None:
            return self._order(info, query.order_by)
        if self._window.offset is None and (self._window.top is None or not query.select.distinct):
            return info
        rest = without_window(query) if query.select.distinct else with_partition_window(query, self._window)
        return replace(info, rewritten_query=self._print_query(rest))

    def info_of_count(self, counted: tree.Query, alias: str) -> QueryInfo:
        info = replace(self._base(), distinct_type=distinct_type(counted), distinct_count_alias=alias)
        return replace(info, rewritten_query=self._print_query(counted))

    def _client_window(self, *, is_one_partition: bool) -> ClientWindow:
        window = client_window(self._query, window_of(self._query, self._scope))
        # A single partition skips rows itself if the client has nothing to merge.
        skips_itself = is_one_partition and window.offset is not None and not _merges_rows(self._query)
        return NO_WINDOW if skips_itself else window

    def _base(self) -> QueryInfo:
        return QueryInfo(
            distinct_type=distinct_type(self._query),
            window=self._window,
            has_select_value=isinstance(self._query.select.selection, tree.SelectValue),
        )

    def _groups(self, info: QueryInfo, group_by: tree.GroupBy) -> QueryInfo:
        if self._query.order_by is not None:
            raise MalformedRequest(reason=ORDERED_GROUPS_REASON)
        expressions = tuple(map(self._print, group_by.expressions))
        rewritten = without_window(rewrite_groups(self._query, group_by))
        return self._with_aggregates(replace(info, group_by_expressions=expressions), rewritten)

    def _aggregates(self, info: QueryInfo) -> QueryInfo:
        return self._with_aggregates(info, without_window(rewrite_aggregates(self._query)))

    def _with_aggregates(self, info: QueryInfo, rewritten: tree.Query) -> QueryInfo:
        operators = [aggregate_operator(expression) for expression in selected_expressions(self._query)]
        names = select_names(self._query.select.selection)
        return replace(
            info,
            aggregates=() if names else tuple(operator for operator in operators if operator is not None),
            aggregate_types=tuple(zip(names, operators, strict=True)) if names else (),
            rewritten_query=self._print_query(rewritten),
        )

    def _order(self, info: QueryInfo, order_by: tree.OrderBy) -> QueryInfo:
        distance = vector_order(order_by)
        if distance is not None:
            measured = with_constant_steps(distance, self._scope.parameters)
            directions = [is_descending(measured, self._scope, self._distance_function_of)]
        else:
            _check_order_paths(order_by)
            directions = [item.descending for item in order_by.items]
        rewritten = rewrite_order(self._query, order_by)
        is_distinct = self._query.select.distinct
        rewritten = without_window(rewritten) if is_distinct else with_partition_window(rewritten, self._window)
        return replace(
            info,
            order_by=tuple("Descending" if descends else "Ascending" for descends in directions),
            order_by_expressions=tuple(self._print(item.expression) for item in order_by.items),
            rewritten_query=self._print_query(rewritten),
            has_non_streaming_order_by=distance is not None,
        )

    def _print(self, node: tree.Expression) -> str:
        return to_text(with_spelling(node, self._text))

    def _print_query(self, query: tree.Query) -> str:
        return query_text(with_spelling(query, self._text))


def _merges_rows(query: tree.Query) -> bool:
    is_merged = query.select.distinct or query.order_by is not None or query.group_by is not None
    return is_merged or has_aggregates(query)


def _check_order_paths(order_by: tree.OrderBy) -> None:
    for item in order_by.items:
        if not _is_path(item.expression):
            raise MalformedQuery(NO_ORDER_PATH, NO_ORDER_PATH_REASON, item.span.start, item.span.end)


def _is_path(expression: tree.Expression) -> bool:
    while isinstance(expression, tree.Member) and isinstance(expression.step, tree.Literal | tree.Parameter):
        expression = expression.target
    return isinstance(expression, tree.Path)
