"""The conditions of a filter that an index can use, read from its tree."""

from __future__ import annotations

from typing import Final, cast

from asterism.languages.cosmos_sql.compiling.expression_compiler import ExpressionCompiler, is_constant
from asterism.languages.cosmos_sql.compiling.scope import Scope, property_path
from asterism.languages.cosmos_sql.compiling.semantics import is_number, is_primitive
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.tree import Expression
from asterism.models.documents.indexes.cells import Cap, boxes_of, region_of
from asterism.reading.conditions import (
    AllOf,
    AnyOf,
    ArrayHolds,
    Comparison,
    Condition,
    Defined,
    OneOf,
    Operator,
    Prefix,
    PropertyPath,
    Touches,
    Unrestricted,
    Unsatisfiable,
)
from asterism.values.json.order import as_double
from asterism.values.undefined import UNDEFINED

_UNRESTRICTED: Final = Unrestricted()
_UNSATISFIABLE: Final = Unsatisfiable()
_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Beyond this distance an index could leave out almost no place on Earth.
DISTANCE_METERS_MAX: Final = 5_000_000.0
# Tests that are false for undefined values.
_TYPE_TEST_NAMES = """
    IS_ARRAY IS_BOOL IS_DEFINED IS_FINITE_NUMBER IS_INTEGER IS_NUMBER IS_OBJECT IS_PRIMITIVE IS_STRING
"""
_TYPE_TESTS: Final = frozenset(_TYPE_TEST_NAMES.split())


def index_conditions(where: Expression | None, scope: Scope) -> Condition:
    """Return conditions that every item that passes the filter meets."""
    return _UNRESTRICTED if where is None else _Reader(scope).condition(where)


def exact_conditions(where: Expression | None, scope: Scope) -> Condition | None:
    """Return conditions that exactly the items that pass the filter meet, or None if they are weaker."""
    reader = _Reader(scope)
    condition = _UNRESTRICTED if where is None else reader.condition(where)
    return condition if reader.is_exact else None


