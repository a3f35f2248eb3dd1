"""The partition keys that a query's filter allows, as far as the service's planner sees them.

The planner knows more forms than a plain equality. Each is replaced here by a predicate that `PartitionFilter` reads,
and that is true for the same items at least.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, cast

from asterism.languages.cosmos_sql.compiling.constant_steps import is_item_free, with_constant_steps
from asterism.languages.cosmos_sql.compiling.expression_compiler import ExpressionCompiler, is_constant
from asterism.languages.cosmos_sql.compiling.partition_filter import PartitionFilter, PartitionKeyTuple
from asterism.languages.cosmos_sql.compiling.scope import Scope, inferred_alias
from asterism.languages.cosmos_sql.compiling.semantics import is_number, is_primitive
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.tree import Expression, Span
from asterism.reading.conditions import PropertyPath
from asterism.values.undefined import UNDEFINED

_LIKE_WILDCARDS: Final = frozenset("%_[")
_CONTAINMENTS: Final = frozenset({"ARRAY_CONTAINS", "_TRY_ARRAY_CONTAINS"})


def scope_of_items(query: tree.Query, parameters: Mapping[str, object]) -> Scope:
    """Return the scope in which only the paths of FROM that lie in the stored item have an alias."""
    source = query.from_clause.source if query.from_clause else None
    if source is None or source.is_iterator or isinstance(source.collection, tree.SubqueryCollection):
        return Scope({}, parameters)
    alias = source.alias or inferred_alias(source.collection)
    aliases = {} if alias is None else {alias: source.collection.steps}
    return Scope(aliases, parameters, item_aliases=aliases)


def pinned_keys(query: tree.Query, scope: Scope, paths: tuple[PropertyPath, ...]) -> list[PartitionKeyTuple] | None:
    """Return the same as `CompiledQuery.pinned_partition_keys`, for more forms of filters."""
    where = query.where
    if where is not None:
        where = _Simplifier(scope).simplify(with_constant_steps(where, scope.parameters))
    return PartitionFilter(where, scope).pinned_partition_keys(paths)


class _Simplifier:
    """Rewrites predicates, only where they must be true: below AND and OR, never below NOT."""

    def __init__(self, scope: Scope) -> None:
        self._compiler = ExpressionCompiler(scope)

    def simplify(self, node: Expression) -> Expression:
        if isinstance(node, tree.And | tree.Or):
            operands = tuple(self.simplify(operand) for operand in node.operands)
            return replace(node, operands=operands)
        if is_item_free(node):
            return self._evaluate(node)
        found = self._values_of_path(node)
        return node if found is None else _path_is_one_of(*found, node.span)

    def _evaluate(self, node: Expression) -> Expression:
        try:
            value = self._compiler.constant(node)
        except MalformedQuery:
            return node
        return tree.Literal(value, span=node.span)

    def _values_of_path(self, node: Expression) -> tuple[tree.Path, Iterable[object]] | None:
        """Return the path that the predicate tests, and the values there that make it true."""
        match node:
            case tree.Binary(operator="=", left=left, right=right):
                tested, other = (left, right) if is_constant(right) else (right, left)
                return self._values_when_equal(tested, other) if is_constant(other) else None
            case tree.In(needle=tree.Path() as path, haystack=haystack, negated=False) if all(
                map(is_constant, haystack)
            ):
                return path, self._values(haystack)
            case tree.Call(name="IS_BOOL", arguments=(tree.Path() as path,), is_udf=False):
                return path, (False, True)
            case tree.Call(name=name, arguments=(array, tree.Path() as path), is_udf=False) if name in _CONTAINMENTS:
                value = self._compiler.constant(array) if is_constant(array) else None
                return (path, value) if isinstance(value, list) else None
            case tree.Like(value=tree.Path() as path, pattern=pattern, escape=escape, negated=False):
                text = self._compiler.constant(pattern) if is_constant(pattern) else None
                literal = _text_without_wildcards(text, escape) if isinstance(text, str) else None
                return None if literal is None else (path, (literal,))
            case _:
                return None

    def _values_when_equal(self, tested: Expression, other: Expression) -> tuple[tree.Path, Iterable[object]] | None:
        value = self._compiler.constant(other)
        match tested:
            case tree.Path():
                return tested, (value,)
            case tree.Call(name="ABS", arguments=(tree.Path() as path,), is_udf=False) if is_number(value):
                return path, (value, -cast(float, value))
            case _:
                return None

    def _values(self, nodes: tuple[Expression, ...]) -> list[object]:
        return [self._compiler.constant(node) for node in nodes]


def _path_is_one_of(path: tree.Path, values: Iterable[object], span: Span) -> Expression:
    """Return `path IN values`. Arrays and objects are not keys: such items are stored with those without a key."""
    defined = [value for value in values if value is not UNDEFINED]
    keys = tuple(tree.Literal(value, span=span) for value in defined if is_primitive(value))
    is_among = tree.In(path, keys, False, span=span)
    if len(keys) == len(defined):
        return is_among
    is_defined = tree.Call("IS_DEFINED", (path,), False, span, span=span)
    return tree.Or((is_among, tree.Unary("NOT", is_defined, span=span)), span=span)


def _text_without_wildcards(pattern: str, escape: str | None) -> str | None:
    """Return the only text that a LIKE pattern matches, or None if it has wildcards."""
    characters = []
    rest = iter(pattern)
    for character in rest:
        if character == escape:
            characters.append(next(rest, character))
        elif character in _LIKE_WILDCARDS:
            return None
        else:
            characters.append(character)
    return "".join(characters)
