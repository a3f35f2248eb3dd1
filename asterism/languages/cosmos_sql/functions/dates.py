"""Functions of dates, which are strings in a form of ISO 8601 in UTC; other arguments give undefined."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from asterism.languages.cosmos_sql.functions.arguments import Run, bounded_text, integer_of
from asterism.languages.cosmos_sql.functions.context import EvaluationContext
from asterism.languages.cosmos_sql.functions.date_format import format_date_time
from asterism.languages.cosmos_sql.functions.date_text import (
    TICKS_MAX,
    TICKS_MIN,
    TICKS_PER_MILLISECOND,
    TICKS_PER_SECOND,
    DateTimeParts,
    date_time_text,
    parse_date_time,
    parts_of_ticks,
    ticks_of_parts,
)
from asterism.languages.cosmos_sql.functions.function import Function
from asterism.values.undefined import UNDEFINED

_NANOSECONDS_PER_TICK = 100
# A bin cannot start before the epoch of Windows file times, 1601-01-01.
_BIN_START_TICKS_MIN = -116_444_736_000_000_000


class Part(Enum):
    YEAR = ("year", "yyyy", "yy")
    MONTH = ("month", "mm", "m")
    DAY = ("day", "dd", "d")
    HOUR = ("hour", "hh")
    MINUTE = ("minute", "mi", "n")
    SECOND = ("second", "ss", "s")
    MILLISECOND = ("millisecond", "ms")
    MICROSECOND = ("microsecond", "mcs")
    NANOSECOND = ("nanosecond", "ns")


_PARTS_BY_NAME: Final = {name: part for part in Part for name in part.value}
# Years and months have no fixed length.
_NANOSECONDS: Final = {
    Part.DAY: 86_400_000_000_000,
    Part.HOUR: 3_600_000_000_000,
    Part.MINUTE: 60_000_000_000,
    Part.SECOND: 1_000_000_000,
    Part.MILLISECOND: 1_000_000,
    Part.MICROSECOND: 1_000,
    Part.NANOSECOND: 1,
}
_NUMBER_OF_PART: Final[dict[Part, Callable[[DateTimeParts], int]]] = {
    Part.YEAR: lambda at: at.year,
    Part.MONTH: lambda at: at.month,
    Part.DAY: lambda at: at.day,
    Part.HOUR: lambda at: at.hour,
    Part.MINUTE: lambda at: at.minute,
    Part.SECOND: lambda at: at.second,
    Part.MILLISECOND: lambda at: at.fraction // TICKS_PER_MILLISECOND,
    Part.MICROSECOND: lambda at: at.fraction // 10,
    Part.NANOSECOND: lambda at: at.fraction * _NANOSECONDS_PER_TICK,
}


def _part(name: object) -> Part | None:
    return _PARTS_BY_NAME.get(name.lower()) if isinstance(name, str) else None


def _ticks(text: object) -> int | None:
    return parse_date_time(text) if isinstance(text, str) else None


def _text(ticks: int | None) -> object:
    return date_time_text(ticks) if ticks is not None and TICKS_MIN <= ticks <= TICKS_MAX else UNDEFINED


# --- arithmetic -----------------------------------------------------------------------------------------------------


def _add_parts(ticks: int | None, part_name: object, count: object) -> int | None:
    """Return `ticks` with `count` parts added; a day that the month does not have becomes the month's last."""
    part, number = _part(part_name), integer_of(count)
    if ticks is None or part is None or number is None:
        return None
    if part in _NANOSECONDS:
        nanoseconds = number * _NANOSECONDS[part]
        # Less than a tick adds nothing, in either direction.
        whole_ticks = abs(nanoseconds) // _NANOSECONDS_PER_TICK
        return ticks + (whole_ticks if nanoseconds >= 0 else -whole_ticks)
    return _add_months(parts_of_ticks(ticks), number * 12 if part is Part.YEAR else number)


def _add_months(at: DateTimeParts, count: int) -> int | None:
    year, month_before = divmod(at.year * 12 + at.month - 1 + count, 12)
    for day in range(at.day, at.day - 4, -1):
        ticks = ticks_of_parts(
            DateTimeParts(year, month_before + 1, day, at.hour, at.minute, at.second, at.fraction),
        )
        if ticks is not None:
            return ticks
    return None


def _add(part_name: object, count: object, text: object) -> object:
    return _text(_add_parts(_ticks(text), part_name, count))


def _difference(part_name: object, start_text: object, end_text: object) -> object:
    """Return the number of times that the part changes from start to end."""
    part, start, end = _part(part_name), _ticks(start_text), _ticks(end_text)
    if part is None or start is None or end is None:
        return UNDEFINED
    if part in _NANOSECONDS:
        length = _NANOSECONDS[part]
        return end * _NANOSECONDS_PER_TICK // length - start * _NANOSECONDS_PER_TICK // length
    first, last = parts_of_ticks(start), parts_of_ticks(end)
    years = last.year - first.year
    return years if part is Part.YEAR else years * 12 + last.month - first.month