class _Reader:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._compiler = ExpressionCompiler(scope)
        # True while all conditions are equivalent to their part of the filter.
        self.is_exact = True

    def _inexact(self, condition: Condition) -> Condition:
        """Return a condition that items that do not pass may meet too."""
        self.is_exact = False
        return condition

    def condition(self, node: Expression) -> Condition:
        if is_constant(node):
            return _UNRESTRICTED if self._constant(node) is True else _UNSATISFIABLE
        match node:
            case tree.And(operands=operands):
                return _all([self.condition(operand) for operand in operands])
            case tree.Or(operands=operands):
                return _any([self.condition(operand) for operand in operands])
            case tree.Path():
                return self._comparison(node, "=", True)
            case tree.Unary(operator="NOT", operand=tree.Path() as path):
                return self._comparison(path, "=", False)
            case tree.Unary(operator="NOT", operand=tree.Unary(operator="NOT", operand=operand)):
                return self.condition(operand)
            case tree.Binary():
                return self._binary(node)
            case tree.In(needle=tree.Path() as path):
                return self._in(node, path)
            case tree.Between(value=tree.Path() as path):
                return self._between(node, path)
            case tree.Like(value=tree.Path() as path):
                return self._like(node, path)
            case tree.Call(name="ST_WITHIN" | "ST_INTERSECTS", arguments=(left, right), is_udf=False):
                return self._touches(left, right, meters=0.0)
            case tree.Call(arguments=(tree.Path() as path, *_), is_udf=False):
                return self._call(node, path)
            case _:
                return self._inexact(_UNRESTRICTED)

    # --- operators --------------------------------------------------------------------------------------------------

    def _binary(self, node: tree.Binary) -> Condition:
        operator = node.operator
        for tested, other, symbol in (
            (node.left, node.right, operator),
            (node.right, node.left, _MIRRORED.get(operator, operator)),
        ):
            if not is_constant(other):
                continue
            constant = self._constant(other)
            if operator == "=" and constant is True:
                return self.condition(tested)
            if _is_distance(tested) and symbol in ("<", "<=") and is_number(constant):
                return self._touches(*cast(tree.Call, tested).arguments, meters=as_double(cast(float, constant)))
            if isinstance(tested, tree.Path) and symbol in _MIRRORED:
                return self._comparison(tested, cast(Operator, symbol), constant)
            if isinstance(tested, tree.Path) and symbol == "!=":
                return self._inexact(self._defined(tested))
        return self._inexact(_UNRESTRICTED)

    def _comparison(self, path: tree.Path, operator: Operator, constant: object) -> Condition:
        place = self._place(path)
        if constant is UNDEFINED or constant != constant or (operator != "=" and not is_primitive(constant)):
            return _UNSATISFIABLE
        if place is None:
            return self._inexact(_UNRESTRICTED)
        return Comparison(place, operator, constant) if is_primitive(constant) else self._inexact(Defined(place))

    def _in(self, node: tree.In, path: tree.Path) -> Condition:
        place = self._place(path)
        if place is None:
            return self._inexact(_UNRESTRICTED)
        if node.negated or not all(map(is_constant, node.haystack)):
            return self._inexact(Defined(place))
        values = [
            value for element in node.haystack if (value := self._constant(element)) is not UNDEFINED and value == value
        ]
        if not values:
            return _UNSATISFIABLE
        return OneOf(place, tuple(values)) if all(map(is_primitive, values)) else self._inexact(Defined(place))

    def _between(self, node: tree.Between, path: tree.Path) -> Condition:
        if node.negated:
            return self._inexact(self._defined(path))
        bounds: list[tuple[Operator, Expression]] = [(">=", node.low), ("<=", node.high)]
        found = [
            self._comparison(path, symbol, self._constant(bound)) for symbol, bound in bounds if is_constant(bound)
        ]
        if len(found) < len(bounds):
            return self._inexact(_all([self._defined(path), *found]))
        return _all(found)

    def _like(self, node: tree.Like, path: tree.Path) -> Condition:
        place = self._place(path)
        if place is None:
            return self._inexact(_UNRESTRICTED)
        pattern = self._constant(node.pattern) if is_constant(node.pattern) else None
        if node.negated or not isinstance(pattern, str):
            return self._inexact(Defined(place))
        prefix = _literal_prefix(pattern, node.escape)
        return Prefix(place, prefix) if pattern == prefix + "%" else self._inexact(Prefix(place, prefix))

    # --- functions --------------------------------------------------------------------------------------------------

    def _call(self, node: tree.Call, path: tree.Path) -> Condition:
        place = self._place(path)
        if place is None or (node.name not in _TYPE_TESTS and node.name not in _FUNCTIONS_READ):
            return self._inexact(_UNRESTRICTED)
        if node.name == "IS_NULL":
            return Comparison(place, "=", None)
        if node.name == "IS_DEFINED":
            return Defined(place)
        if node.name in _TYPE_TESTS or len(node.arguments) < 2 or not all(map(is_constant, node.arguments[1:])):
            return self._inexact(Defined(place))
        value, *switch = (self._constant(argument) for argument in node.arguments[1:])
        # The third argument makes the test looser: it ignores case, or compares parts of objects.
        is_exact = not switch or switch[0] is False
        if node.name == "STARTSWITH" and is_exact and isinstance(value, str):
            return Prefix(place, value)
        if node.name == "ARRAY_CONTAINS" and is_exact and is_primitive(value):
            return ArrayHolds(place, value)
        return self._inexact(Defined(place))

    def _touches(self, left: Expression, right: Expression, *, meters: float) -> Condition:
        """Return the condition of a test that is true only for geometries so near to each other, one of them a path."""
        path, other = (left, right) if isinstance(left, tree.Path) else (right, left)
        if not isinstance(path, tree.Path) or not is_constant(other):
            return self._inexact(_UNRESTRICTED)
        place, region = self._place(path), region_of(self._constant(other))
        if place is None or not isinstance(region, Cap) or not 0.0 <= meters <= DISTANCE_METERS_MAX:
            return self._inexact(_UNRESTRICTED)
        return self._inexact(Touches(place, boxes_of(region.widened(meters))))

    # --- parts ------------------------------------------------------------------------------------------------------

    def _defined(self, path: tree.Path) -> Condition:
        place = self._place(path)
        return _UNRESTRICTED if place is None else Defined(place)

    def _place(self, path: tree.Path) -> PropertyPath | None:
        return property_path(self._scope, path)

    def _constant(self, node: Expression) -> object:
        return self._compiler.constant(node)


_FUNCTIONS_READ: Final = frozenset({"IS_NULL", "STARTSWITH", "ARRAY_CONTAINS"})


def _is_distance(node: Expression) -> bool:
    return isinstance(node, tree.Call) and node.name == "ST_DISTANCE" and not node.is_udf and len(node.arguments) == 2


def _all(conditions: list[Condition]) -> Condition:
    if _UNSATISFIABLE in conditions:
        return _UNSATISFIABLE
    needed = [condition for condition in conditions if condition != _UNRESTRICTED]
    flat = [
        part
        for condition in needed
        for part in (condition.conditions if isinstance(condition, AllOf) else (condition,))
    ]
    return AllOf(tuple(flat)) if len(flat) > 1 else (flat[0] if flat else _UNRESTRICTED)


def _any(conditions: list[Condition]) -> Condition:
    if _UNRESTRICTED in conditions:
        return _UNRESTRICTED
    possible = [condition for condition in conditions if condition != _UNSATISFIABLE]
    flat = [
        part
        for condition in possible
        for part in (condition.conditions if isinstance(condition, AnyOf) else (condition,))
    ]
    return AnyOf(tuple(flat)) if len(flat) > 1 else (flat[0] if flat else _UNSATISFIABLE)


def _literal_prefix(pattern: str, escape: str | None) -> str:
    """Return the prefix of every string that matches a LIKE pattern."""
    prefix = []
    position = 0
    while position < len(pattern) and pattern[position] not in "%_[":
        if pattern[position] == escape:
            break
        prefix.append(pattern[position])
        position += 1
    return "".join(prefix)
