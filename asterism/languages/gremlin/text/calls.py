"""Calls within arguments that make a value: predicates, dates, UUIDs, durations, values with a cardinality."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from asterism.languages.gremlin.text.literals import LiteralFailure, read_datetime, read_duration, read_uuid
from asterism.languages.gremlin.text.names import NOT, PREDICATES, TEXT_PREDICATES
from asterism.languages.gremlin.tree import NOW, RANDOM_UUID, CardinalityValue, Predicate, Token, Variable

Arguments = tuple[Any, ...]


class UnfitArguments(Exception):
    """Arguments that no form of a function takes; the parser says so with name and place."""


# Types that predicates of some names ask for.
_FITTING: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(TEXT_PREDICATES, (str, type(None), Variable)),
    "typeOf": (Token, str, Variable),
}


def make_predicate(name: str, arguments: Arguments) -> Predicate:
    """Return the predicate of a call."""
    if name == NOT:
        if len(arguments) != 1 or not isinstance(arguments[0], Predicate | Variable):
            raise UnfitArguments
        return Predicate(NOT, arguments[0])
    count = PREDICATES[name]
    if count == 1:
        if len(arguments) != 1 or not isinstance(arguments[0], _FITTING.get(name, object)):
            raise UnfitArguments
        return Predicate(name, arguments[0])
    if count is None and len(arguments) == 1:
        # A list stands for its members. So may a variable, which the binding of values decides.
        argument = arguments[0]
        if isinstance(argument, list | set):
            return Predicate(name, list(argument))
        return Predicate(name, argument if isinstance(argument, Variable) else [argument])
    if count is not None and len(arguments) != count:
        raise UnfitArguments
    return Predicate(name, list(arguments))


def connect(connective: str, left: Predicate, arguments: Arguments) -> Predicate:
    """Return `left.and(...)`, `left.or(...)` or `left.negate()`.

    Chains of the same connective stay flat, so that their length makes no deep tree.
    """
    if connective == "negate":
        if arguments:
            raise UnfitArguments
        return left.value if left.operator == NOT and isinstance(left.value, Predicate) else Predicate(NOT, left)
    if len(arguments) != 1 or not isinstance(arguments[0], Predicate | Variable):
        raise UnfitArguments
    if left.operator != connective:
        return Predicate(connective, [left, arguments[0]])
    # Made by this function for the same chain, so nothing else has it yet.
    left.value.append(arguments[0])
    return left


def _text(arguments: Arguments) -> str:
    if len(arguments) != 1 or not isinstance(arguments[0], str):
        raise UnfitArguments
    return arguments[0]


def _of_text(read: Callable[[str], Any], *, otherwise: Any = None) -> Callable[[Arguments], Any]:
    def call(arguments: Arguments) -> Any:
        if not arguments and otherwise is not None:
            return otherwise
        return read(_text(arguments))

    return call


def _generated(value: Variable) -> Callable[[Arguments], Variable]:
    def call(arguments: Arguments) -> Variable:
        if arguments:
            raise UnfitArguments
        return value

    return call


def _with_cardinality(cardinality: str) -> Callable[[Arguments], CardinalityValue]:
    def call(arguments: Arguments) -> CardinalityValue:
        if len(arguments) != 1:
            raise UnfitArguments
        return CardinalityValue(cardinality, arguments[0])

    return call


def _duration_of(unit: str) -> Callable[[Arguments], timedelta]:
    def call(arguments: Arguments) -> timedelta:
        if len(arguments) != 1 or type(arguments[0]) is bool or not isinstance(arguments[0], int):
            raise UnfitArguments
        try:
            return timedelta(**{unit: int(arguments[0])})
        except OverflowError:
            raise LiteralFailure(f"A duration of {arguments[0]} {unit} is too long") from None

    return call


_DATE_CLASSES = ("OffsetDateTime", "Instant", "DatetimeHelper", "ZonedDateTime")
_DURATIONS = {
    "ofDays": "days",
    "ofHours": "hours",
    "ofMinutes": "minutes",
    "ofSeconds": "seconds",
    "ofMillis": "milliseconds",
}

# By their name, or by class and name.
FUNCTIONS: dict[str, Callable[[Arguments], Any]] = {
    "datetime": _of_text(read_datetime, otherwise=NOW),
    "DateTime": _of_text(read_datetime, otherwise=NOW),
    "UUID": _of_text(read_uuid, otherwise=RANDOM_UUID),
    "UUID.fromString": _of_text(read_uuid),
    "UUID.randomUUID": _generated(RANDOM_UUID),
    "Duration": _of_text(read_duration),
    "Duration.parse": _of_text(read_duration),
    **{f"Duration.{name}": _duration_of(unit) for name, unit in _DURATIONS.items()},
    **{f"{name}.parse": _of_text(read_datetime) for name in _DATE_CLASSES},
    **{f"{name}.now": _generated(NOW) for name in _DATE_CLASSES},
    **{
        f"{prefix}{name}": _with_cardinality(name)
        for name in ("single", "list", "set")
        for prefix in ("", "Cardinality.")
    },
}

# Methods of builders that add to a setting of another name.
_SETTINGS = {"addReadPartition": "readPartitions"}
_LISTS = frozenset({"readPartitions", "includeSystemProperties"})


def add_setting(settings: dict[str, Any], method: str, arguments: Arguments) -> None:
    """Add a call on a builder of a strategy to its settings; `IncludeSystemProperties` is `includeSystemProperties`."""
    name = method[:1].lower() + method[1:]
    name = _SETTINGS.get(name, name)
    if name in _LISTS:
        is_list = len(arguments) == 1 and isinstance(arguments[0], list | set)
        settings[name] = [*settings.get(name, ()), *(arguments[0] if is_list else arguments)]
    else:
        settings[name] = True if not arguments else arguments[0] if len(arguments) == 1 else list(arguments)
