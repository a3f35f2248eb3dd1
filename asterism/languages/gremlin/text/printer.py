"""The printer: a traversal as the text that the parser reads it from again, for reports about traversals and plans."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.text.names import TEXT_PREDICATES
from asterism.languages.gremlin.tree import (
    CardinalityValue,
    Instruction,
    Lambda,
    Predicate,
    Strategy,
    Token,
    Traversal,
    Variable,
)
from asterism.languages.gremlin.values.numbers import BigInteger, Byte, Float, Long, Short

_TWO_ENDS = frozenset({"inside", "outside", "between"})

_ESCAPED = re.compile(r"[\\'\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def print_traversal(traversal: Traversal) -> str:
    """Return the text of a traversal that begins at the source `g`."""
    return ".".join(["g", *map(_call, traversal.source), *map(_call, traversal.steps)])


def print_value(value: Any) -> str:
    """Return the text of an argument."""
    printer = _PRINTERS.get(type(value))
    if printer is None:
        # Classes that stand for another, such as the hashable forms of lists and maps.
        printer = next((found for base, found in _PRINTERS.items() if isinstance(value, base)), _other)
    return printer(value)


def _call(instruction: Instruction) -> str:
    if instruction.name == "tx" and len(instruction.arguments) == 1:
        return f"tx().{instruction.arguments[0]}()"
    return f"{instruction.name}({_sequence(instruction.arguments)})"


def _sequence(values: Iterable[Any]) -> str:
    return ", ".join(map(print_value, values))


def _child(traversal: Traversal) -> str:
    steps = traversal.steps or (Instruction("identity"),)
    return ".".join(["__", *map(_call, steps)])


def _string(value: str) -> str:
    return "'" + _ESCAPED.sub(_escape, value) + "'"


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}"


def _float(value: float) -> str:
    if math.isfinite(value):
        return float.__repr__(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _float_of_32_bits(value: Float) -> str:
    return _float(value) + ("f" if math.isfinite(value) else "")


def _integer(suffix: str) -> Callable[[int], str]:
    return lambda value: int.__repr__(value) + suffix


def _map(value: dict[Any, Any]) -> str:
    if not value:
        return "[:]"
    return "[" + ", ".join(f"{_key(key)}: {print_value(entry)}" for key, entry in value.items()) + "]"


def _key(key: Any) -> str:
    return _string(key) if isinstance(key, str) else f"({print_value(key)})"


def _predicate(predicate: Predicate) -> str:
    operator, value = predicate.operator, predicate.value
    if operator in ("and", "or") and isinstance(value, list) and value:
        first, *others = map(print_value, value)
        return first + "".join(f".{operator}({other})" for other in others)
    owner = "TextP" if operator in TEXT_PREDICATES else "P"
    arguments = _sequence(value) if operator in _TWO_ENDS and isinstance(value, list) else print_value(value)
    return f"{owner}.{operator}({arguments})"


def _strategy(strategy: Strategy) -> str:
    if not strategy.settings:
        return strategy.name
    settings = ", ".join(
        f"{name if name.isidentifier() else _string(name)}: {print_value(value)}"
        for name, value in strategy.settings.items()
    )
    return f"new {strategy.name}({settings})"


def _duration(value: timedelta) -> str:
    seconds = f"{value.seconds}.{value.microseconds:06}" if value.microseconds else str(value.seconds)
    return f"Duration('P{value.days}DT{seconds}S')"


def _other(value: Any) -> str:
    return _string(str(value))


_PRINTERS: dict[type, Callable[[Any], str]] = {
    str: _string,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
    Byte: _integer("b"),
    Short: _integer("s"),
    Long: _integer("L"),
    BigInteger: _integer("n"),
    Float: _float_of_32_bits,
    int: _integer(""),
    float: _float,
    Decimal: lambda value: f"{value}m",
    list: lambda value: f"[{_sequence(value)}]",
    tuple: lambda value: f"[{_sequence(value)}]",
    set: lambda value: f"{{{_sequence(value)}}}",
    frozenset: lambda value: f"{{{_sequence(value)}}}",
    dict: _map,
    Traversal: _child,
    Variable: lambda value: value.name,
    Token: lambda value: f"{value.kind}.{value.name}",
    Predicate: _predicate,
    CardinalityValue: lambda value: f"Cardinality.{value.cardinality}({print_value(value.value)})",
    Strategy: _strategy,
    Lambda: lambda value: f"Lambda.function({_string(value.text)})",
    datetime: lambda value: f"datetime('{value.isoformat()}')",
    timedelta: _duration,
    UUID: lambda value: f"UUID('{value}')",
    # Elements come with bytecode; a text names them by their ids.
    **{kind: lambda value: print_value(value.id) for kind in (Vertex, Edge, VertexProperty)},
    Property: lambda value: print_value(value.value),
}
