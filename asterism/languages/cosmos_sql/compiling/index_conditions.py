"""The conditions that an index can use of a filter, read from its tree."""

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
    Everything,
    Nothing,
    OneOf,
    Operator,
    Prefix,
    PropertyPath,
    Touches,
)
from asterism.values.json.order import as_double
from asterism.values.undefined import UNDEFINED

_EVERYTHING: Final = Everything()
_NOTHING: Final = Nothing()
_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Beyond this there is nothing on Earth, or nearly so, that an index could leave out.
DISTANCE_METRES_MAX: Final = 5_000_000.0
# Tests that are false of what is undefined.
_TYPE_TEST_NAMES = """
    IS_ARRAY IS_BOOL IS_DEFINED IS_FINITE_NUMBER IS_INTEGER IS_NUMBER IS_OBJECT IS_PRIMITIVE IS_STRING
"""
_TYPE_TESTS: Final = frozenset(_TYPE_TEST_NAMES.split())


def index_conditions(where: Expression | None, scope: Scope) -> Condition:
    """Return conditions that every item meets that passes the filter."""
    return _EVERYTHING if where is None else _Reader(scope).condition(where)


def exact_conditions(where: Expression | None, scope: Scope) -> Condition | None:
    """Return conditions that those items meet that pass the filter and no others, or None if they say less than it."""
    reader = _Reader(scope)
    condition = _EVERYTHING if where is None else reader.condition(where)
    return condition if reader.is_exact else None


