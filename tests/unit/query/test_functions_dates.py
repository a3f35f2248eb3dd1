from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.languages.cosmos_sql.functions import FUNCTIONS, EvaluationContext
from asterism.languages.cosmos_sql.functions.date_text import TICKS_MAX, TICKS_MIN
from asterism.values.undefined import UNDEFINED

RUN: dict[str, Callable[..., Any]] = {name: function.run for name, function in FUNCTIONS.items()}
TICKS = st.integers(TICKS_MIN, TICKS_MAX)
FIXED_PARTS = st.sampled_from(["day", "hour", "minute", "second", "millisecond", "microsecond"])
PARTS = st.sampled_from(["year", "month"]) | FIXED_PARTS
# 2024-10-14T14:20:30.6668888Z, of which a double keeps all seven digits.
NOW = EvaluationContext(now_wall_seconds=1728915630.6668888, random=lambda: 0.25)


@given(TICKS)
def test_ticks_become_a_date_and_come_back(ticks: int) -> None:
    text = RUN["TICKSTODATETIME"](ticks)
    assert RUN["DATETIMETOTICKS"](text) == ticks
    assert RUN["IS_DATETIME"](text) is True


@given(st.datetimes())
def test_parts_become_the_date_that_has_them(when: datetime) -> None:
    parts = (when.year, when.month, when.day, when.hour, when.minute, when.second, when.microsecond * 10)
    text = RUN["DATETIMEFROMPARTS"](*parts)
    names = ("yyyy", "mm", "dd", "hh", "mi", "ss", "mcs")
    assert [RUN["DATETIMEPART"](name, text) for name in names] == [*parts[:-1], when.microsecond]
    seconds = when.replace(tzinfo=UTC).replace(microsecond=0).timestamp()
    assert RUN["DATETIMETOTIMESTAMP"](text) == int(seconds) * 1000 + when.microsecond // 1000


@given(TICKS, st.integers(-1000, 1000), FIXED_PARTS)
def test_an_added_amount_is_the_difference(ticks: int, count: int, part: str) -> None:
    start = RUN["TICKSTODATETIME"](ticks)
    end = RUN["DATETIMEADD"](part, count, start)
    assert end is UNDEFINED or RUN["DATETIMEDIFF"](part, start, end) == count
    assert end is UNDEFINED or RUN["DATETIMEADD"](part, -count, end) == start


@given(TICKS, st.integers(-200, 200))
def test_added_months_are_the_difference(ticks: int, count: int) -> None:
    start = RUN["TICKSTODATETIME"](ticks)
    end = RUN["DATETIMEADD"]("month", count, start)
    assert end is UNDEFINED or RUN["DATETIMEDIFF"]("month", start, end) == count


@given(TICKS, TICKS, PARTS)
def test_a_difference_changes_its_sign_with_the_order(first_ticks: int, second_ticks: int, part: str) -> None:
    first, second = RUN["TICKSTODATETIME"](first_ticks), RUN["TICKSTODATETIME"](second_ticks)
    assert RUN["DATETIMEDIFF"](part, first, second) == -RUN["DATETIMEDIFF"](part, second, first)


# Bins may end after the last date.
@given(st.integers(TICKS_MIN, TICKS_MAX - 10**14), FIXED_PARTS, st.integers(1, 100))
def test_a_bin_starts_at_or_before_its_dates(ticks: int, part: str, size: int) -> None:
    text = RUN["TICKSTODATETIME"](ticks)
    start = RUN["DATETIMEBIN"](text, part, size)
    assert start is UNDEFINED or (start <= text < RUN["DATETIMEADD"](part, size, start))
    assert start is UNDEFINED or RUN["DATETIMEBIN"](start, part, size) == start


@given(TICKS)
def test_the_full_format_is_the_text_itself(ticks: int) -> None:
    text = RUN["TICKSTODATETIME"](ticks)
    assert RUN["DATETIMEFORMAT"](text, "yyyy-MM-ddTHH:mm:ss.fffffffZ") == text


def test_the_present_is_that_of_the_context() -> None:
    assert RUN["GETCURRENTDATETIME"](NOW) == "2024-10-14T14:20:30.6668888Z"
    assert RUN["GETCURRENTDATETIMESTATIC"](NOW) == "2024-10-14T14:20:30.6668888Z"
    assert RUN["GETCURRENTTICKS"](NOW) == RUN["GETCURRENTTICKSSTATIC"](NOW) == 17289156306668888
    assert RUN["GETCURRENTTIMESTAMP"](NOW) == RUN["GETCURRENTTIMESTAMPSTATIC"](NOW) == 1728915630666
    assert RUN["NOW"](NOW) == "2024-10-14T14:20:30.6668888Z"


def test_parts_are_added_to_and_taken_from_the_present() -> None:
    assert RUN["NOW"](NOW, "yyyy", 1) == "2025-10-14T14:20:30.6668888Z"
    assert RUN["NOW"](NOW, "ms", 4) == "2024-10-14T14:20:30.6708888Z"
    assert RUN["AGO"](NOW, "yyyy", 1) == "2023-10-14T14:20:30.6668888Z"
    assert RUN["AGO"](NOW, "ss", 30) == "2024-10-14T14:20:00.6668888Z"
    assert RUN["AGO"](NOW, "yyyy", -1) == RUN["NOW"](NOW, "yyyy", 1)


def test_an_incomplete_or_invalid_offset_is_undefined() -> None:
    assert RUN["NOW"](NOW, "yyyy") is UNDEFINED
    assert RUN["NOW"](NOW, "week", 1) is UNDEFINED
    assert RUN["AGO"](NOW, "yyyy", "1") is UNDEFINED
    assert RUN["AGO"](NOW, "yyyy", 1.5) is UNDEFINED
    assert RUN["AGO"](NOW, "dd", -(2**63)) is UNDEFINED


def test_functions_that_need_the_context_are_marked() -> None:
    needing = {name for name, function in FUNCTIONS.items() if function.needs_context}
    present = {f"GETCURRENT{unit}{kind}" for unit in ("DATETIME", "TICKS", "TIMESTAMP") for kind in ("", "STATIC")}
    assert needing == present | {"AGO", "NOW", "RAND"}


def test_a_query_passes_its_context_on() -> None:
    text = "SELECT VALUE [GetCurrentDateTime(), Now('dd', 1), Ago('dd', 1), RAND()]"
    compiled = compile_query(parse_query(text), {}, context=NOW)
    assert compiled.project({}) == [
        "2024-10-14T14:20:30.6668888Z",
        "2024-10-15T14:20:30.6668888Z",
        "2024-10-13T14:20:30.6668888Z",
        0.25,
    ]


def test_the_present_differs_for_each_item_and_the_static_present_is_the_same() -> None:
    seconds = iter(range(100, 200))
    context = EvaluationContext(50.0, lambda: 0.25, wall_seconds=lambda: float(next(seconds)))
    text = (
        "SELECT VALUE [GetCurrentDateTime(), GetCurrentTicks(), GetCurrentTimestamp(), "
        "GetCurrentDateTimeStatic(), GetCurrentTicksStatic(), GetCurrentTimestampStatic()] FROM c"
    )
    compiled = compile_query(parse_query(text), {}, context=context)
    static = ["1970-01-01T00:00:50.0000000Z", 500_000_000, 50_000]
    assert list(compiled.rows({})) == [["1970-01-01T00:01:40.0000000Z", 1_010_000_000, 102_000, *static]]
    assert list(compiled.rows({})) == [["1970-01-01T00:01:43.0000000Z", 1_040_000_000, 105_000, *static]]
