"""Aggregates and GROUP BY: expressions over rows, and expressions over groups.

An expression over groups is rewritten to refer to a group's row, an object with a property for each key and each
aggregate; then it compiles like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from asterism.languages.cosmos_sql.compiling.aggregates import AGGREGATES
from asterism.languages.cosmos_sql.compiling.expression_compiler import (
    MISPLACED_AGGREGATE,
    WRONG_ARGUMENT_COUNT,
    ExpressionCompiler,
)
from asterism.languages.cosmos_sql.compiling.scope import Scope
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.printer import to_text
from asterism.languages.cosmos_sql.syntax.tree import Expression, Node
from asterism.reading.limits import MemoryMeter
from asterism.reading.row_source import Aggregate, Evaluator, Row
from asterism.values.undefined import UNDEFINED

NOT_GROUPED: Final = "SC2102"
STAR_WITH_GROUP_BY: Final = "SC2041"

# The refusal of the service's planner for `MIN(c.a) / 2`, which this evaluator runs; see `has_composed_aggregates`.
COMPOSED_AGGREGATES_REASON: Final = "Compositions of aggregates and other expressions are not allowed."


@dataclass(frozen=True, slots=True)
class AggregateColumn:
    make: Callable[[MemoryMeter], Aggregate]
    argument: Evaluator
    call: tree.Call


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The keys of a row's group, and the aggregates that the row is added to."""

    keys: tuple[Evaluator, ...]
    columns: tuple[AggregateColumn, ...]

    def row_of_group(self, keys: tuple[object, ...], aggregates: list[Aggregate]) -> Row:
        """Return the row on which expressions over groups are evaluated."""
        named_keys = {_key_slot(index): key for index, key in enumerate(keys)}
        named_results = {_aggregate_slot(index): aggregate.result() for index, aggregate in enumerate(aggregates)}
        return {name: value for name, value in (named_keys | named_results).items() if value is not UNDEFINED}


def is_aggregate(node: Node) -> bool:
    return isinstance(node, tree.Call) and not node.is_udf and node.name in AGGREGATES


def has_aggregates(query: tree.Query) -> bool:
    """Return whether the query's own SELECT (that of a subquery aside) has an aggregate."""
    return any(holds_aggregate(expression) for expression in selected_expressions(query))


def has_composed_aggregates(query: tree.Query) -> bool:
    """Return whether SELECT has an aggregate inside another expression, which no plan of the service can merge."""
    return any(
        not is_aggregate(expression) and holds_aggregate(expression) for expression in selected_expressions(query)
    )


def selected_expressions(query: tree.Query) -> tuple[Expression, ...]:
    match query.select.selection:
        case tree.SelectValue(expression=expression):
            return (expression,)
        case tree.SelectList(items=items):
            return tuple(item.expression for item in items)
        case _:
            return ()


def holds_aggregate(node: Node) -> bool:
    """Return whether the expression is or has an aggregate over its rows; those of a subquery are over its own rows."""
    if isinstance(node, tree.Subquery):
        return False
    return is_aggregate(node) or any(map(holds_aggregate, tree.children(node)))


