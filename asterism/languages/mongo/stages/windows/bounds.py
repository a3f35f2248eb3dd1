"""Windows: the documents around one of a sorted partition that a function looks at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asterism.languages.mongo.expressions.date_arithmetic import shift_date
from asterism.languages.mongo.expressions.paths import read_path
from asterism.languages.mongo.expressions.time_zones import UTC_ZONE
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.integers import whole_number
from asterism.languages.mongo.stages.ordering import SortRule
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.numbers import add, is_nan
from asterism.values.bson.order import sort_key
from asterism.values.bson.types import DatetimeMS, Document

FAILED_TO_PARSE: Final = 9
UNITS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")

# The half-open range of the places of a partition's documents, for every document of it.
Frames = Sequence[tuple[int, int]]


class Unbounded:
    """The beginning or the end of the partition. There is one, compared with `is`."""

    def __repr__(self) -> str:
        return "unbounded"


UNBOUNDED: Final = Unbounded()


@dataclass(frozen=True, slots=True)
class Window:
    """The bounds of a window: numbers relative to the current document, or UNBOUNDED."""

    lower: Any = UNBOUNDED
    upper: Any = UNBOUNDED
    # True if the bounds are distances of the sort value, and not of places.
    is_range: bool = False
    unit: str | None = None

    @property
    def is_left_unbounded(self) -> bool:
        return self.lower is UNBOUNDED

    @property
    def is_whole_partition(self) -> bool:
        return self.lower is UNBOUNDED and self.upper is UNBOUNDED

    def frames(self, documents: list[Document], ordering: SortRule | None) -> Frames:
        """Return the frame of every document of a sorted partition."""
        count = len(documents)
        if self.is_whole_partition:
            return [(0, count)] * count
        if self.is_range:
            assert ordering is not None, "windows by range were checked to have an order"
            return self._range_frames(documents, ordering)
        lower = -count if self.lower is UNBOUNDED else self.lower
        upper = count if self.upper is UNBOUNDED else self.upper
        return [(min(count, max(0, place + lower)), max(0, min(count, place + upper + 1))) for place in range(count)]

    def _range_frames(self, documents: list[Document], ordering: SortRule) -> Frames:
        parts = ordering.fields[0].parts
        values = [read_path(document, parts) for document in documents]
        shift = _date_shift(self.unit) if self.unit is not None else _number_shift
        keys = [sort_key(value) for value in values]
        count = len(values)
        frames = []
        start = stop = 0
        for value in values:
            # Bounds rise with the values, so that both ends only ever move forward.
            if self.lower is UNBOUNDED:
                shift(value, 0)
            else:
                least = sort_key(shift(value, self.lower))
                while start < count and keys[start] < least:
                    start += 1
            if self.upper is UNBOUNDED:
                stop = count
            else:
                most = sort_key(shift(value, self.upper))
                while stop < count and keys[stop] <= most:
                    stop += 1
            frames.append((start, max(start, stop)))
        return frames


WHOLE_PARTITION: Final = Window()


def _number_shift(value: Any, distance: Any) -> Any:
    if type(value) is DatetimeMS:
        raise MongoFailure(5429413, "windows that involve date ranges require a 'unit'")
    if not is_number(value):
        raise MongoFailure(5429414, f"windows by range need numeric sort values, found {type_name(value)}")
    return add(value, distance)


def _date_shift(unit: str) -> Callable[[Any, Any], Any]:
    def shift(value: Any, distance: Any) -> Any:
        if type(value) is not DatetimeMS:
            raise MongoFailure(5429513, f"windows by range with a 'unit' need dates, found {type_name(value)}")
        return DatetimeMS(shift_date(int(value), unit, int(distance), UTC_ZONE))

    return shift


# --- reading ------------------------------------------------------------------------------------------------------


def parse_window(specification: Any, ordering: SortRule | None, *, is_sorted: bool) -> Window:
    """Return the window of a specification; `is_sorted` is whether the stage has a `sortBy`, be it empty."""
    if type(specification) is not dict:
        raise MongoFailure(FAILED_TO_PARSE, "'window' field must be an object")
    for name in specification:
        if name not in ("documents", "range", "unit"):
            raise MongoFailure(FAILED_TO_PARSE, f"'window' field must be 'documents', 'range' or 'unit', not '{name}'")
    if "documents" in specification:
        if "range" in specification or "unit" in specification:
            raise MongoFailure(FAILED_TO_PARSE, "Window bounds can only be by 'documents' or by 'range' with a 'unit'")
        window = _window_of(specification["documents"], "documents", _document_bound)
        if not is_sorted and not window.is_whole_partition:
            raise MongoFailure(5339901, "Document-based bounds require a sortBy")
        return window
    if "range" not in specification:
        if "unit" in specification:
            raise MongoFailure(FAILED_TO_PARSE, "Window bounds can only specify 'unit' with range-based bounds.")
        return WHOLE_PARTITION
    unit = specification.get("unit")
    if "unit" in specification and (type(unit) is not str or unit not in UNITS):
        raise MongoFailure(FAILED_TO_PARSE, f"Unknown unit of a window: {unit!r}")
    window = _window_of(specification["range"], "range", _whole_bound if unit is not None else _number_bound)
    if ordering is None or len(ordering.fields) != 1:
        raise MongoFailure(5339902, "Range-based bounds require sortBy a single field")
    if ordering.fields[0].is_descending:
        raise MongoFailure(8947401, "Range-based bounds require an ascending sortBy")
    return Window(window.lower, window.upper, is_range=True, unit=unit)


def _window_of(bounds: Any, name: str, read: Callable[[Any], Any]) -> Window:
    if type(bounds) is not list or len(bounds) != 2:
        raise MongoFailure(FAILED_TO_PARSE, f"Window bounds '{name}' must be an array of two elements")
    lower, upper = (_bound(value, read) for value in bounds)
    if not isinstance(lower, Unbounded) and not isinstance(upper, Unbounded) and sort_key(lower) > sort_key(upper):
        raise MongoFailure(5339900, f"Lower bound must not exceed upper bound: {bounds!r}")
    return Window(lower, upper)


def _bound(value: Any, read: Callable[[Any], Any]) -> Any:
    if value == "unbounded" and type(value) is str:
        return UNBOUNDED
    if value == "current" and type(value) is str:
        return 0
    return read(value)


def _document_bound(value: Any) -> int:
    place = whole_number(value)
    if place is None:
        raise MongoFailure(FAILED_TO_PARSE, "Numeric document-based bounds must be integers")
    return place


def _whole_bound(value: Any) -> int:
    distance = whole_number(value)
    if distance is None:
        raise MongoFailure(FAILED_TO_PARSE, "With 'unit', range-based bounds must be integers")
    return distance


def _number_bound(value: Any) -> Any:
    if not is_number(value) or is_nan(value):
        raise MongoFailure(FAILED_TO_PARSE, "Range-based bounds must be numbers, 'unbounded' or 'current'")
    return value
