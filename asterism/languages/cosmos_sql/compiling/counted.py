"""Metered construction of values: lists, objects, and results of functions.

Only values that can grow are counted. A path or a comparison makes no value, and a few parts of the item together are
not larger than a few items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from asterism.languages.cosmos_sql.functions.costs import (
    ELEMENT_BYTES_OF_CALLS,
    PARSING_CALLS,
    STEPS_OF_CALLS,
    pair_steps,
)
from asterism.reading.limits import QueryMeter
from asterism.reading.row_source import Evaluator
from asterism.values.undefined import UNDEFINED

# Constructors and calls with more parts than this are always counted.
PARTS_UNCOUNTED_MAX: Final = 8
_VECTOR_ELEMENTS_PER_STEP: Final = 50
# An entry of a list or an object, with a small value.
_PART_BYTES: Final = 64
_ELEMENT_BYTES: Final = 16
# Shorter texts cost less than their counting; most filters have only these.
_CHARACTERS_UNCOUNTED_MAX: Final = 256


def counted_list(elements: list[Evaluator], item: dict[str, object], meter: QueryMeter) -> list[object]:
    found: list[object] = []
    for element in elements:
        value = element(item)
        if value is not UNDEFINED:
            meter.build(_PART_BYTES + (len(value) if type(value) is str else 0))
            found.append(value)
    return found


def counted_object(
    properties: list[tuple[str, Evaluator]], item: dict[str, object], meter: QueryMeter
) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, evaluate in properties:
        value = evaluate(item)
        if value is not UNDEFINED:
            meter.build(_PART_BYTES + (len(value) if type(value) is str else 0))
            found[name] = value
    return found


def counted_call(
    name: str, run: Callable[..., object], arguments: list[Evaluator], meter: QueryMeter, text: str | None = None
) -> Evaluator:
    """Return a call whose work is metered before it is made, and whose result is counted after. `text` is the second of
    two arguments if it is the same for all items, as in most filters."""
    steps = STEPS_OF_CALLS.get(name, pair_steps)
    element_bytes = ELEMENT_BYTES_OF_CALLS.get(name, _ELEMENT_BYTES)
    parses = name in PARSING_CALLS

    def call(values: list[object]) -> object:
        meter.spend(steps(*values))
        result = run(*values)
        if type(result) is str:
            if len(result) > _CHARACTERS_UNCOUNTED_MAX:
                meter.build(len(result))
        elif parses:
            meter.build_value(result)
        elif type(result) is list:
            meter.build(element_bytes * len(result))
        return result

    if len(arguments) == 2 and text is not None:
        return _call_with_text(run, arguments[0], text, call)
    if len(arguments) == 2:
        return _call_with_two(run, arguments[0], arguments[1], call)
    if len(arguments) <= PARTS_UNCOUNTED_MAX:
        return lambda item: call([argument(item) for argument in arguments])

    def call_with_many(item: dict[str, object]) -> object:
        values: list[object] = []
        for argument in arguments:
            value = argument(item)
            meter.build(_PART_BYTES + (len(value) if type(value) is str else 0))
            values.append(value)
        return call(values)

    return call_with_many


def counted_comparison(
    operation: Callable[[object, object], object], left: Evaluator, right: Evaluator, meter: QueryMeter
) -> Evaluator:
    """Return a metered comparison of whole values; arrays and objects are compared part by part."""

    def evaluate(item: dict[str, object]) -> object:
        value, other = left(item), right(item)
        if type(value) is list or type(value) is dict:
            meter.spend_on_parts(value)
        return operation(value, other)

    return evaluate


def counted_vector(evaluate: Evaluator, meter: QueryMeter) -> Evaluator:
    """Return a metered reader of a vector whose distance to another is computed."""

    def vector(item: dict[str, object]) -> object:
        value = evaluate(item)
        if type(value) is list:
            meter.spend(1 + len(value) // _VECTOR_ELEMENTS_PER_STEP)
        return value

    return vector


def _call_with_two(
    run: Callable[..., object], first: Evaluator, second: Evaluator, call: Callable[[list[object]], object]
) -> Evaluator:
    def evaluate(item: dict[str, object]) -> object:
        text, other = first(item), second(item)
        if type(text) is str and type(other) is str and len(text) + len(other) < _CHARACTERS_UNCOUNTED_MAX:
            return run(text, other)
        return call([text, other])

    return evaluate


def _call_with_text(
    run: Callable[..., object], first: Evaluator, text: str, call: Callable[[list[object]], object]
) -> Evaluator:
    characters_max = _CHARACTERS_UNCOUNTED_MAX - len(text)

    def evaluate(item: dict[str, object]) -> object:
        value = first(item)
        return run(value, text) if type(value) is str and len(value) < characters_max else call([value, text])

    return evaluate
