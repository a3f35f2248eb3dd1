"""The types that `P.typeOf` asks for: by token (`GType.INT`), by the simple name of Java's class, or by a class."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.numbers import is_number, number_type
from asterism.languages.gremlin.values.results import Path, Tree
from asterism.languages.gremlin.values.structures import BulkSet, MapEntry

TypeTest = Callable[[Any], bool]


def _numbers_of(name: str) -> TypeTest:
    return lambda value: is_number(value) and number_type(value) == name


def _instances_of(*bases: type) -> TypeTest:
    return lambda value: isinstance(value, bases)


def _never(_value: Any) -> bool:
    return False


# Name of the token, simple name of the class, test.
_TYPES: tuple[tuple[str, str, TypeTest], ...] = (
    ("BIGDECIMAL", "BigDecimal", _numbers_of("BigDecimal")),
    ("BIGINT", "BigInteger", _numbers_of("BigInteger")),
    ("BINARY", "ByteBuffer", _instances_of(bytes, bytearray)),
    ("BOOLEAN", "Boolean", _instances_of(bool)),
    ("BYTE", "Byte", _numbers_of("Byte")),
    # Characters arrive as texts, and graphs are not values.
    ("CHAR", "Character", _never),
    ("DATETIME", "OffsetDateTime", _instances_of(date)),
    ("DOUBLE", "Double", _numbers_of("Double")),
    ("DURATION", "Duration", _instances_of(timedelta)),
    ("EDGE", "Edge", _instances_of(Edge)),
    ("FLOAT", "Float", _numbers_of("Float")),
    ("GRAPH", "Graph", _never),
    ("INT", "Integer", _numbers_of("Integer")),
    ("LIST", "List", lambda value: isinstance(value, list | tuple) and not isinstance(value, BulkSet)),
    ("LONG", "Long", _numbers_of("Long")),
    ("MAP", "Map", _instances_of(dict)),
    ("NUMBER", "Number", is_number),
    ("PATH", "Path", _instances_of(Path)),
    # A property of a vertex is a property too.
    ("PROPERTY", "Property", _instances_of(Property, VertexProperty)),
    ("SET", "Set", _instances_of(set, frozenset, BulkSet)),
    ("SHORT", "Short", _numbers_of("Short")),
    ("STRING", "String", _instances_of(str)),
    ("TREE", "Tree", _instances_of(Tree)),
    ("UUID", "UUID", _instances_of(UUID)),
    ("VERTEX", "Vertex", _instances_of(Vertex)),
    ("VPROPERTY", "VertexProperty", _instances_of(VertexProperty)),
)
_BY_TOKEN: dict[str, TypeTest] = {token: test for token, _, test in _TYPES}
_BY_CLASS: dict[str, TypeTest] = {name: test for _, name, test in _TYPES}
CLASS_OF_TOKEN: dict[str, str] = {token: name for token, name, _ in _TYPES}

_NAMES_OF_CLASSES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "Boolean"),
    (str, "String"),
    (Tree, "Tree"),
    ((list, tuple), "ArrayList"),
    (dict, "LinkedHashMap"),
    ((set, frozenset), "LinkedHashSet"),
    (date, "OffsetDateTime"),
    (UUID, "UUID"),
    (MapEntry, "Entry"),
    ((bytes, bytearray), "ByteBuffer"),
)


def class_name(value: Any) -> str:
    """Return the simple name of the Java class of a value, for sentences."""
    if value is None:
        return "null"
    if is_number(value):
        return number_type(value)
    return next((name for bases, name in _NAMES_OF_CLASSES if isinstance(value, bases)), type(value).__name__)


def type_test(wanted: Any) -> TypeTest:
    """Return the test of `P.typeOf(wanted)`. Raises ExecutionFailure for a name that is not a type."""
    if wanted is None or (isinstance(wanted, Token) and wanted.name == "NULL"):
        return lambda value: value is None
    if isinstance(wanted, Token):
        test = _BY_TOKEN.get(wanted.name)
        name = wanted.name
    else:
        name = wanted if isinstance(wanted, str) else getattr(wanted, "name", str(wanted))
        # A class may come with its package.
        test = _BY_CLASS.get(name.removeprefix("java.lang.").rpartition(".")[2])
    if test is None:
        raise ExecutionFailure(f"{name} is not a registered type")
    return test
