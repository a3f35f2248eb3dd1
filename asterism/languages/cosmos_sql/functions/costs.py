"""The cost of a call, estimated from its arguments before it is made, and the size of its result.

A step is at most about a microsecond (`limits.QueryMeter`). Functions that are not listed take about the same time for
all arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Steps = Callable[..., int]

# Characters that are compared, searched or copied in a step, and characters whose case is changed, one by one at worst.
CHARACTERS_PER_STEP: Final = 1_000
_CASED_CHARACTERS_PER_STEP: Final = 50
_PARSED_CHARACTERS_PER_STEP: Final = 50
_WORD_CHARACTERS_PER_STEP: Final = 20
# Elements that are copied in a step, and elements that are compared or hashed.
_ELEMENTS_PER_STEP: Final = 100
_COMPARED_ELEMENTS_PER_STEP: Final = 2
# Steps for a corner of a geometry: to read it, to compare it with an edge of another, and to measure an edge on the
# ellipsoid.
_STEPS_PER_POSITION: Final = 4
_STEPS_PER_PAIR: Final = 4
_STEPS_PER_EDGE_MEASURED: Final = 80
# The polygons of a MultiPolygon, its rings, and their positions.
_GEOMETRY_LEVELS: Final = 4
# More positions than a geometry may have.
_POSITIONS_COUNTED_MAX: Final = 5_000
# A call of a user's function: an exchange with another process, apart from the function's own time.
UDF_STEPS: Final = 15


def _length(value: object) -> int:
    return len(value) if isinstance(value, str | list | dict) else 0


def _in_proportion(per_step: int) -> Steps:
    """Return the cost for the lengths of all arguments together."""
    return lambda *values: 1 + sum(map(_length, values)) // per_step


def _search_steps(text: object, sought: object, ignore_case: object = False) -> int:
    per_step = _CASED_CHARACTERS_PER_STEP if ignore_case is True else CHARACTERS_PER_STEP
    return 1 + (_length(text) + _length(sought)) // per_step


def _search_each(characters_per_step: int) -> Steps:
    """Return the cost of searching the text for each of the other arguments."""
    return lambda text, *sought: 1 + len(sought) + len(sought) * _length(text) // characters_per_step


def _each_in_array(array: object, *sought: object) -> int:
    """Return the cost of comparing every element with each of the other arguments, which may be large."""
    return 1 + _length(array) * sum(1 + _length(value) for value in sought) // _COMPARED_ELEMENTS_PER_STEP


def pair_steps(*values: object) -> int:
    """Return the cost of comparing or joining two values."""
    return 1 + sum(map(_length, values)) // _ELEMENTS_PER_STEP


def _terms_in_text(text: object, *terms: object) -> int:
    words = _length(text) // _WORD_CHARACTERS_PER_STEP
    phrases = sum(len(term) if isinstance(term, list) else 1 for term in terms)
    return 1 + words + phrases * (1 + words // _ELEMENTS_PER_STEP)


# --- geometries -----------------------------------------------------------------------------------------------------


def _positions(value: object) -> int:
    """Return the number of positions of a geometry: the elements of its outermost levels of lists."""
    level = [value.get("coordinates") if isinstance(value, dict) else None]
    count = 1
    for _ in range(_GEOMETRY_LEVELS):
        lists = [part for part in level if isinstance(part, list)]
        level = [part for parts in lists for part in parts[:_POSITIONS_COUNTED_MAX]]
        if not level or not isinstance(level[0], list):
            break
        count = max(count, len(level))
    return count


def _read_steps(value: object) -> int:
    return 1 + _STEPS_PER_POSITION * _positions(value)


def _area_steps(value: object) -> int:
    return 1 + (_STEPS_PER_POSITION + _STEPS_PER_EDGE_MEASURED) * _positions(value)


def _pair_of_shapes_steps(left: object, right: object) -> int:
    left_count, right_count = _positions(left), _positions(right)
    return 1 + _STEPS_PER_POSITION * (left_count + right_count) + _STEPS_PER_PAIR * left_count * right_count


_COPIED: Final = _in_proportion(CHARACTERS_PER_STEP)
_CASED: Final = _in_proportion(_CASED_CHARACTERS_PER_STEP)
_PARSED: Final = _in_proportion(_PARSED_CHARACTERS_PER_STEP)
_TAKEN: Final = _in_proportion(_ELEMENTS_PER_STEP)
_COMPARED: Final = _in_proportion(_COMPARED_ELEMENTS_PER_STEP)

STEPS_OF_CALLS: Final[dict[str, Steps]] = {
    **dict.fromkeys(("CONTAINS", "ENDSWITH", "STARTSWITH", "STRINGEQUALS"), _search_steps),
    **dict.fromkeys(("CONTAINS_ALL_CS", "CONTAINS_ANY_CS"), _search_each(CHARACTERS_PER_STEP)),
    **dict.fromkeys(("CONTAINS_ALL_CI", "CONTAINS_ANY_CI"), _search_each(_CASED_CHARACTERS_PER_STEP)),
    **dict.fromkeys(
        (
            "CONCAT",
            "INDEX_OF",
            "LASTINDEXOF",
            "LASTSUBSTRINGAFTER",
            "LASTSUBSTRINGBEFORE",
            "LEFT",
            "LTRIM",
            "REPLACE",
            "REPLICATE",
            "REVERSE",
            "RIGHT",
            "RTRIM",
            "SUBSTRING",
            "SUBSTRINGAFTER",
            "SUBSTRINGBEFORE",
            "TRIM",
        ),
        _COPIED,
    ),
    **dict.fromkeys(("LOWER", "UPPER"), _CASED),
    **dict.fromkeys(
        (
            "STRINGJOIN",
            "STRINGSPLIT",
            "STRINGTOARRAY",
            "STRINGTOBOOLEAN",
            "STRINGTONULL",
            "STRINGTONUMBER",
            "STRINGTOOBJECT",
            "TOSTRING",
            "REGEXEXTRACT",
            "REGEXEXTRACTALL",
            "REGEXMATCH",
        ),
        _PARSED,
    ),
    **dict.fromkeys(("ARRAY_CONCAT", "ARRAY_SLICE", "OBJECTTOARRAY"), _TAKEN),
    **dict.fromkeys(
        (
            "ARRAY_AVG",
            "ARRAY_MAX",
            "ARRAY_MEDIAN",
            "ARRAY_MIN",
            "ARRAY_SUM",
            "SETDIFFERENCE",
            "SETEQUAL",
            "SETINTERSECT",
            "SETUNION",
        ),
        _COMPARED,
    ),
    **dict.fromkeys(("ARRAY_CONTAINS", "ARRAY_CONTAINS_ALL", "ARRAY_CONTAINS_ANY"), _each_in_array),
    **dict.fromkeys(
        ("FULLTEXTCONTAINS", "FULLTEXTCONTAINSALL", "FULLTEXTCONTAINSANY", "_FULLTEXTSCORE", "_FULLTEXTWORDCOUNT"),
        _terms_in_text,
    ),
    **dict.fromkeys(("ST_ISVALID", "ST_ISVALIDDETAILED"), _read_steps),
    "ST_AREA": _area_steps,
    **dict.fromkeys(("ST_DISTANCE", "ST_INTERSECTS", "ST_WITHIN"), _pair_of_shapes_steps),
}

# Bytes for each element of a result list with new values.
ELEMENT_BYTES_OF_CALLS: Final[dict[str, int]] = {"STRINGSPLIT": 72, "REGEXEXTRACTALL": 72, "OBJECTTOARRAY": 256}
# The results of these may be many times as large as the text.
PARSING_CALLS: Final = frozenset({"STRINGTOARRAY", "STRINGTOOBJECT"})
