"""The compiler of a query's tree and parameters to a query that the executor runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from asterism.languages.cosmos_sql.compiling.collectors import new_collector
from asterism.languages.cosmos_sql.compiling.constant_steps import with_constant_steps
from asterism.languages.cosmos_sql.compiling.distance import DistanceFunctionOf, no_distance_function
from asterism.languages.cosmos_sql.compiling.environment import Environment, Results, Udfs
from asterism.languages.cosmos_sql.compiling.foreseen_calls import ForeseenCalls
from asterism.languages.cosmos_sql.compiling.index_conditions import exact_conditions, index_conditions
from asterism.languages.cosmos_sql.compiling.index_use import index_use
from asterism.languages.cosmos_sql.compiling.partition_filter import PartitionFilter, PartitionKeyTuple
from asterism.languages.cosmos_sql.compiling.pipeline import Pipeline, compile_pipeline
from asterism.languages.cosmos_sql.compiling.scope import Scope
from asterism.languages.cosmos_sql.functions.context import EvaluationContext
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.special_numbers import has_special_numbers, with_names_of_numbers
from asterism.reading.collectors import Collector, OrderedCollector, distinct
from asterism.reading.conditions import Condition, PropertyPath
from asterism.reading.index_use import IndexUse
from asterism.reading.limits import MemoryMeter, QueryMeter
from asterism.reading.order_plan import OrderPosition, RowOrder
from asterism.reading.row_source import Evaluator, OrderKey, Row
from asterism.reading.runnable import Kind
from asterism.reading.window import Window
from asterism.values.json.order import sort_key
from asterism.values.json.value_order import JSON_ORDER
from asterism.values.undefined import UNDEFINED

Item = dict[str, object]

# Aggregates that keep values in the order of the items.
_LISTS = frozenset({"MAKELIST", "MAKESET"})
# In the words of the service.
_NO_COMPOSITE_INDEX = "The order by query does not have a corresponding composite index that it can be served from."


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query as the executor runs it (`reading.runnable.Runnable`).

    Without FROM a query has one row: pass it one empty item. A filter passes exactly the value `true`.
    """

    # Returns whether any row of an item passes the filter.
    matches: Callable[[Item], bool]
    # Returns the result of a matching item, if the query is plain; otherwise the first result of the item alone.
    project: Evaluator
    # True for `SELECT *`.
    answers_whole: bool
    has_filter: bool
    # False for a query without FROM, which has one row.
    reads_items: bool
    is_plain: bool
    is_metered: bool
    kind: Kind
    is_distinct: bool
    window: Window
    # The order of rows; empty for groups, which their collector sorts.
    order_by: tuple[OrderKey, ...]
    index_use: IndexUse
    _pipeline: Pipeline = field(repr=False)
    _partition_filter: PartitionFilter = field(repr=False)
    _where: tree.Expression | None = field(repr=False)

    @property
    def directions(self) -> Sequence[bool]:
        return [key.descending for key in self.order_by]

    @property
    def unindexed_order_refusal(self) -> str | None:
        # As in the service: only a single path can be sorted without an index.
        is_of_several_paths = len(self.order_by) > 1 and self.index_use.order_paths is not None
        return _NO_COMPOSITE_INDEX if is_of_several_paths else None

    def adds_nothing(self, item: Item) -> bool:
        if self.kind is Kind.GROUPED:
            return not self.matches(item)
        return next(self._pipeline.row_results(item), UNDEFINED) is UNDEFINED

    @property
    def takes_items_in_any_order(self) -> bool:
        grouping = self._pipeline.grouping
        if grouping is not None and any(column.call.name in _LISTS for column in grouping.columns):
            return False
        if self.kind is Kind.DISTINCT:
            return self.window.results_max is None
        return self.kind in (Kind.AGGREGATE, Kind.GROUPED, Kind.ORDERED)

    @property
    def foreseen(self) -> ForeseenCalls | None:
        """The calls of a user's functions that are made for every item, or None."""
        foreseen = self._pipeline.foreseen
        return foreseen if foreseen is not None and foreseen.has_calls else None

    @property
    def meter(self) -> QueryMeter:
        return self._pipeline.meter

    def rows(self, item: Item) -> Iterable[object]:
        """Return the results of one item, before DISTINCT, TOP and OFFSET LIMIT; of a query without order and
        aggregates."""
        if self.is_plain:
            return () if not self.matches(item) or (result := self.project(item)) is UNDEFINED else (result,)
        self._pipeline.meter.restart()
        return self._pipeline.row_results(item)

    def ordered_collector(self, order: RowOrder | None, after: OrderPosition | None) -> OrderedCollector:
        return OrderedCollector(self._pipeline, JSON_ORDER, rows=order, after=after)

    def new_collector(self) -> Collector:
        return new_collector(self._pipeline)

    def index_conditions(self) -> Condition:
        return index_conditions(self._where, self._pipeline.sources.scope)

    def exact_conditions(self) -> Condition | None:
        sources = self._pipeline.sources
        if sources.make_rows is not None or sources.root:
            return None
        return exact_conditions(self._where, sources.scope)

    def equalities(self) -> list[tuple[PropertyPath, object]]:
        """Return paths with the value that each has in every item that matches."""
        return self._partition_filter.equalities()

    def pinned_partition_keys(self, paths: tuple[PropertyPath, ...]) -> list[PartitionKeyTuple] | None:
        """Return the partition keys at `paths` that matching items can have, full or, with several paths, prefixes.

        Distinct, none within another. None means that the filter does not fix them; an empty list, that no item can
        match. A path that must be missing has UNDEFINED in its place.
        """
        return self._partition_filter.pinned_partition_keys(paths)