def _bin(text: object, part_name: object, size: object = 1, start_text: object = "1970-01-01") -> object:
    """Return the start of the date's bin of `size` parts, counted from `start_text`."""
    ticks, part, count, start = _ticks(text), _part(part_name), integer_of(size), _ticks(start_text)
    if ticks is None or part not in _NANOSECONDS or count is None or count <= 0:
        return UNDEFINED
    if start is None or start < _BIN_START_TICKS_MIN:
        return UNDEFINED
    length = count * _NANOSECONDS[part]
    # Dates are whole ticks, so shorter bins cannot be distinguished.
    if length < _NANOSECONDS_PER_TICK:
        return UNDEFINED
    bins = (ticks - start) * _NANOSECONDS_PER_TICK // length
    return _text(start + bins * length // _NANOSECONDS_PER_TICK)


# --- parts and numbers ----------------------------------------------------------------------------------------------


def _part_number(part_name: object, text: object) -> object:
    part, ticks = _part(part_name), _ticks(text)
    return UNDEFINED if part is None or ticks is None else _NUMBER_OF_PART[part](parts_of_ticks(ticks))


def _number_of(part: Part) -> Function:
    return Function(1, 1, lambda text: _part_number(part.value[0], text))


def _from_parts(*values: object) -> object:
    numbers = [integer_of(value) for value in values]
    whole = [number for number in numbers if number is not None]
    if len(whole) < len(values):
        return UNDEFINED
    return _text(ticks_of_parts(DateTimeParts(*whole, *[0] * (7 - len(whole)))))


def _to_ticks(text: object) -> object:
    ticks = _ticks(text)
    return UNDEFINED if ticks is None else ticks


def _to_timestamp(text: object) -> object:
    ticks = _ticks(text)
    return UNDEFINED if ticks is None else ticks // TICKS_PER_MILLISECOND


def _from_ticks(value: object) -> object:
    return _text(integer_of(value))


def _from_timestamp(value: object) -> object:
    milliseconds = integer_of(value)
    return UNDEFINED if milliseconds is None else _text(milliseconds * TICKS_PER_MILLISECOND)


def _format(text: object, pattern: object) -> object:
    ticks = _ticks(text)
    if ticks is None or type(pattern) is not str:
        return UNDEFINED
    return bounded_text([format_date_time(parts_of_ticks(ticks), pattern)])


# --- the present ----------------------------------------------------------------------------------------------------


def _now_ticks(context: EvaluationContext) -> int:
    return int(context.now_wall_seconds * TICKS_PER_SECOND)


def _now(context: EvaluationContext, *offset: object) -> object:
    """Return the present, or the present with a number of parts added; undefined for a part without a number."""
    if len(offset) == 1:
        return UNDEFINED
    ticks = _now_ticks(context)
    return _text(_add_parts(ticks, *offset) if offset else ticks)


def _ago(context: EvaluationContext, part_name: object, count: object) -> object:
    number = integer_of(count)
    return UNDEFINED if number is None else _text(_add_parts(_now_ticks(context), part_name, -number))


def _present(run: Run) -> Function:
    return Function(0, 0, run, needs_context=True)


def _running_ticks(context: EvaluationContext) -> int:
    return int(context.running_wall_seconds() * TICKS_PER_SECOND)


DATE_FUNCTIONS: Final[dict[str, Function]] = {
    "AGO": Function(2, 2, _ago, needs_context=True),
    "DATETIMEADD": Function(3, 3, _add),
    "DATETIMEBIN": Function(2, 4, _bin),
    "DATETIMEDIFF": Function(3, 3, _difference),
    "DATETIMEFORMAT": Function(2, 2, _format),
    "DATETIMEFROMPARTS": Function(3, 7, _from_parts),
    "DATETIMEPART": Function(2, 2, _part_number),
    "DATETIMETOTICKS": Function(1, 1, _to_ticks),
    "DATETIMETOTIMESTAMP": Function(1, 1, _to_timestamp),
    "DAY": _number_of(Part.DAY),
    # The static functions return the time at which the query began, the others that of each call.
    "GETCURRENTDATETIME": _present(lambda context: _text(_running_ticks(context))),
    "GETCURRENTDATETIMESTATIC": _present(lambda context: _text(_now_ticks(context))),
    "GETCURRENTTICKS": _present(_running_ticks),
    "GETCURRENTTICKSSTATIC": _present(_now_ticks),
    "GETCURRENTTIMESTAMP": _present(lambda context: _running_ticks(context) // TICKS_PER_MILLISECOND),
    "GETCURRENTTIMESTAMPSTATIC": _present(lambda context: _now_ticks(context) // TICKS_PER_MILLISECOND),
    "MONTH": _number_of(Part.MONTH),
    "NOW": Function(0, 2, _now, needs_context=True),
    "TICKSTODATETIME": Function(1, 1, _from_ticks),
    "TIMESTAMPTODATETIME": Function(1, 1, _from_timestamp),
    "YEAR": _number_of(Part.YEAR),
}
