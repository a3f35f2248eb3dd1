"""A compiled query or subquery: rows, filter, groups or order, projection, and the window of results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from asterism.languages.cosmos_sql.compiling.distance import (
    is_descending,
    is_score_of_plan,
    missing_as_farthest,
    orders_by_score,
    vector_order,
)
from asterism.languages.cosmos_sql.compiling.environment import Environment
from asterism.languages.cosmos_sql.compiling.expression_compiler import ExpressionCompiler
from asterism.languages.cosmos_sql.compiling.foreseen_calls import ForeseenCalls
from asterism.languages.cosmos_sql.compiling.grouping import GroupCompiler, GroupPlan, has_aggregates
from asterism.languages.cosmos_sql.compiling.path_access import path_reader
from asterism.languages.cosmos_sql.compiling.ranking import RankFusion, compile_ranking
from asterism.languages.cosmos_sql.compiling.scope import Scope
from asterism.languages.cosmos_sql.compiling.sources import Sources, compile_from
from asterism.languages.cosmos_sql.compiling.window import window_of
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.select_names import names_of_select_items
from asterism.reading.limits import QueryMeter
from asterism.reading.row_source import Evaluator, OrderKey, Row
from asterism.reading.runnable import Kind
from asterism.reading.window import Window
from asterism.values.undefined import UNDEFINED

_STAR_WITH_SEVERAL_INPUTS = "SC2040"


@dataclass(frozen=True, slots=True)
class Pipeline:
    kind: Kind
    sources: Sources
    # Returns whether the root exists and the row passes the filter; in a plain query the row is the item.
    matches: Callable[[Row], bool]
    # Returns the result of a row; with a grouping, of a group's row. UNDEFINED means that there is no result.
    project: Evaluator
    # The order of rows, without GROUP BY. (Aggregates of all rows have no order.)
    order: tuple[OrderKey, ...]
    group_order: tuple[OrderKey, ...]
    # True if rows are ordered by a distance or by the score of a text.
    is_by_score: bool
    # The order of a search, which is known only when all rows are.
    ranking: RankFusion | None
    grouping: GroupPlan | None
    is_distinct: bool
    window: Window
    meter: QueryMeter
    # Only for rows that are items.
    foreseen: ForeseenCalls | None

    def matching_rows(self, around: Row) -> Iterator[Row]:
        """Yield the rows of an item (or of a row around a subquery) that pass the filter; use each before the next."""
        make_rows = self.sources.make_rows
        return filter(self.matches, (around,) if make_rows is None else make_rows(around))

    def row_results(self, around: Row) -> Iterator[object]:
        """Yield the result of each row, before DISTINCT, order, groups and window."""
        project = self.project
        return (result for row in self.matching_rows(around) if (result := project(row)) is not UNDEFINED)


def compile_pipeline(
    query: tree.Query, scope: Scope, environment: Environment, *, is_outermost: bool = False
) -> Pipeline:
    """Compile a query. `scope` is that of the rows passed to the pipeline; see `compile_from`."""
    sources = compile_from(query.from_clause, scope, environment)
    _check_star(query, sources)
    rows = ExpressionCompiler(sources.scope, environment)
    foreseen = ForeseenCalls.of(query) if sources.make_rows is None and is_outermost else None
    foreseeing = ExpressionCompiler(sources.scope, environment, foreseen)
    matches = _filter(query.where, sources, foreseeing)
    is_grouped = query.group_by is not None or has_aggregates(query)
    order: tuple[OrderKey, ...] = ()
    group_order: tuple[OrderKey, ...] = ()
    grouping = None
    if is_grouped:
        project, group_order, grouping = _compile_groups(query, rows, sources.scope, environment)
    else:
        project = _projection(query.select.selection, sources, foreseeing)
    ranking = compile_ranking(query, sources.scope, rows, environment)
    if query.order_by is not None and query.group_by is None and ranking is None:
        order = _order(query.order_by, sources.scope, rows, environment)
    return Pipeline(
        kind=_kind(query, is_grouped=is_grouped),
        sources=sources,
        matches=matches,
        project=project,
        order=order,
        group_order=group_order,
        is_by_score=bool(order) and query.order_by is not None and orders_by_score(query.order_by),
        ranking=ranking,
        grouping=grouping,
        is_distinct=query.select.distinct,
        window=window_of(query, sources.scope),
        meter=environment.meter,
        foreseen=foreseen,
    )


def _kind(query: tree.Query, *, is_grouped: bool) -> Kind:
    if query.group_by is not None:
        return Kind.GROUPED
    if is_grouped:
        return Kind.AGGREGATE
    if query.order_by is not None:
        return Kind.RANKED if query.order_by.by_rank else Kind.ORDERED
    return Kind.DISTINCT if query.select.distinct else Kind.STREAMING


def _order(
    order_by: tree.OrderBy, scope: Scope, rows: ExpressionCompiler, environment: Environment
) -> tuple[OrderKey, ...]:
    keys = tuple(OrderKey(rows.compile_key(item.expression), item.descending) for item in order_by.items)
    distance = vector_order(order_by)
    if distance is not None:
        keys = (replace(keys[0], descending=is_descending(distance, scope, environment.distance_function_of)),)
    if is_score_of_plan(order_by) and not keys[0].descending:
        return (replace(keys[0], evaluate=missing_as_farthest(keys[0].evaluate)),)
    return keys


def _check_star(query: tree.Query, sources: Sources) -> None:
    selection = query.select.selection
    if isinstance(selection, tree.SelectStar) and sources.star is None:
        reason = "'SELECT *' is only valid with a single input set."
        raise MalformedQuery(_STAR_WITH_SEVERAL_INPUTS, reason, selection.span.start, selection.span.end)


def _filter(where: tree.Expression | None, sources: Sources, rows: ExpressionCompiler) -> Callable[[Row], bool]:
    root = sources.root
    if where is None and not root:
        return lambda _row: True
    if where is None:
        read_root = path_reader(root)
        return lambda row: read_root(row) is not UNDEFINED
    condition = rows.compile(where)
    if not root:
        return lambda row: condition(row) is True
    read = path_reader(root)
    return lambda row: read(row) is not UNDEFINED and condition(row) is True


# --- projection -----------------------------------------------------------------------------------------------------


def _projection(selection: tree.Selection, sources: Sources, rows: ExpressionCompiler) -> Evaluator:
    if isinstance(selection, tree.SelectStar):
        return path_reader(sources.star or ())
    return _compile_selection(selection, rows)


def _compile_selection(selection: tree.SelectValue | tree.SelectList, rows: ExpressionCompiler) -> Evaluator:
    if isinstance(selection, tree.SelectValue):
        return rows.compile(selection.expression)
    names = names_of_select_items(selection.items)
    nodes = [item.expression for item in selection.items]
    return rows.object_maker(list(zip(names, map(rows.compile, nodes), strict=True)), nodes)


def _compile_groups(
    query: tree.Query, rows: ExpressionCompiler, scope: Scope, environment: Environment
) -> tuple[Evaluator, tuple[OrderKey, ...], GroupPlan]:
    """Return the projection of groups, their order, and their plan."""
    groups = GroupCompiler(query, rows, scope)
    selection = _rewrite_selection(query.select.selection, groups)
    items = query.order_by.items if query.order_by and query.group_by else ()
    order = [(groups.rewrite(item.expression), item.descending) for item in items]
    over_groups = ExpressionCompiler(groups.scope_of_groups(), environment)
    return (
        _compile_selection(selection, over_groups),
        tuple(OrderKey(over_groups.compile_key(node), descending) for node, descending in order),
        groups.grouping(),
    )


def _rewrite_selection(selection: tree.Selection, groups: GroupCompiler) -> tree.SelectValue | tree.SelectList:
    if isinstance(selection, tree.SelectValue):
        return replace(selection, expression=groups.rewrite(selection.expression))
    # A star has no aggregates, and is refused with GROUP BY.
    assert isinstance(selection, tree.SelectList)
    names = names_of_select_items(selection.items)
    items = [
        tree.SelectItem(groups.rewrite(item.expression), name, span=item.span)
        for name, item in zip(names, selection.items, strict=True)
    ]
    return tree.SelectList(tuple(items), span=selection.span)
