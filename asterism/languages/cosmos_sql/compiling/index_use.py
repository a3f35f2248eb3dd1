"""Orders, aggregates and values of paths that an index may answer, read from a query's tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from asterism.languages.cosmos_sql.compiling.expression_compiler import ExpressionCompiler, is_constant
from asterism.languages.cosmos_sql.compiling.grouping import is_aggregate
from asterism.languages.cosmos_sql.compiling.pipeline import Pipeline
from asterism.languages.cosmos_sql.compiling.scope import Scope, property_path
from asterism.languages.cosmos_sql.functions import FUNCTIONS
from asterism.languages.cosmos_sql.syntax import tree
from asterism.reading.conditions import PropertyPath
from asterism.reading.index_use import ANSWERED, Column, CoveredPaths, IndexUse
from asterism.reading.runnable import Kind
from asterism.values.undefined import UNDEFINED

# For these, equal values are added once, with their count.
_COVERED_AGGREGATES: Final = frozenset({"COUNT", "MIN", "MAX"})


def index_use(query: tree.Query, pipeline: Pipeline) -> IndexUse:
    return IndexUse(
        _order_paths(query, pipeline.sources.scope),
        _path_aggregates(query, pipeline),
        _counted_paths(query, pipeline),
        _covered_paths(query, pipeline),
    )


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


def _path_aggregates(query: tree.Query, pipeline: Pipeline) -> tuple[Column, ...] | None:
    if query.where is not None or query.group_by is not None or query.order_by is not None:
        return None
    found = []
    for call in _aggregates_of_items(pipeline):
        argument = call.arguments[0]
        path = property_path(pipeline.sources.scope, argument) if isinstance(argument, tree.Path) else None
        if path is None or call.name not in ANSWERED:
            return None
        found.append((call.name, path))
    return tuple(found) or None


def _counted_paths(query: tree.Query, pipeline: Pipeline) -> tuple[PropertyPath | None, ...] | None:
    if pipeline.kind is not Kind.AGGREGATE or query.order_by is not None:
        return None
    scope = pipeline.sources.scope
    found: list[PropertyPath | None] = []
    for call in _aggregates_of_items(pipeline):
        argument = call.arguments[0]
        path = property_path(scope, argument) if isinstance(argument, tree.Path) else None
        is_of_all = is_constant(argument) and ExpressionCompiler(scope).constant(argument) is not UNDEFINED
        if call.name != "COUNT" or (path is None and not is_of_all):
            return None
        found.append(path)
    return tuple(found) or None


def _covered_paths(query: tree.Query, pipeline: Pipeline) -> CoveredPaths | None:
    """Return the paths, or None if equal items may add different values."""
    is_of_values = pipeline.kind is Kind.GROUPED or (
        pipeline.is_distinct and pipeline.kind in (Kind.DISTINCT, Kind.ORDERED)
    )
    if not is_of_values or not _is_of_items(pipeline) or isinstance(query.select.selection, tree.SelectStar):
        return None
    clauses: list[tree.Node] = [query.select.selection]
    clauses += [clause for clause in (query.where, query.group_by, query.order_by) if clause is not None]
    keys: set[PropertyPath | None] = set()
    extremes: set[PropertyPath | None] = set()
    for node, is_extreme in _nodes(clauses):
        if not _is_same_for_equal_items(node):
            return None
        if isinstance(node, tree.Path):
            (extremes if is_extreme else keys).add(property_path(pipeline.sources.scope, node))
    others = extremes - keys
    known = [path for path in keys if path is not None]
    if not known or len(known) < len(keys) or len(others) > 1 or None in others:
        return None
    return CoveredPaths(frozenset(known), next(iter(others), None))


def _nodes(clauses: list[tree.Node]) -> Iterator[tuple[tree.Node, bool]]:
    """Yield every node of these clauses, and True if it is the whole argument of an aggregate."""
    waiting = [(clause, False) for clause in clauses]
    while waiting:
        node, is_argument = waiting.pop()
        yield node, is_argument
        waiting += [(child, is_aggregate(node)) for child in tree.children(node)]


def _is_same_for_equal_items(node: tree.Node) -> bool:
    if isinstance(node, tree.Subquery):
        return False
    if not isinstance(node, tree.Call):
        return True
    if is_aggregate(node):
        return node.name in _COVERED_AGGREGATES
    function = FUNCTIONS.get(node.name)
    return not node.is_udf and (function is None or not function.needs_context)


def _aggregates_of_items(pipeline: Pipeline) -> list[tree.Call]:
    """Return the aggregates of a query whose rows are items; none for any other."""
    if pipeline.grouping is None or not _is_of_items(pipeline):
        return []
    return [column.call for column in pipeline.grouping.columns]


def _is_of_items(pipeline: Pipeline) -> bool:
    """Return whether each item is one row."""
    sources = pipeline.sources
    return sources.make_rows is None and sources.star == ()