class _Reader:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._compiler = ExpressionCompiler(scope)
        # Whether all conditions that were read say the same as their part of the filter.
        self.is_exact = True

    def _wider(self, condition: Condition) -> Condition:
        """Return a condition that items may meet that do not pass."""
        self.is_exact = False
        return condition

    def condition(self, node: Expression) -> Condition:
        if is_constant(node):
            return _EVERYTHING if self._constant(node) is True else _NOTHING
        match node:
            case tree.And(operands=operands):
                return _all([self.condition(operand) for operand in operands])
            case tree.Or(operands=operands):
                return _any([self.condition(operand) for operand in operands])
            case tree.Path():
                return self._compared(node, "=", True)
            case tree.Unary(operator="NOT", operand=tree.Path() as path):
                return self._compared(path, "=", False)
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
                return self._touches(left, right, metres=0.0)
            case tree.Call(arguments=(tree.Path() as path, *_), is_udf=False):
                return self._call(node, path)
            case _:
                return self._wider(_EVERYTHING)

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
                return self._touches(*cast(tree.Call, tested).arguments, metres=as_double(cast(float, constant)))
            if isinstance(tested, tree.Path) and symbol in _MIRRORED:
                return self._compared(tested, cast(Operator, symbol), constant)
            if isinstance(tested, tree.Path) and symbol == "!=":
                return self._wider(self._defined(tested))
        return self._wider(_EVERYTHING)

    def _compared(self, path: tree.Path, operator: Operator, constant: object) -> Condition:
        place = self._place(path)
        if constant is UNDEFINED or constant != constant or (operator != "=" and not is_primitive(constant)):
            return _NOTHING
        if place is None:
            return self._wider(_EVERYTHING)
        return Comparison(place, operator, constant) if is_primitive(constant) else self._wider(Defined(place))

    def _in(self, node: tree.In, path: tree.Path) -> Condition:
        place = self._place(path)
        if place is None:
            return self._wider(_EVERYTHING)
        if node.negated or not all(map(is_constant, node.haystack)):
            return self._wider(Defined(place))
        values = [
            value for straw in node.haystack if (value := self._constant(straw)) is not UNDEFINED and value == value
        ]
        if not values:
            return _NOTHING
        return OneOf(place, tuple(values)) if all(map(is_primitive, values)) else self._wider(Defined(place))

    def _between(self, node: tree.Between, path: tree.Path) -> Condition:
        if node.negated:
            return self._wider(self._defined(path))
        bounds: list[tuple[Operator, Expression]] = [(">=", node.low), ("<=", node.high)]
        found = [self._compared(path, symbol, self._constant(bound)) for symbol, bound in bounds if is_constant(bound)]
        if len(found) < len(bounds):
            return self._wider(_all([self._defined(path), *found]))
        return _all(found)

    def _like(self, node: tree.Like, path: tree.Path) -> Condition:
        place = self._place(path)
        if place is None:
            return self._wider(_EVERYTHING)
        pattern = self._constant(node.pattern) if is_constant(node.pattern) else None
        if node.negated or not isinstance(pattern, str):
            return self._wider(Defined(place))
        prefix = _literal_prefix(pattern, node.escape)
        return Prefix(place, prefix) if pattern == prefix + "%" else self._wider(Prefix(place, prefix))

    # --- functions --------------------------------------------------------------------------------------------------

    def _call(self, node: tree.Call, path: tree.Path) -> Condition:
        place = self._place(path)
        if place is None or (node.name not in _TYPE_TESTS and node.name not in _FUNCTIONS_READ):
            return self._wider(_EVERYTHING)
        if node.name == "IS_NULL":
            return Comparison(place, "=", None)
        if node.name == "IS_DEFINED":
            return Defined(place)
        if node.name in _TYPE_TESTS or len(node.arguments) < 2 or not all(map(is_constant, node.arguments[1:])):
            return self._wider(Defined(place))
        value, *switch = (self._constant(argument) for argument in node.arguments[1:])
        # The third argument makes the test a looser one: letters of any case, a part of an object.
        is_exact = not switch or switch[0] is False
        if node.name == "STARTSWITH" and is_exact and isinstance(value, str):
            return Prefix(place, value)
        if node.name == "ARRAY_CONTAINS" and is_exact and is_primitive(value):
            return ArrayHolds(place, value)
        return self._wider(Defined(place))

    def _touches(self, left: Expression, right: Expression, *, metres: float) -> Condition:
        """For a test that is true only of geometries that are so near to each other; one of them must be a path."""
        path, other = (left, right) if isinstance(left, tree.Path) else (right, left)
        if not isinstance(path, tree.Path) or not is_constant(other):
            return self._wider(_EVERYTHING)
        place, region = self._place(path), region_of(self._constant(other))
        if place is None or not isinstance(region, Cap) or not 0.0 <= metres <= DISTANCE_METRES_MAX:
            return self._wider(_EVERYTHING)
        return self._wider(Touches(place, boxes_of(region.widened(metres))))

    # --- parts ------------------------------------------------------------------------------------------------------

    def _defined(self, path: tree.Path) -> Condition:
        place = self._place(path)
        return _EVERYTHING if place is None else Defined(place)

    def _place(self, path: tree.Path) -> PropertyPath | None:
        return property_path(self._scope, path)

    def _constant(self, node: Expression) -> object:
        return self._compiler.constant(node)


_FUNCTIONS_READ: Final = frozenset({"IS_NULL", "STARTSWITH", "ARRAY_CONTAINS"})


def _is_distance(node: Expression) -> bool:
    return isinstance(node, tree.Call) and node.name == "ST_DISTANCE" and not node.is_udf and len(node.arguments) == 2


def _all(conditions: list[Condition]) -> Condition:
    if _NOTHING in conditions:
        return _NOTHING
    telling = [condition for condition in conditions if condition != _EVERYTHING]
    flat = [part for one in telling for part in (one.conditions if isinstance(one, AllOf) else (one,))]
    return AllOf(tuple(flat)) if len(flat) > 1 else (flat[0] if flat else _EVERYTHING)


def _any(conditions: list[Condition]) -> Condition:
    if _EVERYTHING in conditions:
        return _EVERYTHING
    possible = [condition for condition in conditions if condition != _NOTHING]
    flat = [part for one in possible for part in (one.conditions if isinstance(one, AnyOf) else (one,))]
    return AnyOf(tuple(flat)) if len(flat) > 1 else (flat[0] if flat else _NOTHING)


def _literal_prefix(pattern: str, escape: str | None) -> str:
    """The text with which every string begins that fits a LIKE pattern."""
    prefix = []
    position = 0
    while position < len(pattern) and pattern[position] not in "%_[":
        if pattern[position] == escape:
            break
        prefix.append(pattern[position])
        position += 1
    return "".join(prefix)
