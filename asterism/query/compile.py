"""A query's tree and its parameters to what can be run on items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from asterism.query import tree
from asterism.query.collectors import Collector, OrderedCollector, distinct, new_collector
from asterism.query.constant_steps import with_constant_steps
from asterism.query.distance import DistanceFunctionOf, no_distance_function
from asterism.query.environment import Environment, Results, Udfs
from asterism.query.foreseen_calls import ForeseenCalls
from asterism.query.functions.context import EvaluationContext
from asterism.query.index_aggregates import ANSWERED, Column
from asterism.query.index_conditions import Condition, index_conditions
from asterism.query.index_order import OrderPosition
from asterism.query.index_plan import RowOrder
from asterism.query.limits import MemoryMeter, QueryMeter
from asterism.query.partition_filter import PartitionFilter, PartitionKeyTuple
from asterism.query.path_access import Evaluator
from asterism.query.pipeline import Kind, OrderKey, Pipeline, compile_pipeline
from asterism.query.scope import PropertyPath, Row, Scope, property_path
from asterism.query.special_numbers import has_special_numbers, with_names_of_numbers
from asterism.values.undefined import UNDEFINED

Item = dict[str, object]

# Aggregates that keep values in the order in which they come.
_LISTS = frozenset({"MAKELIST", "MAKESET"})


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query with its values in place. What it knows between items is in the collectors it makes.

    Without FROM a query has one row: give it one empty item. A STREAMING query is run with `rows`, item by item; any
    other with a collector, or, when ORDERED, also by merging partitions that are read in order.
    """

    # Whether an item gives any row that passes the filter: exactly `true` passes.
    matches: Callable[[Item], bool]
    # What a plain query makes of an item that matches, any other of that item alone: its first result. UNDEFINED is no
    # result at all. See `is_plain`.
    project: Evaluator
    # Whether `project` returns the item as it is.
    is_select_star: bool
    has_filter: bool
    # False for a query without FROM, which has one row.
    reads_items: bool
    # Whether an item gives at most one row, so that `matches` and `project` say it all; others need `rows`.
    is_plain: bool
    # Whether an item may take long or need much memory, so that it has to be evaluated in turns.
    is_metered: bool
    kind: Kind
    is_distinct: bool
    # TOP counts first, then OFFSET and LIMIT. Collectors apply them; who uses `rows` does it himself.
    top: int | None
    offset: int
    limit: int | None
    # The order of rows; empty for groups, which their collector sorts.
    order_by: tuple[OrderKey, ...]
    # The same as paths of the item with whether they descend; None if one is something else, or there is no order.
    order_paths: tuple[tuple[PropertyPath, bool], ...] | None
    # Whether all it asks is how many items there are, so that statistics can answer.
    counts_items: bool
    # All it asks of the items, as aggregates of paths that an index may answer; None if it asks something else.
    path_aggregates: tuple[Column, ...] | None
    _pipeline: Pipeline = field(repr=False)
    _partition_filter: PartitionFilter = field(repr=False)
    _where: tree.Expression | None = field(repr=False)

    @property
    def aggregate_columns(self) -> int:
        """How many aggregates the query has."""
        return 0 if self._pipeline.grouping is None else len(self._pipeline.grouping.columns)

    @property
    def results_max(self) -> int | None:
        """How many results are enough, those that OFFSET passes over counted in; None if all are wanted."""
        return self._pipeline.window.results_max

    @property
    def takes_items_in_any_order(self) -> bool:
        """Whether the results are the same in whichever order items are fed to a collector."""
        grouping = self._pipeline.grouping
        if grouping is not None and any(column.call.name in _LISTS for column in grouping.columns):
            return False
        if self.kind is Kind.DISTINCT:
            return self.results_max is None
        return self.kind in (Kind.AGGREGATE, Kind.GROUPED, Kind.ORDERED)

    @property
    def foreseen(self) -> ForeseenCalls | None:
        """Calls of a user's functions that are made for every item, if there are any."""
        foreseen = self._pipeline.foreseen
        return foreseen if foreseen is not None and foreseen.has_calls else None

    @property
    def meter(self) -> QueryMeter:
        """What counts the work of the query, and what it has in memory."""
        return self._pipeline.meter

    def rows(self, item: Item) -> Iterable[object]:
        """The results of one item, before DISTINCT, TOP and OFFSET LIMIT; of a query without order and aggregates."""
        if self.is_plain:
            return () if not self.matches(item) or (result := self.project(item)) is UNDEFINED else (result,)
        self._pipeline.meter.restart()
        return self._pipeline.row_results(item)

    def ordered_collector(self, order: RowOrder | None, after: OrderPosition | None) -> OrderedCollector:
        """The collector of an ORDERED query whose results begin behind a position."""
        return OrderedCollector(self._pipeline, order, after=after)

    def new_collector(self) -> Collector:
        return new_collector(self._pipeline)

    def index_conditions(self) -> Condition:
        """What an index can use of the filter: a superset of the items that match."""
        return index_conditions(self._where, self._pipeline.sources.scope)

    def equalities(self) -> list[tuple[PropertyPath, object]]:
        """Paths with the value that each has in every item that matches: what an index can look up."""
        return self._partition_filter.equalities()

    def pinned_partition_keys(self, paths: tuple[PropertyPath, ...]) -> list[PartitionKeyTuple] | None:
        """The partition keys at `paths` that matching items can have, as full keys or, with several paths, prefixes.

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
    """`parameters` by name, with the at-sign; without a `context`, functions of the time and of chance are refused.

    Raises MalformedQuery for names without meaning, wrong numbers of arguments and aggregates where there can be none;
    MalformedRequest for a search that says its order.
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
    sources, window = pipeline.sources, pipeline.window
    is_plain = sources.make_rows is None and pipeline.kind is Kind.STREAMING
    meter.weigh(len(nodes))
    matches, project = _plain_steps(pipeline, meter)
    return CompiledQuery(
        matches=matches,
        project=project,
        is_select_star=isinstance(query.select.selection, tree.SelectStar) and sources.star == (),
        has_filter=query.where is not None or sources.make_rows is not None or bool(sources.root),
        reads_items=query.from_clause is not None,
        is_plain=is_plain,
        is_metered=meter.is_needed or sources.make_rows is not None,
        kind=pipeline.kind,
        is_distinct=pipeline.is_distinct,
        top=window.top,
        offset=window.offset,
        limit=window.limit,
        order_by=pipeline.order,
        order_paths=_order_paths(query, sources.scope),
        counts_items=_counts_items(query),
        path_aggregates=_path_aggregates(query, pipeline),
        _pipeline=pipeline,
        _partition_filter=PartitionFilter(query.where, sources.scope),
        _where=query.where,
    )


