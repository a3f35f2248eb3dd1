"""Filters as functions of stored entities.

A literal is widened to the property's type (Int32 to Int64 to Double, nothing else). In any other mix of types the
property counts as less than the literal. Every comparison with a property that an entity lacks is false.
"""

from __future__ import annotations

import base64
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from asterism.languages.odata.tree import And, Compare, Comparison, Condition, Constant, IsTrue, Literal, Not, Or
from asterism.models.tables.codec import ANNOTATION, decode
from asterism.models.tables.entities import StoredEntity
from asterism.models.tables.property_types import EdmType, Kept, type_of
from asterism.values.json.text import dumps
from asterism.values.ordered_text import ordered_text
from asterism.values.ticks import ticks_of

Members = dict[str, Kept]
Test = Callable[[StoredEntity, Members], bool]

_OPERATORS: Final[dict[Comparison, Callable[[Any, Any], bool]]] = {
    Comparison.EQ: operator.eq,
    Comparison.NE: operator.ne,
    Comparison.GT: operator.gt,
    Comparison.GE: operator.ge,
    Comparison.LT: operator.lt,
    Comparison.LE: operator.le,
}
# The comparisons that hold between a property and a literal of a type that it cannot be compared with.
_TRUE_OF_LESS: Final = frozenset({Comparison.NE, Comparison.LT, Comparison.LE})

_WIDENED: Final[dict[EdmType, frozenset[EdmType]]] = {
    EdmType.INT64: frozenset({EdmType.INT32}),
    EdmType.DOUBLE: frozenset({EdmType.INT32, EdmType.INT64}),
}

# Types whose values are kept as Python compares them.
_PLAIN_TYPES: Final[dict[EdmType, type]] = {
    EdmType.STRING: str,
    EdmType.INT32: int,
    EdmType.DOUBLE: float,
    EdmType.BOOLEAN: bool,
}

_KEY_NAMES: Final = {"PartitionKey": 0, "RowKey": 1}
_NO_MEMBERS: Final[Members] = {}


@dataclass(frozen=True, slots=True)
class Matcher:
    """A compiled filter. `needles` are texts that the stored bytes of every match contain."""

    test: Test
    needles: tuple[bytes, ...]
    reads_properties: bool

    def matches(self, entity: StoredEntity) -> bool:
        properties = entity.properties
        for needle in self.needles:
            if needle not in properties:
                return False
        return self.test(entity, decode(properties) if self.reads_properties else _NO_MEMBERS)


def make_matcher(condition: Condition) -> Matcher:
    return Matcher(_test(condition), tuple(_needles(condition)), _reads_properties(condition))


def _test(condition: Condition) -> Test:
    match condition:
        case Compare(name, comparison, literal):
            return _compare(name, comparison, literal)
        case IsTrue(name):
            return lambda _, members: members.get(name) is True
        case Constant(value):
            return lambda _entity, _members: value
        case Not(inner):
            test = _test(inner)
            return lambda entity, members: not test(entity, members)
        case And(parts):
            return _first([_test(part) for part in parts], decisive=False)
        case Or(parts):
            return _first([_test(part) for part in parts], decisive=True)


def _first(tests: list[Test], *, decisive: bool) -> Test:
    """Return a test that ends with the first of `tests` that returns `decisive`, and with its opposite otherwise."""

    def test(entity: StoredEntity, members: Members) -> bool:
        for part in tests:
            if part(entity, members) is decisive:
                return decisive
        return not decisive

    return test


def _compare(name: str, comparison: Comparison, literal: Literal) -> Test:
    compare = _OPERATORS[comparison]
    value = literal.value
    if name in _KEY_NAMES:
        index = _KEY_NAMES[name]
        if literal.type is not EdmType.STRING:
            return _always(comparison in _TRUE_OF_LESS)
        if _sorts_unlike_python(str(value)):
            ordered = ordered_text(str(value))
            return lambda entity, _: compare(ordered_text(str(entity[index])), ordered)
        return lambda entity, _: compare(entity[index], value)
    if name == "Timestamp":
        if literal.type is not EdmType.DATETIME:
            return _always(comparison in _TRUE_OF_LESS)
        return lambda entity, _: compare(entity.etag_time, value)
    annotation_name = name + ANNOTATION
    plain = None if _sorts_unlike_python(str(value)) else _PLAIN_TYPES.get(literal.type)

    def test(_: StoredEntity, members: Members) -> bool:
        kept = members.get(name)
        if kept is None:
            return False
        if type(kept) is plain and annotation_name not in members:
            # Nearly every comparison: neither type needs an annotation.
            return compare(kept, value)
        annotation = members.get(annotation_name)
        return compare_kept(kept, None if annotation is None else str(annotation), comparison, literal)

    return test


def _sorts_unlike_python(text: str) -> bool:
    """Return whether Python may sort the text unlike the service, which compares UTF-16: only from U+E000 on."""
    return not text.isascii() and max(text) >= "\ue000"


def _always(answer: bool) -> Test:
    return lambda _entity, _members: answer


def compare_kept(kept: Kept, annotation: str | None, comparison: Comparison, literal: Literal) -> bool:
    """Compare a stored value with a literal."""
    kind = type_of(kept, annotation)
    if kind is not literal.type and literal.type not in _WIDENED.get(kind, ()):
        return comparison in _TRUE_OF_LESS
    if kind is EdmType.STRING and _sorts_unlike_python(str(literal.value)):
        return _OPERATORS[comparison](ordered_text(str(kept)), ordered_text(str(literal.value)))
    return _OPERATORS[comparison](_comparable(kind, kept), literal.value)


def _comparable(kind: EdmType, kept: Kept) -> object:
    match kind:
        case EdmType.INT64:
            return int(kept)
        case EdmType.DOUBLE:
            return float(kept)
        case EdmType.DATETIME:
            return ticks_of(str(kept))
        case EdmType.BINARY:
            return base64.b64decode(str(kept))
        case _:
            return kept


def comparison_count(condition: Condition) -> int:
    """Return the number of comparisons that an entity takes at most."""
    match condition:
        case Not(inner):
            return comparison_count(inner)
        case And(parts) | Or(parts):
            return sum(comparison_count(part) for part in parts)
        case _:
            return 1


def _reads_properties(condition: Condition) -> bool:
    match condition:
        case Compare(name, _, _):
            return name not in _KEY_NAMES and name != "Timestamp"
        case IsTrue():
            return True
        case Constant():
            return False
        case Not(inner):
            return _reads_properties(inner)
        case And(parts) | Or(parts):
            return any(_reads_properties(part) for part in parts)


def _needles(condition: Condition) -> set[bytes]:
    """Return texts that the bytes of an entity must contain for the condition to be true: names of properties, and
    texts compared for equality, both as they are stored."""
    match condition:
        case Compare(name, comparison, literal) if _reads_properties(condition):
            member = dumps(name) + b":"
            if comparison is Comparison.EQ and literal.type is EdmType.STRING:
                return {member + dumps(literal.value)}
            return {member}
        case IsTrue(name):
            return {dumps(name) + b":true"}
        case And(parts):
            return set[bytes]().union(*(_needles(part) for part in parts))
        case _:
            return set()
