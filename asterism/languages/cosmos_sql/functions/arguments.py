"""Checks that most functions share: an argument of the wrong type makes the result undefined, never an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from asterism.languages.cosmos_sql.compiling.semantics import is_number, json_number
from asterism.limits import MIB
from asterism.values.json.order import as_double
from asterism.values.undefined import UNDEFINED

Run = Callable[..., object]

# The result of a function is no larger than an item can be, however deep calls are nested; larger results are
# undefined. Only REPLICATE has a limit that the service documents.
RESULT_CHARACTERS_MAX: Final = 2 * MIB
RESULT_ELEMENTS_MAX: Final = 1_000_000

INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1


def of_strings(run: Run) -> Run:
    """Return `run` for strings; other arguments give undefined."""

    def checked(*values: object) -> object:
        return run(*values) if all(type(value) is str for value in values) else UNDEFINED

    return checked


def of_arrays(run: Run) -> Run:
    """Return `run` for arrays; other arguments give undefined."""

    def checked(*values: object) -> object:
        return run(*values) if all(type(value) is list for value in values) else UNDEFINED

    return checked


def of_numbers(run: Callable[..., float]) -> Run:
    """Return `run` for numbers, as doubles; other arguments, and results that are not finite, give undefined."""

    def checked(*values: object) -> object:
        if not all(is_number(value) for value in values):
            return UNDEFINED
        try:
            return json_number(run(*[as_double(cast(float, value)) for value in values]))
        except (ValueError, OverflowError, ZeroDivisionError):
            return UNDEFINED

    return checked


def integer_of(value: object) -> int | None:
    """Return `value` as a 64-bit integer, or None if it is not one."""
    if type(value) is int:
        return value if INTEGER_MIN <= value <= INTEGER_MAX else None
    if type(value) is float and value.is_integer() and INTEGER_MIN <= value <= INTEGER_MAX:
        whole = int(value)
        # The double next to the largest integer is too large by one.
        return whole if whole <= INTEGER_MAX else None
    return None


def of_integers(run: Callable[..., object]) -> Run:
    """Return `run` for 64-bit integers; other arguments give undefined."""

    def checked(*values: object) -> object:
        integers = [integer_of(value) for value in values]
        return UNDEFINED if None in integers else run(*integers)

    return checked


def bounded_text(text_parts: list[str], separator: str = "") -> object:
    """Return the joined parts; undefined if the string would be too long, checked before it is made."""
    length = sum(map(len, text_parts)) + len(separator) * max(len(text_parts) - 1, 0)
    return separator.join(text_parts) if length <= RESULT_CHARACTERS_MAX else UNDEFINED


def all_hold(results: list[object]) -> object:
    """Return the AND of results: a false decides, then an undefined."""
    if any(result is False for result in results):
        return False
    return True if all(result is True for result in results) else UNDEFINED


def any_holds(results: list[object]) -> object:
    """Return the OR of results: a true decides, then an undefined."""
    if any(result is True for result in results):
        return True
    return False if all(result is False for result in results) else UNDEFINED