def _plain_steps(pipeline: Pipeline, meter: QueryMeter) -> tuple[Callable[[Item], bool], Evaluator]:
    """Filter and projection of single items, as directly as the query allows."""
    if pipeline.sources.make_rows is None and pipeline.grouping is None and not meter.is_needed:
        return pipeline.matches, pipeline.project

    if pipeline.sources.make_rows is None and pipeline.grouping is None:
        return _item_by_item(pipeline, meter)

    def matches(item: Item) -> bool:
        meter.restart()
        return any(True for _ in pipeline.matching_rows(item))

    def project(item: Item) -> object:
        meter.restart()
        if pipeline.grouping is not None:
            return next(_results_of_one(pipeline, item), UNDEFINED)
        if pipeline.sources.make_rows is None:
            return pipeline.project(item)
        return next(pipeline.row_results(item), UNDEFINED)

    return matches, project


def _item_by_item(pipeline: Pipeline, meter: QueryMeter) -> tuple[Callable[[Item], bool], Evaluator]:
    """Filter and projection of items that are rows themselves, each metered from the beginning."""
    row_matches, row_project, restart = pipeline.matches, pipeline.project, meter.restart

    def matches(item: Item) -> bool:
        # Asked here as well, for a call that does nothing costs as much as a short filter.
        if meter.has_worked:
            restart()
        return row_matches(item)

    def project(item: Item) -> object:
        restart()
        return row_project(item)

    return matches, project


def _takes_every_item(query: tree.Query) -> bool:
    """Whether each item is one row, none left out, and all are one group."""
    clause = query.from_clause
    if clause is None or clause.joins or query.where is not None or query.group_by is not None:
        return False
    collection = clause.source.collection
    return not clause.source.is_iterator and isinstance(collection, tree.Path) and not collection.steps


def _path_aggregates(query: tree.Query, pipeline: Pipeline) -> tuple[Column, ...] | None:
    if pipeline.grouping is None or query.order_by is not None or not _takes_every_item(query):
        return None
    found = []
    for call in (column.call for column in pipeline.grouping.columns):
        argument = call.arguments[0]
        path = property_path(pipeline.sources.scope, argument) if isinstance(argument, tree.Path) else None
        if path is None or call.name not in ANSWERED:
            return None
        found.append((call.name, path))
    return tuple(found)


def _counts_items(query: tree.Query) -> bool:
    if not _takes_every_item(query):
        return False
    selected = list(tree.descendants(query.select))
    calls = [node for node in selected if isinstance(node, tree.Call)]
    if not calls or any(isinstance(node, tree.Path | tree.Subquery) for node in selected):
        return False
    return all(call.name == "COUNT" and isinstance(call.arguments[0], tree.Literal) for call in calls)


def _order_paths(query: tree.Query, scope: Scope) -> tuple[tuple[PropertyPath, bool], ...] | None:
    if query.order_by is None or query.group_by is not None:
        return None
    paths = []
    for item in query.order_by.items:
        path = property_path(scope, item.expression) if isinstance(item.expression, tree.Path) else None
        if path is None:
            return None
        paths.append((path, item.descending))
    return tuple(paths)


def _compile_subquery(query: tree.Query, scope: Scope, environment: Environment) -> Results:
    pipeline = compile_pipeline(query, scope, environment)
    window = pipeline.window
    if pipeline.kind is Kind.STREAMING:
        has_window = window.results_max is not None or window.offset
        return (lambda row: window.cut(pipeline.row_results(row))) if has_window else pipeline.row_results
    if pipeline.kind is Kind.DISTINCT:
        meter = environment.meter
        return lambda row: window.cut(distinct(pipeline.row_results(row), meter, MemoryMeter(meter.account)))
    return lambda row: _results_of_one(pipeline, row)


def _results_of_one(pipeline: Pipeline, around: Row) -> Iterator[object]:
    """The results when there is no other item; those of a subquery, for one row around it."""
    collector = new_collector(pipeline)
    collector.take(around)
    return collector.results()
