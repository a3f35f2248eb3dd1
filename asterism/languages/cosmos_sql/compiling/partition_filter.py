"""Facts about matching items that follow from the filter alone: equalities that hold, and possible partition keys.

Both may be weaker than the filter, never stronger: they hold for every item that matches the filter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from asterism.languages.cosmos_sql.compiling.expression_compiler import ExpressionCompiler, is_constant
from asterism.languages.cosmos_sql.compiling.scope import Scope, property_path
from asterism.languages.cosmos_sql.compiling.semantics import is_primitive
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.tree import Expression
from asterism.reading.conditions import PropertyPath
from asterism.values.json.order import sort_key, values_equal
from asterism.values.undefined import UNDEFINED

PartitionKeyTuple = tuple[object, ...]

# A disjunct of the filter: the values at partition key paths of items that match it. An empty disjunct is true for
# every item, and an empty list of disjuncts means that no item matches.
_Disjunct = dict[PropertyPath, object]
_ANYTHING: Final[tuple[_Disjunct, ...]] = ({},)

# The client's own multi-item reads name up to 1,000 items in one filter. With more disjuncts the query fans out.
DISJUNCTS_MAX: Final = 5000


class PartitionFilter:
    """The filter of one query; the scope resolves aliases and parameters."""

    def __init__(self, where: Expression | None, scope: Scope) -> None:
        self._where = where
        self._scope = scope
        self._compiler = ExpressionCompiler(scope)

    def equalities(self) -> list[tuple[PropertyPath, object]]:
        """Return path and value of every conjunct `path = value`; all of them hold for a matching item."""
        if self._where is None:
            return []
        conjuncts = self._where.operands if isinstance(self._where, tree.And) else (self._where,)
        found = []
        for conjunct in conjuncts:
            path, values = self._values_allowed(conjunct)
            if path is not None and len(values) == 1 and values[0] is not UNDEFINED:
                found.append((path, values[0]))
        return found

    def pinned_partition_keys(self, paths: tuple[PropertyPath, ...]) -> list[PartitionKeyTuple] | None:
        """Return every partition key or prefix that a matching item can have; None if the filter does not fix them."""
        if self._where is None:
            return None
        keys: dict[object, PartitionKeyTuple] = {}
        for disjunct in self._disjuncts(self._where, frozenset(paths)):
            key = _longest_prefix(disjunct, paths)
            if not key:
                return None
            keys.setdefault(_identity(key), key)
        return [key for key in keys.values() if not _is_covered(key, keys)]

    def _disjuncts(self, node: Expression, paths: frozenset[PropertyPath]) -> tuple[_Disjunct, ...] | list[_Disjunct]:
        if isinstance(node, tree.And):
            return self._disjuncts_of_and(node, paths)
        if isinstance(node, tree.Or):
            return self._disjuncts_of_or(node, paths)
        if is_constant(node):
            return _ANYTHING if self._compiler.constant(node) is True else ()
        path, values = self._values_allowed(node)
        if path is None or path not in paths:
            return _ANYTHING
        # An array or object is not a partition key; such items are left to the scan.
        if not all(is_primitive(value) or value is UNDEFINED for value in values):
            return _ANYTHING
        return [{path: value} for value in values] if len(values) <= DISJUNCTS_MAX else _ANYTHING

    def _disjuncts_of_and(
        self, node: tree.And, paths: frozenset[PropertyPath]
    ) -> tuple[_Disjunct, ...] | list[_Disjunct]:
        disjuncts: tuple[_Disjunct, ...] | list[_Disjunct] = _ANYTHING
        for operand in node.operands:
            more = self._disjuncts(operand, paths)
            # Leaving an operand out allows more, which is safe.
            if more is not _ANYTHING and len(disjuncts) * len(more) <= DISJUNCTS_MAX:
                disjuncts = [
                    merged
                    for disjunct in disjuncts
                    for other in more
                    if (merged := _merge(disjunct, other)) is not None
                ]
        return disjuncts

    def _disjuncts_of_or(
        self, node: tree.Or, paths: frozenset[PropertyPath]
    ) -> tuple[_Disjunct, ...] | list[_Disjunct]:
        disjuncts: list[_Disjunct] = []
        for operand in node.operands:
            more = self._disjuncts(operand, paths)
            if more is _ANYTHING or len(disjuncts) + len(more) > DISJUNCTS_MAX:
                return _ANYTHING
            disjuncts.extend(more)
        return disjuncts

    # --- one predicate ----------------------------------------------------------------------------------------------

    def _values_allowed(self, node: Expression) -> tuple[PropertyPath | None, list[object]]:
        """Return the path that a predicate tests and the only values that make it true; no path for other forms."""
        match node:
            case tree.Path():
                return self._property_path(node), [True]
            case tree.Unary(operator="NOT", operand=operand):
                return self._values_when(operand, False)
            case tree.Binary(operator="=", left=left, right=right):
                return self._values_of_equality(left, right)
            case tree.In(needle=tree.Path() as needle, haystack=haystack, negated=False) if all(
                map(is_constant, haystack)
            ):
                return self._property_path(needle), list(self._defined_constants(haystack))
            case tree.Call():
                return self._values_when(node, True)
            case _:
                return None, []

    def _values_of_equality(self, left: Expression, right: Expression) -> tuple[PropertyPath | None, list[object]]:
        tested, other = (left, right) if is_constant(right) else (right, left)
        if not is_constant(other):
            return None, []
        constant = self._compiler.constant(other)
        if isinstance(tested, tree.Path):
            return self._property_path(tested), [] if constant is UNDEFINED else [constant]
        return self._values_when(tested, constant)

    def _values_when(self, tested: Expression, result: object) -> tuple[PropertyPath | None, list[object]]:
        """Return a path and its values for which a test of it has this `result`."""
        match tested:
            case tree.Path() if result is False:
                return self._property_path(tested), [False]
            case tree.Call(name="IS_DEFINED", arguments=(tree.Path() as path,), is_udf=False) if result is False:
                return self._property_path(path), [UNDEFINED]
            case tree.Call(name="IS_NULL", arguments=(tree.Path() as path,), is_udf=False) if result is True:
                return self._property_path(path), [None]
            case _:
                return None, []

    def _defined_constants(self, nodes: tuple[Expression, ...]) -> Iterator[object]:
        for node in nodes:
            value = self._compiler.constant(node)
            if value is not UNDEFINED:
                yield value

    def _property_path(self, path: tree.Path) -> PropertyPath | None:
        return property_path(self._scope, path)


def _merge(left: _Disjunct, right: _Disjunct) -> _Disjunct | None:
    """Return the conjunction of two disjuncts, or None if they need different values at a path."""
    for path, value in right.items():
        if path in left and not values_equal(left[path], value):
            return None
    return {**left, **right}


def _longest_prefix(disjunct: _Disjunct, paths: tuple[PropertyPath, ...]) -> PartitionKeyTuple:
    prefix = []
    for path in paths:
        if path not in disjunct:
            break
        prefix.append(disjunct[path])
    return tuple(prefix)


def _identity(key: PartitionKeyTuple) -> object:
    """Return a value that is equal for keys of the same partition: for 1 and 1.0, not for 1 and true."""
    return tuple(sort_key(value) for value in key)


def _is_covered(key: PartitionKeyTuple, keys: dict[object, PartitionKeyTuple]) -> bool:
    """Return whether a shorter prefix among `keys` covers `key`."""
    return any(_identity(key[:length]) in keys for length in range(1, len(key)))