def compile_query(
    query: tree.Query,
    parameters: Mapping[str, object],
    *,
    udfs: Udfs | None = None,
    context: EvaluationContext | None = None,
    distance_function_of: DistanceFunctionOf = no_distance_function,
) -> CompiledQuery:
    """Compile a query. Names of `parameters` have the at-sign; without a `context`, functions that depend on the time
    or on random numbers are refused.

    Raises MalformedQuery for unknown names, wrong numbers of arguments and misplaced aggregates, and MalformedRequest
    for a search with a sort direction.
    """
    nodes = list(tree.descendants(query))
    kinds = set(map(type, nodes))
    if tree.Member in kinds:
        query = with_constant_steps(query, parameters)
    meter = QueryMeter()
    environment = Environment({} if udfs is None else udfs, context, meter, _compile_subquery, distance_function_of)
    pipeline = compile_pipeline(query, Scope({}, parameters, sees_container=True), environment, is_outermost=True)
    if has_special_numbers(nodes):
        pipeline = replace(pipeline, project=with_names_of_numbers(pipeline.project))
    sources = pipeline.sources
    is_plain = sources.make_rows is None and pipeline.kind is Kind.STREAMING
    meter.weigh(len(nodes))
    matches, project = _plain_steps(pipeline, meter)
    return CompiledQuery(
        matches=matches,
        project=project,
        answers_whole=isinstance(query.select.selection, tree.SelectStar) and sources.star == (),
        has_filter=query.where is not None or sources.make_rows is not None or bool(sources.root),
        reads_items=query.from_clause is not None,
        is_plain=is_plain,
        is_metered=meter.is_needed or sources.make_rows is not None,
        kind=pipeline.kind,
        is_distinct=pipeline.is_distinct,
        window=pipeline.window,
        order_by=pipeline.order,
        index_use=index_use(query, pipeline),
        _pipeline=pipeline,
        _partition_filter=PartitionFilter(query.where, sources.scope),
        _where=query.where,
    )


def _plain_steps(pipeline: Pipeline, meter: QueryMeter) -> tuple[Callable[[Item], bool], Evaluator]:
    """Return the filter and the projection of single items, as directly as the query allows."""
    if pipeline.sources.make_rows is None and pipeline.grouping is None and not meter.is_needed:
        return pipeline.matches, pipeline.project

    if pipeline.sources.make_rows is None and pipeline.grouping is None:
        return _metered_steps(pipeline, meter)

    def matches(item: Item) -> bool:
        meter.restart()
        return any(True for _ in pipeline.matching_rows(item))

    def project(item: Item) -> object:
        meter.restart()
        if pipeline.grouping is not None:
            return next(_results_of_row(pipeline, item), UNDEFINED)
        if pipeline.sources.make_rows is None:
            return pipeline.project(item)
        return next(pipeline.row_results(item), UNDEFINED)

    return matches, project


def _metered_steps(pipeline: Pipeline, meter: QueryMeter) -> tuple[Callable[[Item], bool], Evaluator]:
    """Return the filter and the projection of items that are rows themselves, with a new count for each."""
    row_matches, row_project, restart = pipeline.matches, pipeline.project, meter.restart

    def matches(item: Item) -> bool:
        # Checked here as well, for a call that does nothing costs as much as a short filter.
        if meter.has_worked:
            restart()
        return row_matches(item)

    def project(item: Item) -> object:
        restart()
        return row_project(item)

    return matches, project


def _compile_subquery(query: tree.Query, scope: Scope, environment: Environment) -> Results:
    pipeline = compile_pipeline(query, scope, environment)
    window = pipeline.window
    if pipeline.kind is Kind.STREAMING:
        return pipeline.row_results if window.is_open else lambda row: window.cut(pipeline.row_results(row))
    if pipeline.kind is Kind.DISTINCT:
        meter = environment.meter
        return lambda row: window.cut(distinct(pipeline.row_results(row), sort_key, meter, MemoryMeter(meter.account)))
    return lambda row: _results_of_row(pipeline, row)


def _results_of_row(pipeline: Pipeline, around: Row) -> Iterator[object]:
    """Return the results for a single item; those of a subquery, for one row around it."""
    collector = new_collector(pipeline)
    collector.take(around)
    return collector.results()