class GroupCompiler:
    """Compiles the expressions over groups of one query, and collects the aggregates that they need."""

    def __init__(self, query: tree.Query, rows: ExpressionCompiler, scope: Scope) -> None:
        if query.group_by is not None and isinstance(query.select.selection, tree.SelectStar):
            span = query.select.selection.span
            raise MalformedQuery(STAR_WITH_GROUP_BY, "'SELECT *' is not allowed with GROUP BY.", span.start, span.end)
        self._rows = rows
        self._scope = scope
        self._keys = query.group_by.expressions if query.group_by else ()
        self._key_texts = [to_text(key) for key in self._keys]
        self._calls: dict[str, tree.Call] = {}
        self._key_readers = tuple(rows.compile_key(key) for key in self._keys)

    def rewrite(self, expression: Expression) -> Expression:
        """Rewrite an expression to the group's row. Raises MalformedQuery for a value that is not unique in a group."""
        return cast(Expression, self._rewrite(expression))

    def scope_of_groups(self) -> Scope:
        """Return the scope of the results of `rewrite`; call it after the last."""
        slots = [_key_slot(index) for index in range(len(self._keys))]
        slots += [_aggregate_slot(index) for index in range(len(self._calls))]
        return Scope({slot: (slot,) for slot in slots}, self._scope.parameters)

    def grouping(self) -> GroupPlan:
        columns = [
            AggregateColumn(AGGREGATES[call.name], self._rows.compile(call.arguments[0]), call)
            for call in self._calls.values()
        ]
        return GroupPlan(self._key_readers, tuple(columns))

    def _rewrite(self, node: Node, own_aliases: frozenset[str] = frozenset()) -> Node:
        key = self._key_of(node)
        if key is not None:
            return key
        if isinstance(node, tree.Path):
            return self._path(node, own_aliases)
        if isinstance(node, tree.Subquery):
            # Its aggregates stay as they are; only its references to the rows around it are rewritten.
            own_aliases |= _aliases_in(node)
        elif is_aggregate(node) and not own_aliases:
            return self._aggregate(cast(tree.Call, node))
        return tree.with_children(node, partial(self._rewrite, own_aliases=own_aliases))

    def _key_of(self, node: Node) -> Node | None:
        for index, key in enumerate(self._keys):
            # True equals 1 in Python; the texts differ.
            if type(node) is type(key) and node == key and to_text(node) == self._key_texts[index]:
                return tree.Path(_key_slot(index), span=node.span)
            if isinstance(node, tree.Path) and isinstance(key, tree.Path) and _is_below(node, key):
                return tree.Path(_key_slot(index), node.steps[len(key.steps) :], span=node.span)
        return None

    def _path(self, node: tree.Path, own_aliases: frozenset[str]) -> Node:
        if node.alias in own_aliases:
            return node
        self._scope.steps_below_row(node)
        reason = (
            f"Property reference '{to_text(node)}' is invalid in the select list because it is not contained in either "
            "an aggregate function or the GROUP BY clause."
        )
        raise MalformedQuery(NOT_GROUPED, reason, node.span.start, node.span.end)

    def _aggregate(self, call: tree.Call) -> Node:
        if len(call.arguments) != 1:
            reason = f"The {call.name} function requires 1 argument(s)."
            raise MalformedQuery(WRONG_ARGUMENT_COUNT, reason, call.span.start, call.span.end)
        # Aggregates of a subquery are over its own rows, and a single value for this aggregate.
        if holds_aggregate(call.arguments[0]):
            reason = "Cannot perform an aggregate function on an expression containing an aggregate or a subquery."
            raise MalformedQuery(MISPLACED_AGGREGATE, reason, call.span.start, call.span.end)
        text = to_text(call)
        self._calls.setdefault(text, call)
        return tree.Path(_aggregate_slot(list(self._calls).index(text)), span=call.span)


# Slots have names that are not identifiers.
def _key_slot(index: int) -> str:
    return f"#key{index}"


def _aggregate_slot(index: int) -> str:
    return f"#aggregate{index}"


def _is_below(path: tree.Path, key: tree.Path) -> bool:
    return path.alias == key.alias and path.steps[: len(key.steps)] == key.steps


def _aliases_in(subquery: tree.Subquery) -> frozenset[str]:
    """Return all aliases in the subquery, nested ones too, and a mark that keeps the set from being empty."""
    found = {"#subquery"}
    for node in tree.descendants(subquery):
        if isinstance(node, tree.Source):
            collection = node.collection
            names = (collection.alias, *collection.steps) if isinstance(collection, tree.Path) else ()
            last = names[-1] if names else None
            found |= {name for name in (node.alias or last,) if isinstance(name, str)}
    return frozenset(found)
