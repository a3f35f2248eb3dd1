"""What a filter says of an item before any item is read: equalities that must hold, partition keys it can have.

Both answers may say less than the filter does, never more: an item that matches the filter always agrees with them.
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

# One way in which an item can match: the values it then has at partition key paths. A filter allows a list of ways;
# an empty way says nothing, and an empty list means that no item matches.
_Way = dict[PropertyPath, object]
_ANYTHING: Final[tuple[_Way, ...]] = ({},)

# The client's own multi-item reads name up to 1,000 items in one filter. Beyond this many ways the query fans out.
WAYS_MAX: Final = 5000


class PartitionFilter:
    """Reads one query's filter; the scope gives aliases and parameters their meaning."""

    def __init__(self, where: Expression | None, scope: Scope) -> None:
        self._where = where
        self._scope = scope
        self._compiler = ExpressionCompiler(scope)

    def equalities(self) -> list[tuple[PropertyPath, object]]:
        """`path = value` for every conjunct of that form; all of them hold for an item that matches."""
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
        """Every partition key (or prefix of one) that a matching item can have; None when the filter leaves it open."""
        if self._where is None:
            return None
        keys: dict[object, PartitionKeyTuple] = {}
        for way in self._ways(self._where, frozenset(paths)):
            key = _longest_prefix(way, paths)
            if not key:
                return None
            keys.setdefault(_identity(key), key)
        return [key for key in keys.values() if not _is_covered(key, keys)]

    def _ways(self, node: Expression, paths: frozenset[PropertyPath]) -> tuple[_Way, ...] | list[_Way]:
        if isinstance(node, tree.And):
            return self._ways_of_all(node, paths)
        if isinstance(node, tree.Or):
            return self._ways_of_any(node, paths)
        if is_constant(node):
            return _ANYTHING if self._compiler.constant(node) is True else ()
        path, values = self._values_allowed(node)
        if path is None or path not in paths:
            return _ANYTHING
        # An array or object is no partition key; what the service does with such an item is left to the scan.
        if not all(is_primitive(value) or value is UNDEFINED for value in values):
            return _ANYTHING
        return [{path: value} for value in values] if len(values) <= WAYS_MAX else _ANYTHING

    def _ways_of_all(self, node: tree.And, paths: frozenset[PropertyPath]) -> tuple[_Way, ...] | list[_Way]:
        ways: tuple[_Way, ...] | list[_Way] = _ANYTHING
        for operand in node.operands:
            more = self._ways(operand, paths)
            # Leaving an operand out allows more, which is safe.
            if more is not _ANYTHING and len(ways) * len(more) <= WAYS_MAX:
                ways = [merged for one in ways for other in more if (merged := _merge(one, other)) is not None]
        return ways

    def _ways_of_any(self, node: tree.Or, paths: frozenset[PropertyPath]) -> tuple[_Way, ...] | list[_Way]:
        ways: list[_Way] = []
        for operand in node.operands:
            more = self._ways(operand, paths)
            if more is _ANYTHING or len(ways) + len(more) > WAYS_MAX:
                return _ANYTHING
            ways.extend(more)
        return ways

    # --- one predicate ----------------------------------------------------------------------------------------------

    def _values_allowed(self, node: Expression) -> tuple[PropertyPath | None, list[object]]:
        """The path that a predicate speaks of and the only values there that make it true; no path if it is another."""
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
        """The values of a path that make a test of it come out as `result`."""
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


def _merge(one: _Way, other: _Way) -> _Way | None:
    """Both ways at once; None when they want different values in one place."""
    for path, value in other.items():
        if path in one and not values_equal(one[path], value):
            return None
    return {**one, **other}


def _longest_prefix(way: _Way, paths: tuple[PropertyPath, ...]) -> PartitionKeyTuple:
    prefix = []
    for path in paths:
        if path not in way:
            break
        prefix.append(way[path])
    return tuple(prefix)


def _identity(key: PartitionKeyTuple) -> object:
    """Equal for keys that are the same partition: 1 and 1.0 are, 1 and true are not."""
    return tuple(sort_key(value) for value in key)


def _is_covered(key: PartitionKeyTuple, keys: dict[object, PartitionKeyTuple]) -> bool:
    """Whether a shorter prefix among `keys` takes in all of `key` already."""
    return any(_identity(key[:length]) in keys for length in range(1, len(key)))
