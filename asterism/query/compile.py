"""A query's tree and its parameters to what can be run on items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from asterism.query import tree
from asterism.query.expression_compiler import ExpressionCompiler, object_maker
from asterism.query.partition_filter import PartitionFilter, PartitionKeyTuple, PropertyPath
from asterism.query.path_access import Evaluator, path_reader
from asterism.query.scope import Steps, scope_of
from asterism.query.unsupported import refuse_clauses_not_run
from asterism.values.undefined import UNDEFINED

Item = dict[str, object]


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query with its values in place. Immutable, and without state between items."""

    # Whether an item passes the filter: exactly `true` passes.
    matches: Callable[[Item], bool]
    # What the query makes of an item that matches; UNDEFINED is no result at all.
    project: Evaluator
    # Whether `project` returns the item as it is.
    is_select_star: bool
    has_filter: bool
    # False for a query without FROM, which has one row: run `matches` and `project` once, on an empty item.
    reads_items: bool
    _partition_filter: PartitionFilter = field(repr=False)

    def equalities(self) -> list[tuple[PropertyPath, object]]:
        """Paths with the value that each has in every item that matches: what an index can look up."""
        return self._partition_filter.equalities()

    def pinned_partition_keys(self, paths: tuple[PropertyPath, ...]) -> list[PartitionKeyTuple] | None:
        """The partition keys at `paths` that matching items can have, as full keys or, with several paths, prefixes.

        Distinct, none within another. None means that the filter does not fix them; an empty list, that no item can
        match. A path that must be missing has UNDEFINED in its place.
        """
        return self._partition_filter.pinned_partition_keys(paths)


def compile_query(query: tree.Query, parameters: Mapping[str, object]) -> CompiledQuery:
    """`parameters` by name, with the at-sign. Raises MalformedQuery for names without meaning, wrong numbers of
    arguments, and what this version does not run."""
    refuse_clauses_not_run(query)
    scope = scope_of(query, parameters)
    compiler = ExpressionCompiler(scope)
    root = _root_steps(query)
    selection = query.select.selection
    return CompiledQuery(
        matches=_filter(query, root, compiler),
        project=_projection(selection, root, compiler),
        is_select_star=isinstance(selection, tree.SelectStar) and not root,
        has_filter=query.where is not None or bool(root),
        reads_items=query.from_clause is not None,
        _partition_filter=PartitionFilter(query.where, scope),
    )


def _root_steps(query: tree.Query) -> Steps:
    """Where below the item the query's one source is."""
    collection = query.from_clause.source.collection if query.from_clause else None
    return collection.steps if isinstance(collection, tree.Path) else ()


def _filter(query: tree.Query, root: Steps, compiler: ExpressionCompiler) -> Callable[[Item], bool]:
    if query.where is None and not root:
        return lambda _item: True
    if query.where is None:
        read_root = path_reader(root)
        return lambda item: read_root(item) is not UNDEFINED
    condition = compiler.compile(query.where)
    if not root:
        return lambda item: condition(item) is True
    read = path_reader(root)
    return lambda item: read(item) is not UNDEFINED and condition(item) is True


def _projection(selection: tree.Selection, root: Steps, compiler: ExpressionCompiler) -> Evaluator:
    match selection:
        case tree.SelectStar():
            return path_reader(root)
        case tree.SelectValue(expression=expression):
            return compiler.compile(expression)
        case tree.SelectList(items=items):
            names = names_of_select_items(items)
            return object_maker(
                [(name, compiler.compile(item.expression)) for name, item in zip(names, items, strict=True)]
            )


def names_of_select_items(items: tuple[tree.SelectItem, ...]) -> list[str]:
    """The property each item becomes: its alias, the last name of its path, or $1, $2 … in order."""
    names = []
    unnamed_count = 0
    for item in items:
        name = item.alias or _own_name(item.expression)
        if name is None:
            unnamed_count += 1
            name = f"${unnamed_count}"
        names.append(name)
    return names


def _own_name(expression: tree.Expression) -> str | None:
    if not isinstance(expression, tree.Path):
        return None
    last = (expression.alias, *expression.steps)[-1]
    return last if isinstance(last, str) else None
